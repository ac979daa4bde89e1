// What is known of characters beyond ASCII, once a text has needed it.

type Characters = typeof import('./characters');

let known = $state.raw<Characters>();
let asked = false;

/** What is known, if it is there; what depends on it is drawn again when it is. */
export function characters(): Characters | undefined {
  if (!known && !asked) {
    asked = true;
    import('./characters').then(
      (found) => (known = found),
      () => (asked = false),
    );
  }
  return known;
}
