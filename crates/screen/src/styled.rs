//! Lines of output one by one, with their colours.
//!
//! Unlike [`crate::Plain`], a line stays what it is by number: what a program
//! draws over within a line is resolved, and what it would draw over in lines
//! above is left out. So any line can be shown without all those before it.

use alacritty_terminal::vte::{Params, Parser, Perform};

use crate::plain::line::TextLine;
use crate::strings::Strings;

/// Blanks that moving the cursor may add to a line, for each byte of it.
const BLANKS_PER_BYTE: usize = 16;

/// Columns of a line, whatever it says; more than any line that is handed out.
const MOST_COLUMNS: usize = 1 << 16;

/// Ends any sequence.
const CANCEL: u8 = 0x18;

/// Reads lines in their order; colours go on from one to the next.
#[derive(Default)]
pub struct Styled {
    parser: Parser,
    strings: Strings,
    row: StyledRow,
}

/// A line as it would be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StyledLine {
    /// Without escape sequences.
    pub text: String,
    /// Where it does not look as usual, in order.
    pub spans: Vec<StyledSpan>,
}

/// A part of a line that looks alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledSpan {
    /// The first byte of the text.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
    /// How it looks.
    pub look: Look,
}

/// How characters look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// The colour of the letters; the usual one if not given.
    pub foreground: Option<Colour>,
    /// The colour behind them; the usual one if not given.
    pub background: Option<Colour>,
    /// Heavier.
    pub bold: bool,
    /// Fainter.
    pub dim: bool,
    /// Slanted.
    pub italic: bool,
    /// With a line below.
    pub underline: bool,
    /// With both colours exchanged.
    pub inverse: bool,
    /// With a line through.
    pub struck: bool,
}

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// One of 256; the first 16 are those that people choose.
    Palette(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

impl Styled {
    /// Reads a line, with or without what ends it.
    pub fn line(&mut self, bytes: &[u8]) -> StyledLine {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        // No character goes on in the next line.
        let text = String::from_utf8_lossy(bytes);
        self.row.spare = BLANKS_PER_BYTE * bytes.len();
        self.strings.feed(text.as_bytes(), |piece| {
            self.parser.advance(&mut self.row, piece);
        });
        // A sequence that was not ended does not swallow what comes next.
        self.strings.feed(&[CANCEL], |piece| {
            self.parser.advance(&mut self.row, piece);
        });
        self.row.take()
    }
}

/// The line that is written to.
#[derive(Default)]
struct StyledRow {
    line: TextLine,
    /// How each column looks.
    looks: Vec<Look>,
    column: usize,
    /// Blanks that may still be added.
    spare: usize,
    look: Look,
}

impl StyledRow {
    fn take(&mut self) -> StyledLine {
        let (line, looks) = (
            std::mem::take(&mut self.line),
            std::mem::take(&mut self.looks),
        );
        self.column = 0;
        let mut styled = StyledLine::default();
        line.each(|column, text| {
            let look = looks.get(column).copied().unwrap_or_default();
            styled.add(text, look);
        });
        let mut whole = String::new();
        line.write(&mut whole);
        styled.cut(whole.len());
        styled
    }

    fn shape(&mut self, columns: std::ops::Range<usize>, look: Look) {
        let end = columns.end.min(self.line.len());
        self.looks.resize(self.line.len(), Look::default());
        if columns.start < end {
            self.looks[columns.start..end].fill(look);
        }
    }
}

impl StyledLine {
    fn add(&mut self, text: &str, look: Look) {
        let start = self.text.len();
        self.text.push_str(text);
        let end = self.text.len();
        match self.spans.last_mut() {
            Some(last) if last.end == start && last.look == look => last.end = end,
            _ if look == Look::default() => {}
            _ => self.spans.push(StyledSpan { start, end, look }),
        }
    }

    /// Leaves out what is behind.
    fn cut(&mut self, length: usize) {
        self.text.truncate(length);
        self.spans.retain(|span| span.start < length);
        if let Some(last) = self.spans.last_mut() {
            last.end = last.end.min(length);
        }
    }
}

impl Perform for StyledRow {
    fn print(&mut self, letter: char) {
        let missing = self.column.saturating_sub(self.line.len());
        let blanks = missing.min(self.spare);
        self.spare -= blanks;
        let column = self.column - missing + blanks;
        if column >= MOST_COLUMNS {
            return;
        }
        let width = self.line.put(column, letter);
        self.column = column + width;
        self.shape(column..column + width, self.look);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.column = 0,
            0x08 => self.column = self.column.saturating_sub(1),
            b'\t' if self.column < MOST_COLUMNS => {
                let from = self.column.min(self.line.len());
                self.column = self.line.put_tab(self.column);
                self.looks.resize(self.line.len(), Look::default());
                if from + 8 >= self.line.len() {
                    self.shape(from..self.line.len(), self.look);
                }
            }
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _: bool, action: char) {
        if !intermediates.is_empty() {
            return;
        }
        let first = params
            .iter()
            .next()
            .map_or(0, |param| usize::from(param[0]));
        let (count, column) = (first.max(1), self.column);
        match action {
            'm' => self.look.change(params),
            'C' => self.column = column + count,
            'D' => self.column = column.saturating_sub(count),
            'G' => self.column = count - 1,
            'K' if first == 0 => self.line.truncate(column),
            'K' if first == 1 => {
                self.line.erase(0..column + 1);
                self.shape(0..column + 1, Look::default());
            }
            'K' => self.line.truncate(0),
            'P' => {
                self.line.delete(column..column + count);
                let end = (column + count).min(self.looks.len());
                self.looks.drain(column.min(end)..end);
            }
            'X' => {
                self.line.erase(column..column + count);
                self.shape(column..column + count, Look::default());
            }
            _ => {}
        }
        self.looks.truncate(self.line.len());
    }
}

impl Look {
    /// Takes the numbers of one sequence.
    fn change(&mut self, params: &Params) {
        let mut params = params.iter();
        while let Some(param) = params.next() {
            let number = param.first().copied().unwrap_or(0);
            match number {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = param.get(1) != Some(&0),
                7 => self.inverse = true,
                9 => self.struck = true,
                21 => self.underline = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underline = false,
                27 => self.inverse = false,
                29 => self.struck = false,
                30..=37 | 90..=97 => self.foreground = Some(named(number)),
                40..=47 | 100..=107 => self.background = Some(named(number - 10)),
                39 => self.foreground = None,
                49 => self.background = None,
                38 | 48 | 58 => {
                    let colour = match param.len() {
                        1 => following(&mut params),
                        _ => inside(&param[1..]),
                    };
                    match number {
                        38 => self.foreground = colour.or(self.foreground),
                        48 => self.background = colour.or(self.background),
                        // That of the line below, which is not told.
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }
}

/// One of sixteen: 30 to 37, and 90 to 97 for the bright ones.
fn named(number: u16) -> Colour {
    let index = match number {
        90.. => number - 90 + 8,
        _ => number - 30,
    };
    Colour::Palette(u8::try_from(index).unwrap_or(7))
}

/// A colour in numbers of their own: `38;5;1` or `38;2;1;2;3`.
fn following<'a>(params: &mut impl Iterator<Item = &'a [u16]>) -> Option<Colour> {
    let mut next = || params.next().and_then(|param| param.first().copied());
    match next()? {
        5 => Some(Colour::Palette(byte(next()?))),
        2 => Some(Colour::Rgb(byte(next()?), byte(next()?), byte(next()?))),
        _ => None,
    }
}

/// A colour in one number's parts: `38:5:1`, `38:2:1:2:3` or `38:2::1:2:3`.
fn inside(parts: &[u16]) -> Option<Colour> {
    match parts {
        [5, index, ..] => Some(Colour::Palette(byte(*index))),
        [2, _, r, g, b, ..] => Some(Colour::Rgb(byte(*r), byte(*g), byte(*b))),
        [2, r, g, b] => Some(Colour::Rgb(byte(*r), byte(*g), byte(*b))),
        _ => None,
    }
}

fn byte(number: u16) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
