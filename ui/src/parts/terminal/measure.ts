// How large the letters of a terminal are, and how much fits.

export interface Size {
  columns: number;
  rows: number;
}

/** In pixels of the page. */
export interface Room {
  width: number;
  height: number;
}

/** How much one character takes at a font size. */
export type Measure = (fontSize: number) => Room;

/** Who watches sees all of a terminal, as long as it can be read. */
export const SMALLEST = 8;
export const LARGEST = 16;
const STEP = 0.5;

/** What a terminal can be, at the server. */
const LEAST = 2;
const MOST = 500;

/** The font size at which a terminal fits; the smallest if none does. */
export function scaled({ columns, rows }: Size, room: Room, measure: Measure): number {
  for (let font = LARGEST; font > SMALLEST; font -= STEP) {
    const cell = measure(font);
    if (columns * cell.width <= room.width && rows * cell.height <= room.height) return font;
  }
  return SMALLEST;
}

/** How large a terminal is that fills a room. */
export function fitting(room: Room, cell: Room): Size {
  const fits = (space: number, one: number) =>
    Math.min(MOST, Math.max(LEAST, Math.floor(space / one)));
  return { columns: fits(room.width, cell.width), rows: fits(room.height, cell.height) };
}

/** Measures characters as the terminal's own code does. */
export function measuring(family: string): Measure {
  const context = document.createElement('canvas').getContext('2d');
  return (fontSize) => {
    if (!context) return { width: fontSize * 0.6, height: fontSize * 1.2 };
    context.font = `${fontSize}px ${family}`;
    const found = context.measureText('W');
    const dots = devicePixelRatio;
    const height = found.fontBoundingBoxAscent + found.fontBoundingBoxDescent;
    return { width: found.width, height: Math.ceil(height * dots) / dots };
  };
}
