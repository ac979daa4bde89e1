// Code of the page that could not be fetched when it was needed. Browsers do not
// ask for it twice, and whoever comes back may have another version of it: the
// page begins anew once the server answers.
import { events } from './events.svelte';

let missing = false;

addEventListener('vite:preloadError', () => (missing = true));
events.onAgain(() => {
  if (missing) location.reload();
});
