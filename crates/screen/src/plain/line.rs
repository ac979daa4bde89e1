//! A line that can be drawn over.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

/// As on every terminal.
const TAB: usize = 8;

/// Accents on one character; as on the screen.
const MOST_MARKS: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct TextLine {
    slots: Vec<ColumnSlot>,
    /// Something was drawn over: blanks at the end are leftovers.
    edited: bool,
    /// The next line belongs to this one, which was too long.
    cut: bool,
    /// Of the last piece of output that wrote to it.
    number: u64,
}

/// One column.
#[derive(Debug, Clone, PartialEq)]
enum ColumnSlot {
    Blank,
    Letter(char),
    Marked(Box<str>),
    Tab,
    /// Belongs to the character or tab before.
    Rest,
}

impl TextLine {
    pub(crate) fn numbered(number: u64) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn set_number(&mut self, number: u64) {
        self.number = number;
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    pub(crate) fn cut(&mut self) {
        self.cut = true;
    }

    /// Writes a character and returns how many columns it takes.
    pub(crate) fn put(&mut self, column: usize, letter: char) -> usize {
        let width = letter.width().unwrap_or(0);
        if width == 0 {
            self.mark(column, letter);
            return 0;
        }
        if column < self.slots.len() {
            self.erase(column..column + width);
        }
        self.grow(column + width);
        self.slots[column] = ColumnSlot::Letter(letter);
        self.slots[column + 1..column + width].fill(ColumnSlot::Rest);
        width
    }

    /// Writes a tab at the end of the line, or moves over what is there, and
    /// returns the column it leads to.
    pub(crate) fn put_tab(&mut self, column: usize) -> usize {
        let end = column - column % TAB + TAB;
        if column == self.slots.len() {
            self.slots.push(ColumnSlot::Tab);
            self.slots.resize(end, ColumnSlot::Rest);
        }
        end
    }

    pub(crate) fn truncate(&mut self, column: usize) {
        self.edited = true;
        self.split(column);
        self.slots.truncate(column);
    }

    /// Makes columns blank.
    pub(crate) fn erase(&mut self, columns: Range<usize>) {
        self.edited = true;
        let columns = self.within(columns);
        self.slots[columns].fill(ColumnSlot::Blank);
    }

    /// Takes columns out.
    pub(crate) fn delete(&mut self, columns: Range<usize>) {
        self.edited = true;
        let columns = self.within(columns);
        self.slots.drain(columns);
    }

    pub(crate) fn write(&self, text: &mut String) {
        let start = text.len();
        self.each(|_, letter| text.push_str(letter));
        if self.edited && !self.cut {
            let end = text[start..].trim_end_matches([' ', '\t']).len();
            text.truncate(start + end);
        }
    }

    /// Shows each character with its column.
    pub(crate) fn each(&self, mut show: impl FnMut(usize, &str)) {
        let mut buffer = [0; 4];
        for (column, slot) in self.slots.iter().enumerate() {
            match slot {
                ColumnSlot::Blank => show(column, " "),
                ColumnSlot::Letter(letter) => show(column, letter.encode_utf8(&mut buffer)),
                ColumnSlot::Marked(letter) => show(column, letter),
                ColumnSlot::Tab => show(column, "\t"),
                ColumnSlot::Rest => {}
            }
        }
    }

    fn mark(&mut self, column: usize, mark: char) {
        let mut before = self.slots.iter_mut().take(column).rev();
        let Some(slot) = before.find(|slot| **slot != ColumnSlot::Rest) else {
            return;
        };
        let mut text = match slot {
            ColumnSlot::Letter(letter) => letter.to_string(),
            ColumnSlot::Marked(text) => text.to_string(),
            ColumnSlot::Blank | ColumnSlot::Tab | ColumnSlot::Rest => return,
        };
        if text.chars().count() <= MOST_MARKS {
            text.push(mark);
            *slot = ColumnSlot::Marked(text.into());
        }
    }

    /// Returns the part of these columns that the line has, without half of a
    /// character at either end.
    fn within(&mut self, columns: Range<usize>) -> Range<usize> {
        let start = columns.start.min(self.slots.len());
        let end = columns.end.min(self.slots.len());
        self.split(start);
        self.split(end);
        start..end
    }

    /// Makes a character or tab blank that is on both sides of a column.
    fn split(&mut self, column: usize) {
        if self.slots.get(column) != Some(&ColumnSlot::Rest) {
            return;
        }
        let mut first = column;
        while first > 0 && self.slots[first] == ColumnSlot::Rest {
            self.slots[first] = ColumnSlot::Blank;
            first -= 1;
        }
        self.slots[first] = ColumnSlot::Blank;
        for slot in &mut self.slots[column + 1..] {
            if *slot != ColumnSlot::Rest {
                break;
            }
            *slot = ColumnSlot::Blank;
        }
    }

    fn grow(&mut self, columns: usize) {
        let columns = columns.max(self.slots.len());
        self.slots.resize(columns, ColumnSlot::Blank);
    }
}
