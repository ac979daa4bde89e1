// The terminal emulator, which is large: loaded by whoever needs it, when they do.
import { Terminal, type ITheme } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { allowStyles } from './document';
import type { Size } from './measure';
import { silence } from './quiet';

/** Lines above the screen. Who begins to watch is given 1,000; the recording has all. */
const SCROLLBACK = 5000;

const THEME: ITheme = {
  background: '#0c0f16',
  foreground: '#e6e8ec',
  cursor: '#e6e8ec',
  cursorAccent: '#0c0f16',
  selectionBackground: '#3d5a94',
  scrollbarSliderBackground: '#9fa5ae55',
  scrollbarSliderHoverBackground: '#9fa5ae88',
  scrollbarSliderActiveBackground: '#9fa5aeaa',
  black: '#1d2128',
  red: '#fe8b88',
  green: '#69d98d',
  yellow: '#f3bd5c',
  blue: '#83b0ff',
  magenta: '#cca7f8',
  cyan: '#63d3e0',
  white: '#d5d9df',
  brightBlack: '#8d949f',
  brightRed: '#ffaeab',
  brightGreen: '#96ecb0',
  brightYellow: '#ffd68c',
  brightBlue: '#aecbff',
  brightMagenta: '#e0c8ff',
  brightCyan: '#97e9f2',
  brightWhite: '#ffffff',
};

allowStyles(document);

export type Written = string | Uint8Array;

/** Returns an emulator that shows nothing yet. */
export function emulator(size: Size, more: { fontFamily?: string; screenReader?: boolean } = {}): Terminal {
  const term = new Terminal({
    cols: size.columns,
    rows: size.rows,
    scrollback: SCROLLBACK,
    fontFamily: more.fontFamily ?? 'monospace',
    screenReaderMode: more.screenReader ?? false,
    disableStdin: true,
    theme: THEME,
    // Nothing a program writes can be there and not be seen.
    minimumContrastRatio: 4.5,
    cursorInactiveStyle: 'outline',
    linkHandler: { activate: () => {} },
    logLevel: 'off',
  });
  silence(term);
  return term;
}
