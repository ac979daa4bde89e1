// One clock for everything that counts seconds.

class Now {
  ms = $state(Date.now());

  constructor() {
    // Only while somebody looks: a hidden page does nothing.
    setInterval(() => document.hidden || (this.ms = Date.now()), 1000);
    document.addEventListener('visibilitychange', () => (this.ms = Date.now()));
  }
}

export const now = new Now();
