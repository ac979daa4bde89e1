// Colours and weights of output, from what the server says about each line.
import type { SpanView } from '../api/schema';

/** A piece of a line that looks alike. */
export interface Span {
  text: string;
  /** Classes: `bold`, `dim`, `italic`, `underline`, `strike`. */
  marks: string[];
  /** Colours as CSS takes them. */
  color?: string;
  background?: string;
}

type Rgb = readonly [number, number, number];

/** The terminal's own colours, as in style.css. */
const TEXT: Rgb = [230, 232, 236];
const GROUND: Rgb = [12, 15, 22];

/** The sixteen, all of which can be read on the ground. */
const SIXTEEN: Rgb[] = [
  [132, 138, 149],
  [255, 128, 126],
  [105, 217, 141],
  [243, 189, 92],
  [131, 176, 255],
  [204, 167, 248],
  [96, 205, 216],
  [214, 218, 224],
  [159, 165, 174],
  [255, 160, 157],
  [146, 235, 172],
  [255, 214, 138],
  [170, 201, 255],
  [224, 198, 255],
  [145, 228, 236],
  [255, 255, 255],
];

/** Text and ground that are nearer to each other than this hide something. */
const LEAST_CONTRAST = 3;

/** Takes a line apart by how it looks, as the server has found out. */
export function spans(line: string, looks: SpanView[]): Span[] {
  if (!looks.length) return line ? [{ text: line, marks: [] }] : [];
  const found: Span[] = [];
  const at = places(line);
  let from = 0;
  const plain = (to: number) => to > from && found.push({ text: line.slice(from, to), marks: [] });
  for (const look of looks) {
    const [start, end] = [at(look.start), at(look.end)];
    plain(start);
    if (end > start) found.push(span(line.slice(start, end), look));
    from = Math.max(from, end);
  }
  plain(line.length);
  return found;
}

// The server counts bytes, and we count otherwise beyond ASCII.
function places(line: string): (byte: number) => number {
  // eslint-disable-next-line no-control-regex
  if (/^[\u0000-\u007f]*$/.test(line)) return (byte) => Math.min(byte, line.length);
  const starts: number[] = [];
  let index = 0;
  for (const c of line) {
    const code = c.codePointAt(0)!;
    const bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (let byte = 0; byte < bytes; byte++) starts.push(index);
    index += c.length;
  }
  return (byte) => starts[byte] ?? line.length;
}

const MARKS = ['bold', 'dim', 'italic', 'underline', 'strike'] as const;

function span(text: string, look: SpanView): Span {
  let [color, background] = [colour(look.fg), colour(look.bg)];
  // Behind text the sixteen are darker, so that text stays readable.
  if (background && Number(look.bg) < 16) background = darker(background, Number(look.bg));
  if (look.inverse) [color, background] = [colour(look.bg) ?? GROUND, colour(look.fg) ?? TEXT];
  // Nobody can write what is there and cannot be seen.
  if (contrast(color ?? TEXT, background ?? GROUND) < LEAST_CONTRAST) {
    color = contrast(TEXT, background ?? GROUND) < LEAST_CONTRAST ? GROUND : TEXT;
  }
  const one: Span = { text, marks: MARKS.filter((mark) => look[mark]) };
  if (color) one.color = css(color);
  if (background) one.background = css(background);
  return one;
}

/** `0` to `255`, or `#rrggbb`. */
function colour(name: string | null | undefined): Rgb | undefined {
  if (!name) return undefined;
  if (!name.startsWith('#')) return palette(Number(name));
  const value = parseInt(name.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function palette(code: number): Rgb | undefined {
  if (code < 16) return SIXTEEN[code];
  if (code >= 232) {
    const grey = 8 + (Math.min(code, 255) - 232) * 10;
    return [grey, grey, grey];
  }
  const step = (at: number) => (at === 0 ? 0 : 55 + at * 40);
  const cube = code - 16;
  return [step(Math.floor(cube / 36)), step(Math.floor(cube / 6) % 6), step(cube % 6)];
}

function darker(color: Rgb, code: number): Rgb {
  if (code === 0) return GROUND;
  const [r, g, b] = color;
  return [Math.round(r * 0.35), Math.round(g * 0.35), Math.round(b * 0.35)];
}

function css([r, g, b]: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}

function contrast(a: Rgb, b: Rgb): number {
  const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
  return (high! + 0.05) / (low! + 0.05);
}

// Relative luminance, as WCAG has it.
function light(color: Rgb): number {
  const [r, g, b] = color.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}
