//! The text that is left of output when progress bars and colours are done.
//!
//! Unlike a screen, this has no width: lines stay as long as they are, tabs
//! stay tabs. The last lines can still be drawn over, as programs with several
//! progress bars do.

pub(crate) mod line;

use std::collections::VecDeque;

use alacritty_terminal::vte::{Params, Parser, Perform};

use crate::characters::Characters;
use crate::strings::Strings;
use line::TextLine;

/// Returns the text of output that is not of a full-screen program.
pub fn plain(bytes: &[u8]) -> String {
    let mut plain = Plain::new();
    let mut text = plain.feed(bytes);
    text.push_str(&plain.finish());
    text
}

/// As [`plain`], for output that comes in pieces. Keeps some megabytes at
/// most, however long the output and its lines are.
#[derive(Default)]
pub struct Plain {
    characters: Characters,
    strings: Strings,
    parser: Parser,
    page: EditableLines,
}

impl Plain {
    /// Returns one that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece, cut anywhere. Returns the text that no more can
    /// change.
    pub fn feed(&mut self, bytes: &[u8]) -> String {
        self.write(bytes);
        self.page.ends.clear();
        std::mem::take(&mut self.page.done)
    }

    /// As [`Plain::feed`], line by line. Each line comes with the number of
    /// the last piece that wrote to it, such as the time of that piece.
    pub fn feed_numbered(&mut self, number: u64, bytes: &[u8]) -> Vec<(u64, String)> {
        self.page.number = number;
        self.write(bytes);
        self.page.numbered()
    }

    /// Returns the rest of the text.
    pub fn finish(mut self) -> String {
        self.settle();
        self.page.done
    }

    /// Returns the rest of the lines, with their numbers.
    pub fn finish_numbered(mut self) -> Vec<(u64, String)> {
        self.settle();
        let mut lines = self.page.numbered();
        // What follows the last newline is no line when there is nothing.
        lines.pop_if(|(_, line)| line.is_empty());
        lines
    }

    fn write(&mut self, bytes: &[u8]) {
        self.page.spare += BLANKS_PER_BYTE * bytes.len();
        let bytes = self.characters.whole(bytes);
        self.strings.feed(&bytes, |piece| {
            self.parser.advance(&mut self.page, piece);
        });
    }

    fn settle(&mut self) {
        if !self.characters.open().is_empty() {
            self.page.print(char::REPLACEMENT_CHARACTER);
        }
        self.page.settle(0);
    }
}

/// Lines that can still be drawn over: more than most windows have rows.
const LINES: usize = 100;

/// Columns of all these lines; some 6 MB.
const COLUMNS: usize = 1 << 18;

/// A longer line is cut in two that are drawn over on their own.
const LINE_COLUMNS: usize = 1 << 16;

/// Blanks that moving the cursor may add, for each byte of output. Otherwise
/// few bytes could make gigabytes of them.
const BLANKS_PER_BYTE: usize = 16;

/// The lines that can still be drawn over.
struct EditableLines {
    lines: VecDeque<TextLine>,
    row: usize,
    column: usize,
    /// Columns of all lines but the one that is written to.
    columns: usize,
    /// Blanks that may still be added.
    spare: usize,
    /// Text that nothing changes any more.
    done: String,
    /// Where its lines end, and their numbers.
    ends: Vec<(usize, u64)>,
    /// The number of the piece of output that is being written.
    number: u64,
}

impl Default for EditableLines {
    fn default() -> Self {
        Self {
            lines: VecDeque::from([TextLine::default()]),
            row: 0,
            column: 0,
            columns: 0,
            spare: 0,
            done: String::new(),
            ends: vec![],
            number: 0,
        }
    }
}

impl EditableLines {
    fn line(&mut self) -> &mut TextLine {
        &mut self.lines[self.row]
    }

    /// Goes to the next line, which is a new one at the end of the page.
    fn next_line(&mut self) {
        self.row += 1;
        self.column = 0;
        if self.row == self.lines.len() {
            self.columns += self.lines[self.row - 1].len();
            self.lines.push_back(TextLine::numbered(self.number));
            while self.lines.len() > LINES || self.columns > COLUMNS {
                self.settle_first();
            }
        }
    }

