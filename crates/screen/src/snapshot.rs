//! A screen as the bytes that draw it again.
//!
//! Someone who looks at a terminal late cannot be sent all it ever received.
//! These bytes bring a fresh terminal of the same size to the same state.

use std::fmt::Write;

use alacritty_terminal::grid::{Cursor, Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::vte::ansi::{CharsetIndex, CursorShape, NamedColor, StandardCharset};

use crate::emulator::Emulator;
use crate::glyph::{self, Glyph};
use crate::style::CellStyle;
use crate::tabs::Tabs;

/// Returns the bytes; up to so many of the lines above the screen are added.
pub(crate) fn take(emulator: &mut Emulator, scrollback: usize) -> Vec<u8> {
    let mut drawing = Drawing::default();
    drawing.colors(emulator);
    drawing.titles(emulator);
    if emulator.term.mode().contains(TermMode::ALT_SCREEN) {
        drawing.primary(emulator, scrollback);
        drawing.out.push_str("\x1b[?1049h");
        drawing.plain_text();
        drawing.out.push_str("\x1b[2J\x1b[H");
        drawing.grid(emulator.term.grid(), 0);
    } else {
        drawing.grid(emulator.term.grid(), scrollback);
    }
    let grid = emulator.term.grid();
    if grid.saved_cursor != Cursor::default() {
        drawing.cursor(grid, &grid.saved_cursor, 0);
        drawing.out.push_str("\x1b7");
    }
    drawing.tabs(&emulator.tabs, grid.columns());
    drawing.place(emulator);
    drawing.modes(emulator);
    drawing.out.into_bytes()
}

/// Returns each row as text in its colours, no wider than so many columns;
/// nothing in it moves the cursor anywhere but to the right.
pub(crate) fn rows(emulator: &Emulator, columns: usize) -> Vec<String> {
    let grid = emulator.term.grid();
    let lines = 0..grid.screen_lines() as i32;
    lines
        .map(|line| {
            let mut drawing = Drawing::default();
            let glyphs = glyph::glyphs(&grid[Line(line)]);
            let mut gap = 0;
            for glyph in glyphs.take_while(|glyph| glyph.column + glyph.width <= columns) {
                if is_blank(&glyph) {
                    gap += 1;
                } else {
                    drawing.gap(std::mem::take(&mut gap));
                    drawing.glyph(&glyph);
                }
            }
            drawing.set_style(CellStyle::default());
            drawing.out
        })
        .collect()
}

/// What was drawn so far, and in which style it goes on.
#[derive(Default)]
struct Drawing {
    out: String,
    style: CellStyle,
    /// Some character set was changed.
    charsets: bool,
}

/// Modes that are off at first, and what switches them on.
const SWITCHED_ON: [(TermMode, &str); 11] = [
    (TermMode::APP_CURSOR, "\x1b[?1h"),
    (TermMode::APP_KEYPAD, "\x1b="),
    (TermMode::BRACKETED_PASTE, "\x1b[?2004h"),
    (TermMode::FOCUS_IN_OUT, "\x1b[?1004h"),
    (TermMode::MOUSE_REPORT_CLICK, "\x1b[?1000h"),
    (TermMode::MOUSE_DRAG, "\x1b[?1002h"),
    (TermMode::MOUSE_MOTION, "\x1b[?1003h"),
    (TermMode::SGR_MOUSE, "\x1b[?1006h"),
    (TermMode::UTF8_MOUSE, "\x1b[?1005h"),
    (TermMode::INSERT, "\x1b[4h"),
    (TermMode::LINE_FEED_NEW_LINE, "\x1b[20h"),
];

/// Modes that are on at first, and what switches them off.
const SWITCHED_OFF: [(TermMode, &str); 4] = [
    (TermMode::SHOW_CURSOR, "\x1b[?25l"),
    (TermMode::LINE_WRAP, "\x1b[?7l"),
    (TermMode::ALTERNATE_SCROLL, "\x1b[?1007l"),
    (TermMode::URGENCY_HINTS, "\x1b[?1042l"),
];

const CHARSETS: [(CharsetIndex, char); 4] = [
    (CharsetIndex::G0, '('),
    (CharsetIndex::G1, ')'),
    (CharsetIndex::G2, '*'),
    (CharsetIndex::G3, '+'),
];

/// Gaps shorter than this are drawn as spaces: the sequence is as long.
const SHORT_GAP: usize = 4;

impl Drawing {
    fn add(&mut self, text: std::fmt::Arguments) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(text);
    }

    fn colors(&mut self, emulator: &Emulator) {
        let colors = emulator.term.colors();
        for index in 0..=NamedColor::Cursor as usize {
            if let Some(color) = colors[index] {
                let (r, g, b) = (color.r, color.g, color.b);
                match index.checked_sub(NamedColor::Foreground as usize) {
                    None => self.add(format_args!("\x1b]4;{index}")),
                    Some(offset) => self.add(format_args!("\x1b]{}", 10 + offset)),
                }
                self.add(format_args!(";rgb:{r:02x}/{g:02x}/{b:02x}\x1b\\"));
            }
        }
    }

    /// Each title but the shown one is pushed onto the stack.
    fn titles(&mut self, emulator: &Emulator) {
        let mut shown = "";
        for (index, title) in emulator.title.all().enumerate() {
            if index > 0 {
                self.out.push_str("\x1b[22t");
            }
            if title != shown {
                self.add(format_args!("\x1b]2;{title}\x1b\\"));
            }
            shown = title;
        }
    }

    /// Draws what is hidden by the alternate screen. The emulator shows it to
    /// nobody, so it is swapped in; swapping back clears the other, which
    /// therefore is set aside.
    fn primary(&mut self, emulator: &mut Emulator, scrollback: usize) {
        let alternate = emulator.term.grid().clone();
        emulator.term.swap_alt();
        let grid = emulator.term.grid();
        self.grid(grid, scrollback);
        self.cursor(grid, &grid.cursor, 0);
        emulator.term.swap_alt();
        *emulator.term.grid_mut() = alternate;
    }

    /// Draws the rows, from a blank screen with the cursor at its top.
    fn grid(&mut self, grid: &Grid<Cell>, scrollback: usize) {
        let above = grid.history_size().min(scrollback) as i32;
        // The rows at the end need not be drawn, unless they push others up.
        let last = (0..grid.screen_lines() as i32)
            .rev()
            .find(|&row| above > 0 || needs_drawing(grid, Line(row)));
        for row in -above..=last.unwrap_or(-1) {
            let line = Line(row);
            self.row(grid, line);
            if glyph::goes_on(grid, line) {
                self.go_on(grid, line);
            } else if Some(row) != last {
                self.set_style(CellStyle::default());
                self.out.push_str("\r\n");
            }
        }
        self.set_style(CellStyle::default());
    }

    fn row(&mut self, grid: &Grid<Cell>, line: Line) {
        let full = glyph::goes_on(grid, line);
        let end = grid.columns() - usize::from(glyph::makes_room(grid, line));
        let mut gap = 0;
        for glyph in glyph::glyphs(&grid[line]).take_while(|glyph| glyph.column < end) {
            let last = full && glyph.column + glyph.width == grid.columns();
            if is_blank(&glyph) && !last {
                gap += 1;
            } else {
                self.gap(gap);
                gap = 0;
                self.glyph(&glyph);
            }
        }
        if end < grid.columns() {
            self.gap(gap);
        }
    }

    fn gap(&mut self, columns: usize) {
        if columns >= SHORT_GAP {
            self.add(format_args!("\x1b[{columns}C"));
        } else if columns > 0 {
            self.set_style(CellStyle::default());
            self.out.extend(std::iter::repeat_n(' ', columns));
        }
    }

    fn glyph(&mut self, glyph: &Glyph) {
        self.set_style(CellStyle::of(glyph.cell));
        self.out.push(glyph.letter);
        self.out.extend(glyph.marks);
    }

    /// Makes a full row go on in the next, by a character too many. The next
    /// row is then drawn from its beginning, over a blank one.
    fn go_on(&mut self, grid: &Grid<Cell>, line: Line) {
        if glyph::makes_room(grid, line) {
            self.set_style(CellStyle::of(&grid[line][grid.last_column()]));
            self.out.push(glyph::glyph(&grid[line + 1], 0).letter);
        } else {
            self.set_style(CellStyle::default());
            self.out.push(' ');
        }
        self.set_style(CellStyle::default());
        self.out.push_str("\r\x1b[K");
    }

    fn set_style(&mut self, style: CellStyle) {
        if style != self.style {
            style.write(&mut self.out);
            self.style = style;
        }
    }

    /// Brings the cursor to a place, and to how it writes there. Rows are
    /// counted from the one given.
    fn cursor(&mut self, grid: &Grid<Cell>, cursor: &Cursor<Cell>, first: usize) {
        let row = cursor.point.line.0 as usize - first + 1;
        let column = cursor.point.column.0 + 1;
        self.plain_text();
        self.add(format_args!("\x1b[{row};{column}H"));
        if cursor.input_needs_wrap && cursor.point.column == grid.last_column() {
            self.fill_line(grid, cursor.point.line, row);
        }
        self.set_style(CellStyle::of(&cursor.template));
        for (index, name) in CHARSETS {
            if cursor.charsets[index] != StandardCharset::Ascii {
                self.add(format_args!("\x1b{name}0"));
                self.charsets = true;
            }
        }
    }

    /// Writes the last character of a row once more: the cursor then waits
    /// behind it, where no sequence can bring it.
    fn fill_line(&mut self, grid: &Grid<Cell>, line: Line, row: usize) {
        let last = grid.columns() - 1;
        if glyph::goes_on(grid, line) {
            // Writing would make the row end here. A wide character that does
            // not fit changes nothing else.
            self.out.push_str("\x1b[?7l\u{4e00}\x1b[?7h");
        } else if glyph::is_wide(&grid[line], last - 1) {
            // Erased first, or the row above would lose a mark.
            self.add(format_args!("\x1b[{row};{last}H\x1b[2X"));
            self.glyph(&glyph::glyph(&grid[line], last - 1));
        } else {
            self.glyph(&glyph::glyph(&grid[line], last));
        }
    }

    /// Goes back to ordinary characters in the ordinary style.
    fn plain_text(&mut self) {
        self.set_style(CellStyle::default());
        if std::mem::take(&mut self.charsets) {
            self.out.push_str("\x1b(B\x1b)B\x1b*B\x1b+B");
        }
    }

    fn tabs(&mut self, tabs: &Tabs, columns: usize) {
        if *tabs != Tabs::new(columns) {
            self.out.push_str("\x1b[3g");
            for stop in tabs.stops() {
                self.add(format_args!("\x1b[{}G\x1bH", stop + 1));
            }
        }
    }

    /// Sets the margins, and then the cursor, which setting them moves.
    fn place(&mut self, emulator: &Emulator) {
        let grid = emulator.term.grid();
        let margins = &emulator.margins;
        if *margins != (0..grid.screen_lines()) {
            self.add(format_args!("\x1b[{};{}r", margins.start + 1, margins.end));
        }
        let mut first = 0;
        if emulator.term.mode().contains(TermMode::ORIGIN) {
            self.out.push_str("\x1b[?6h");
            first = margins.start;
        }
        self.cursor(grid, &grid.cursor, first);
        if emulator.charset == CharsetIndex::G1 {
            self.out.push('\x0e');
        }
    }

    fn modes(&mut self, emulator: &Emulator) {
        let mode = *emulator.term.mode();
        for (flag, sequence) in SWITCHED_ON {
            if mode.contains(flag) {
                self.out.push_str(sequence);
            }
        }
        for (flag, sequence) in SWITCHED_OFF {
            if !mode.contains(flag) {
                self.out.push_str(sequence);
            }
        }
        let style = emulator.term.cursor_style();
        let shape = match style.shape {
            CursorShape::Underline => 4,
            CursorShape::Beam => 6,
            _ => 2,
        };
        let number = shape - usize::from(style.blinking);
        // 2 is the one of a fresh terminal.
        if number != 2 {
            self.add(format_args!("\x1b[{number} q"));
        }
    }
}

fn needs_drawing(grid: &Grid<Cell>, line: Line) -> bool {
    glyph::goes_on(grid, line) || glyph::glyphs(&grid[line]).any(|glyph| !is_blank(&glyph))
}

fn is_blank(glyph: &Glyph) -> bool {
    glyph.letter == ' '
        && glyph.marks.is_empty()
        && CellStyle::of(glyph.cell) == CellStyle::default()
}
