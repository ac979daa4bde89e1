// How a person looks at runs, on this device: saved filters, columns, groups.
import { COLUMNS, type Column, type Group } from './row';

const KEY = 'weighlock.runs';

export interface View {
  name: string;
  filter: string;
}

class Views {
  saved = $state<View[]>([]);
  hidden = $state<Column[]>(['sandbox']);
  group = $state<Group>('none');

  constructor() {
    try {
      Object.assign(this, JSON.parse(localStorage.getItem(KEY) ?? '{}'));
    } catch {
      // Nothing that can be read was kept; what there is at the start will do.
    }
    $effect.root(() => {
      $effect(() => {
        const { saved, hidden, group } = this;
        localStorage.setItem(KEY, JSON.stringify({ saved, hidden, group }));
      });
    });
  }

  /** Keeps a filter under a name; the same name again replaces it. */
  save(name: string, filter: string): void {
    this.saved = [...this.saved.filter((view) => view.name !== name), { name, filter }];
  }

  remove(name: string): void {
    this.saved = this.saved.filter((view) => view.name !== name);
  }

  /** The columns for a list of this width; narrow ones have what matters most. */
  columns(width: number): Column[] {
    const fits: readonly Column[] =
      width < 560
        ? ['command', 'result']
        : width < 700
          ? ['time', 'command', 'result']
          : width < 960
            ? ['time', 'agent', 'command', 'verdict', 'result']
            : COLUMNS;
    return fits.filter((column) => column === 'command' || !this.hidden.includes(column));
  }
}

export const views = new Views();
