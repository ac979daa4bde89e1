// What a person likes, on this device.

type Theme = 'system' | 'light' | 'dark';

const KEY = 'weighlock.settings';

/** From one time of day to another, such as `22:00` to `07:00`. */
export interface Hours {
  from: string;
  to: string;
}

interface Kept {
  theme: Theme;
  singleKeys: boolean;
  notify: boolean;
  /** When this device does not notify, by its own clock. */
  quiet: Hours | null;
  screenReaderTerminal: boolean;
}

const START: Kept = {
  theme: 'system',
  singleKeys: true,
  notify: false,
  quiet: null,
  screenReaderTerminal: false,
};

class Settings {
  theme = $state<Theme>(START.theme);
  singleKeys = $state(START.singleKeys);
  notify = $state(START.notify);
  quiet = $state<Hours | null>(START.quiet);
  screenReaderTerminal = $state(START.screenReaderTerminal);

  constructor() {
    try {
      Object.assign(this, JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<Kept>);
    } catch {
      // Nothing that can be read was kept; what there is at the start will do.
    }
    $effect.root(() => {
      $effect(() => {
        const { theme, singleKeys, notify, screenReaderTerminal } = this;
        const quiet = this.quiet && { ...this.quiet };
        const kept: Kept = { theme, singleKeys, notify, quiet, screenReaderTerminal };
        localStorage.setItem(KEY, JSON.stringify(kept));
        document.documentElement.dataset.theme = theme;
      });
    });
  }
}

export const settings = new Settings();
