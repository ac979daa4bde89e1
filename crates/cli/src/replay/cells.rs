//! A row of a recorded screen, as it may be written to another.
//!
//! What an emulator shows is text already: no sequence is left. What remains
//! that could move or reorder other text takes no room, or is a blank.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

use crate::text::safe;

/// Cuts columns out of a row. One of them is shown as the cursor.
pub(super) fn cut(row: &str, columns: Range<usize>, cursor: Option<usize>) -> String {
    let mut line = RowPainter::new(columns, cursor);
    for letter in row.chars() {
        line.put(letter);
    }
    line.finish()
}

struct RowPainter {
    columns: Range<usize>,
    cursor: Option<usize>,
    /// Where the next character goes.
    column: usize,
    text: String,
    /// The last character with its accents, if it can be seen.
    seen: String,
}

const REVERSE: &str = "\x1b[7m";
const ORDINARY: &str = "\x1b[27m";

impl RowPainter {
    fn new(columns: Range<usize>, cursor: Option<usize>) -> Self {
        Self {
            columns,
            cursor,
            column: 0,
            text: String::new(),
            seen: String::new(),
        }
    }

    fn put(&mut self, letter: char) {
        match letter.width().unwrap_or(0) {
            0 => self.accent(letter),
            width if letter.is_ascii_graphic() || is_safe(letter.encode_utf8(&mut [0; 4])) => {
                self.letter(letter, width);
            }
            width => (0..width).for_each(|_| self.letter(' ', 1)),
        }
    }

    /// Puts an accent on the last character, where it is safe to.
    fn accent(&mut self, accent: char) {
        if self.seen.is_empty() {
            return;
        }
        self.seen.push(accent);
        match is_safe(&self.seen) {
            true => self.text.push(accent),
            false => drop(self.seen.pop()),
        }
    }

    fn letter(&mut self, letter: char, width: usize) {
        let range = self.column..self.column + width;
        self.column = range.end;
        let is_within = self.columns.start <= range.start && range.end <= self.columns.end;
        let touches = range.start < self.columns.end && range.end > self.columns.start;
        let is_cursor = self.cursor.is_some_and(|cursor| range.contains(&cursor));
        self.seen.clear();
        if is_within && !is_cursor {
            self.seen.push(letter);
        }
        match (is_within, touches) {
            (true, _) if is_cursor => {
                self.text.extend([REVERSE, &letter.to_string(), ORDINARY]);
            }
            (true, _) => self.text.push(letter),
            // Half a character is none.
            (false, true) => self.text.push(' '),
            (false, false) => {}
        }
    }

    fn finish(mut self) -> String {
        if let Some(cursor) = self.cursor {
            while self.column <= cursor && self.column < self.columns.end {
                self.letter(' ', 1);
            }
        }
        self.text
    }
}

fn is_safe(text: &str) -> bool {
    safe(text) == text
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_window_shows_a_part() {
        assert_eq!(cut("abcdef", 0..80, None), "abcdef");
        assert_eq!(cut("abcdef", 2..4, None), "cd");
        assert_eq!(cut("a漢字b", 0..2, None), "a ");
        assert_eq!(cut("a漢字b", 2..6, None), " 字b");
        assert_eq!(cut("abc", 5..9, None), "");
    }

    #[test]
    fn the_cursor_is_seen_wherever_it_is() {
        assert_eq!(cut("ab", 0..9, Some(1)), "a\x1b[7mb\x1b[27m");
        assert_eq!(cut("a", 0..9, Some(3)), "a  \x1b[7m \x1b[27m");
        assert_eq!(cut("a", 0..2, Some(3)), "a ");
        assert_eq!(cut("", 2..9, Some(3)), " \x1b[7m \x1b[27m");
    }

    #[test]
    fn nothing_moves_or_reorders_what_is_shown() {
        assert_eq!(cut("a\u{202E}b\u{200B}c", 0..80, None), "abc");
        assert_eq!(cut("a\u{A0}b\u{3000}c", 0..80, None), "a b  c");
        assert_eq!(cut("e\u{301}x", 0..80, None), "e\u{301}x");
        assert_eq!(cut("\x1b[31m\r\u{9b}", 0..80, None), "[31m");
    }
}
