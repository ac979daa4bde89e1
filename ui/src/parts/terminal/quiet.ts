// What a program may not do by what it writes: ask the terminal something, since
// the server answers and nobody else may type; put text on the clipboard, make
// links, change the colours or the window.
import type { IDisposable, Terminal } from '@xterm/xterm';

/** Sequences that end in these, by what comes before. */
const CSI = [
  { final: 'c' },
  { prefix: '>', final: 'c' },
  { prefix: '=', final: 'c' },
  { final: 'n' },
  { prefix: '?', final: 'n' },
  { intermediates: '$', final: 'p' },
  { prefix: '?', intermediates: '$', final: 'p' },
  { prefix: '>', final: 'q' },
  { prefix: '?', final: 'u' },
  { final: 't' },
];

/** Titles, colours, links, notifications and the clipboard. */
const OSC = [0, 1, 2, 4, 5, 7, 8, 9, 10, 11, 12, 17, 19, 52, 99, 104, 110, 111, 112, 777, 1337];

const DCS = [
  { intermediates: '$', final: 'q' },
  { intermediates: '+', final: 'q' },
];

/** Makes a terminal take no notice of any of it. */
export function silence({ parser }: Terminal): IDisposable[] {
  const nothing = () => true;
  return [
    ...CSI.map((id) => parser.registerCsiHandler(id, nothing)),
    ...OSC.map((id) => parser.registerOscHandler(id, nothing)),
    ...DCS.map((id) => parser.registerDcsHandler(id, nothing)),
  ];
}
