// Cuts a command into pieces that are one thing each: one token, inside or
// outside of what a reason is about, and either text or a character's code.
import type { ReasonView, TokenView } from '../api/schema';
import { pieces, type Piece } from './safe';

/** Bytes of a text: the first, and one past the last. */
export type Span = [number, number];

/** A piece of a command as it is shown. */
export interface Segment extends Piece {
  /** Where it begins and ends, in bytes of the command. */
  start: number;
  end: number;
  kind: TokenView['kind'] | undefined;
  /** The reason that it is risky for, by its place in the list. */
  reason: number | undefined;
}

/** Cuts a command; what the server counts in bytes is found again. */
export function segments(
  command: string,
  tokens: TokenView[] = [],
  reasons: Pick<ReasonView, 'span'>[] = [],
): Segment[] {
  const risky = reasons.map(({ span }) => (span ? narrowed(span, tokens) : undefined));
  const cuts = new Set<number>();
  for (const { start, end } of tokens) cuts.add(start).add(end);
  for (const span of risky) if (span) cuts.add(span[0]).add(span[1]);
  const inner = innermost(tokens);
  const found: Segment[] = [];
  let at = 0;
  for (const piece of pieces(command, { command: true })) {
    if (piece.aside) {
      found.push({ ...piece, start: at, end: at, kind: undefined, reason: undefined });
      continue;
    }
    for (const part of cutAt(piece, at, cuts)) {
      const reason = risky.findIndex((span) => span && span[0] <= at && at < span[1]);
      const { text, bytes } = part;
      found.push({
        ...piece,
        text,
        start: at,
        end: at + bytes,
        kind: inner(at),
        reason: reason < 0 ? undefined : reason,
      });
      at += bytes;
    }
  }
  return found;
}

/** Segments one after the other that the same reason is about. */
export interface Stretch {
  reason: number | undefined;
  segments: Segment[];
}

/** Puts together what one reason is about. */
export function stretches(all: Segment[]): Stretch[] {
  const found: Stretch[] = [];
  for (const segment of all) {
    const last = found.at(-1);
    if (last && last.reason === segment.reason) last.segments.push(segment);
    else found.push({ reason: segment.reason, segments: [segment] });
  }
  return found;
}

/** Returns whether two spans have something in common. */
export function touches(a: Span, b: Span): boolean {
  return a[0] < b[1] && b[0] < a[1];
}

// A reason is about a whole part; what catches the eye in it is its program.
// What has none, as a redirection, is marked as it is.
function narrowed(span: Span, tokens: TokenView[]): Span {
  const program = tokens.find(
    ({ start, end, kind }) => kind === 'program' && span[0] <= start && end <= span[1],
  );
  return program ? [program.start, program.end] : span;
}

// Tokens lie inside others; the last that has begun and not ended is innermost.
function innermost(tokens: TokenView[]): (at: number) => TokenView['kind'] | undefined {
  const sorted = [...tokens].sort((a, b) => a.start - b.start || b.end - a.end);
  const open: TokenView[] = [];
  let next = 0;
  return (at) => {
    for (; next < sorted.length && sorted[next]!.start <= at; next += 1) open.push(sorted[next]!);
    while (open.length && open.at(-1)!.end <= at) open.pop();
    return open.at(-1)?.kind;
  };
}

function cutAt(piece: Piece, from: number, cuts: Set<number>): { text: string; bytes: number }[] {
  const found: { text: string; bytes: number }[] = [];
  let text = '';
  let bytes = 0;
  let at = from;
  for (const c of piece.text) {
    if (text && cuts.has(at)) {
      found.push({ text, bytes });
      text = '';
      bytes = 0;
    }
    // What stands for a tab or a space is longer than it is.
    const length = piece.faint ? 1 : bytesOf(c);
    text += c;
    bytes += length;
    at += length;
  }
  if (text) found.push({ text, bytes });
  return found;
}

function bytesOf(c: string): number {
  const code = c.codePointAt(0)!;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}