    /// Settles lines from the top until so many are left.
    fn settle(&mut self, left: usize) {
        while self.lines.len() > left {
            self.settle_first();
        }
    }

    fn settle_first(&mut self) {
        if let Some(line) = self.lines.pop_front() {
            line.write(&mut self.done);
            self.columns = self.columns.saturating_sub(line.len());
            self.ends.push((self.done.len(), line.number()));
            if !self.lines.is_empty() && !line.is_cut() {
                self.done.push('\n');
            }
        }
        self.row = self.row.saturating_sub(1);
    }

    /// Takes the lines that nothing changes any more. One that was cut comes
    /// in parts, however long it is.
    fn numbered(&mut self) -> Vec<(u64, String)> {
        let done = std::mem::take(&mut self.done);
        let mut start = 0;
        let line = |(end, number)| {
            let line = done[start..end].trim_start_matches('\n').to_owned();
            start = end;
            (number, line)
        };
        std::mem::take(&mut self.ends)
            .into_iter()
            .map(line)
            .collect()
    }

    /// Leaves the page as it is and begins another below it.
    fn new_page(&mut self) {
        while self.lines.len() > 1 && self.lines.back().is_some_and(TextLine::is_empty) {
            self.lines.pop_back();
        }
        if self.lines.back().is_some_and(|line| !line.is_empty()) {
            self.row = self.lines.len() - 1;
            self.next_line();
        }
        self.settle(1);
        self.row = 0;
        self.column = 0;
    }

    fn go_to_row(&mut self, row: usize) {
        while row.min(LINES - 1) >= self.lines.len() && self.spare > 0 {
            self.spare -= 1;
            self.lines.push_back(TextLine::numbered(self.number));
        }
        self.row = row.min(self.lines.len() - 1);
    }

    fn erase_below(&mut self) {
        let column = self.column;
        self.line().truncate(column);
        self.lines.truncate(self.row + 1);
        // The one written to is the last again, and does not count.
        self.columns = self.lines.iter().map(TextLine::len).sum::<usize>() - self.line().len();
    }
}

impl Perform for EditableLines {
    fn print(&mut self, letter: char) {
        let (row, column) = (self.row, self.column);
        let missing = column.saturating_sub(self.lines[row].len());
        let blanks = missing.min(self.spare).min(LINE_COLUMNS);
        self.spare -= blanks;
        let column = column - missing + blanks;
        self.column = column + self.lines[row].put(column, letter);
        self.lines[row].set_number(self.number);
        if self.column >= LINE_COLUMNS {
            self.line().cut();
            self.next_line();
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' | 0x0B | 0x0C => self.next_line(),
            b'\r' => self.column = 0,
            0x08 => self.column = self.column.saturating_sub(1),
            b'\t' => {
                let column = self.column;
                self.column = self.line().put_tab(column);
            }
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _: bool, action: char) {
        if !intermediates.is_empty() {
            return;
        }
        let mut numbers = params.iter().map(|param| usize::from(param[0]));
        let first = numbers.next().unwrap_or(0);
        let count = first.max(1);
        let (row, column) = (self.row, self.column);
        match action {
            'A' => self.row = row.saturating_sub(count),
            'B' => self.row = (row + count).min(self.lines.len() - 1),
            'C' => self.column = column + count,
            'D' => self.column = column.saturating_sub(count),
            'E' => (self.row, self.column) = ((row + count).min(self.lines.len() - 1), 0),
            'F' => (self.row, self.column) = (row.saturating_sub(count), 0),
            'G' => self.column = count - 1,
            'H' | 'f' => {
                self.go_to_row(count - 1);
                self.column = numbers.next().unwrap_or(1).max(1) - 1;
            }
            'J' if first == 0 => self.erase_below(),
            'J' if first >= 2 => self.new_page(),
            'K' if first == 0 => self.line().truncate(column),
            'K' if first == 1 => self.line().erase(0..column + 1),
            'K' => self.line().truncate(0),
            'P' => self.line().delete(column..column + count),
            'X' => self.line().erase(column..column + count),
            _ => {}
        }
    }
}
