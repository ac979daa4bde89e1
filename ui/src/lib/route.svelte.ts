// Where we are. Every screen, filter and item has an address; going back and
// forward restores the scrolled place.

class Route {
  path = $state(location.pathname);
  query = $state.raw(new URLSearchParams(location.search));
  hash = $state(location.hash);

  /** The parts of the path: `/runs/r_1/output` is `['runs', 'r_1', 'output']`. */
  parts = $derived(this.path.split('/').filter(Boolean).map(decoded));

  constructor() {
    addEventListener('popstate', () => this.read());
    addEventListener('hashchange', () => this.read());
    document.addEventListener('click', (event) => this.#followed(event));
  }

  /** Goes to an address of ours; `replace` leaves no trace of where we were. */
  go(to: string, { replace = false } = {}): void {
    if (replace) history.replaceState(null, '', to);
    else history.pushState(null, '', to);
    this.read();
  }

  /** Changes what is asked for at this address. */
  ask(changed: Record<string, string | undefined>, { replace = true } = {}): void {
    const query = new URLSearchParams(this.query);
    for (const [name, value] of Object.entries(changed)) {
      if (value) query.set(name, value);
      else query.delete(name);
    }
    const text = query.toString();
    this.go(this.path + (text && `?${text}`) + location.hash, { replace });
  }

  read(): void {
    this.path = location.pathname;
    this.query = new URLSearchParams(location.search);
    this.hash = location.hash;
  }

  // Links to our own pages change nothing but the page.
  #followed(event: MouseEvent): void {
    const other = event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
    if (other || event.defaultPrevented) return;
    const link = (event.target as Element | null)?.closest?.('a');
    if (!link || link.target || link.hasAttribute('download')) return;
    const to = new URL(link.href, location.href);
    if (to.origin !== location.origin || to.pathname.startsWith('/agent')) return;
    event.preventDefault();
    this.go(to.pathname + to.search + to.hash);
  }
}

// Anybody can write an address; one that means nothing is not there.
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = new Route();
