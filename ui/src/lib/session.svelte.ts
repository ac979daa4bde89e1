// Who is signed in.
import { api, Refusal, whenSignedOut } from '../api/client';
import type { Me } from '../api/schema';
import { events } from './events.svelte';
import { route } from './route.svelte';

const ORDER = ['agent', 'viewer', 'approver', 'operator', 'administrator'];

class Session {
  me = $state<Me>();
  /** It is known whether anybody is signed in. */
  known = $state(false);
  /** How many questions wait. */
  waiting = $state(0);

  constructor() {
    whenSignedOut(() => this.#out());
    const count = () => void this.look().catch(() => {});
    events.onAgain(count);
    events.on(({ event }) => {
      if (/^(approval\.|principal\.)/.test(event)) count();
    });
  }

  /** Looks who is signed in, and begins to listen. */
  async begin(): Promise<void> {
    let unreachable = false;
    try {
      await this.look();
    } catch (error) {
      unreachable = error instanceof Refusal && error.unreachable;
      if (!unreachable) throw error;
    } finally {
      this.known = true;
    }
    // Where nobody answers, the stream tells when somebody does.
    if (this.me || unreachable) events.open();
  }

  async look(): Promise<void> {
    this.me = await api.get('/me');
    this.waiting = this.me.waiting;
  }

  async signOut(): Promise<void> {
    await api.post('/signout');
    this.#out();
  }

  /** Whether who is signed in may do what this role may. */
  may(role: string): boolean {
    return this.me !== undefined && ORDER.indexOf(this.me.role) >= ORDER.indexOf(role);
  }

  #out(): void {
    events.close();
    this.me = undefined;
    this.known = true;
    if (route.parts[0] !== 'signin') {
      const back = route.path + location.search + location.hash;
      route.go(`/signin?to=${encodeURIComponent(back)}`, { replace: true });
    }
  }
}

export const session = new Session();
