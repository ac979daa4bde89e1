// The keyboard: one listener, and whoever is on the page says which keys mean
// something.
import { guard } from './guard';
import { settings } from './settings.svelte';

/** A key's name as events have it (`a`, `Enter`, `ArrowDown`), `Ctrl+k`, or two
 * keys one after the other (`g i`). What returns `false` leaves the key to whoever
 * has the focus. */
export type Bindings = Record<string, (event: KeyboardEvent) => unknown>;

interface Bound {
  keys: Bindings;
  /** What changes something counts only after a while without any key. */
  changes: boolean;
}

const bound: Bound[] = [];

/** How long the second of two keys may take. */
const SECOND_MS = 1500;

let first = { key: '', at: 0 };

/** Binds keys until what it returns is called. What was bound last counts. */
export function bind(keys: Bindings, { changes = false } = {}): () => void {
  const one = { keys, changes };
  bound.unshift(one);
  return () => void bound.splice(bound.indexOf(one), 1);
}

/** Whether an element takes what is typed. */
export function isField(element: EventTarget | null): boolean {
  if (!(element instanceof HTMLElement)) return false;
  return element.isContentEditable || element.matches('input, textarea, select');
}

/** Whether an element does something itself when Enter or Space is pressed on it. */
export function isControl(element: EventTarget | null): boolean {
  return element instanceof Element && element.matches('button, a[href], summary');
}

/** Whether every key is an element's own, as in a terminal that has the keyboard. */
function isOwn(element: EventTarget | null): boolean {
  return element instanceof Element && element.closest('[data-keys=own]') !== null;
}

// They are held down with another key, and mean nothing alone.
const HELD = ['Shift', 'Control', 'Alt', 'Meta'];

function pressed(event: KeyboardEvent): void {
  if (HELD.includes(event.key)) return;
  guard.pressed(event.repeat);
  if (event.defaultPrevented || event.isComposing || isOwn(event.target)) return;
  const name = (event.ctrlKey || event.metaKey ? 'Ctrl+' : '') + event.key;
  const plain = event.key.length === 1 && !name.startsWith('Ctrl+');
  if (event.altKey || (isField(event.target) && name !== 'Escape' && !name.startsWith('Ctrl+'))) {
    return;
  }
  if (plain && !settings.singleKeys) return;
  // A dialog or a menu has its own: Esc closes it, and nothing behind it is reached.
  if (document.querySelector('dialog[open], :popover-open')) return;
  const second = performance.now() - first.at < SECOND_MS ? `${first.key} ${name}` : '';
  first = { key: name, at: performance.now() };
  for (const wanted of [second, name]) {
    const found = wanted && bound.find(({ keys }) => keys[wanted]);
    if (!found) continue;
    if (found.changes && !guard.admits(event)) return;
    first = { key: '', at: 0 };
    if (found.keys[wanted]?.(event) !== false) event.preventDefault();
    return;
  }
}

addEventListener('keydown', pressed, { capture: true });
addEventListener('focus', () => guard.restart());
