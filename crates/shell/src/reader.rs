//! What words are read with: the cursor, and what they leave to commands.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use crate::List;
use crate::cursor::{Cursor, Result};

/// A here-document whose body has not been reached.
pub(crate) struct PendingHeredoc {
    pub(crate) operator: usize,
    pub(crate) delimiter: String,
    pub(crate) quoted: bool,
    pub(crate) strip: bool,
}

/// Where a body is, and how it is read.
#[derive(Clone, Copy)]
pub(crate) struct HeredocBody {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) quoted: bool,
    pub(crate) strip: bool,
}

/// Reads the code inside of words, such as that of `$(…)`. It is given to the reader of words,
/// which does not know commands; those are made of words.
#[derive(Clone, Copy)]
pub(crate) struct Grammar {
    /// Reads up to the end of the range.
    pub(crate) program: fn(&mut WordReader<'_>) -> List,
    /// Reads up to what closes a substitution.
    pub(crate) substitution: fn(&mut WordReader<'_>) -> Result<List>,
}

/// Reads words, with all that may be inside of them. It moves the cursor like the cursor itself.
pub(crate) struct WordReader<'a> {
    cursor: Cursor<'a>,
    pub(crate) grammar: Grammar,
    /// The byte that ends the substitution being read; zero outside.
    pub(crate) closer: u8,
    /// A reserved word may follow, though there was no separator.
    pub(crate) reserved: bool,
    pub(crate) pending: Vec<PendingHeredoc>,
    /// Bodies of here-documents, by where their operator is.
    pub(crate) bodies: BTreeMap<usize, HeredocBody>,
    /// Where `((` turned out to be two subshells.
    pub(crate) shells: BTreeSet<usize>,
}

/// A state to return to.
pub(crate) struct SavedState {
    pub(crate) pos: usize,
    end: usize,
    depth: usize,
    closer: u8,
    lengths: [usize; 4],
}

impl<'a> Deref for WordReader<'a> {
    type Target = Cursor<'a>;

    #[inline]
    fn deref(&self) -> &Cursor<'a> {
        &self.cursor
    }
}

impl DerefMut for WordReader<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.cursor
    }
}

impl<'a> WordReader<'a> {
    pub(crate) fn new(text: &'a str, posix: bool, grammar: Grammar) -> Self {
        Self {
            cursor: Cursor::new(text, posix),
            grammar,
            closer: 0,
            reserved: true,
            pending: vec![],
            bodies: BTreeMap::new(),
            shells: BTreeSet::new(),
        }
    }

    /// Returns where it is, without what only words need.
    pub(crate) fn into_cursor(self) -> Cursor<'a> {
        self.cursor
    }

    /// Steps over blanks, comments and ends of lines.
    pub(crate) fn newlines(&mut self) -> Result<()> {
        self.blank();
        while self.peek() == b'\n' {
            self.newline()?;
            self.blank();
        }
        Ok(())
    }

    /// Steps over one end of line and the here-documents that follow it.
    pub(crate) fn newline(&mut self) -> Result<()> {
        self.pos += 1;
        self.reserved = true;
        if !self.pending.is_empty() {
            self.read_bodies();
        }
        Ok(())
    }

    /// Goes one level deeper for as long as `read` takes.
    pub(crate) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.enter()?;
        let result = read(self)?;
        self.leave();
        Ok(result)
    }

    pub(crate) fn save(&self) -> SavedState {
        let notes = &self.notes;
        SavedState {
            pos: self.pos,
            end: self.end,
            depth: self.depth,
            closer: self.closer,
            lengths: [
                notes.marks.len(),
                notes.bashisms.len(),
                notes.unknowns.len(),
                self.pending.len(),
            ],
        }
    }

    /// Returns to a state, and forgets what was noticed since.
    pub(crate) fn restore(&mut self, save: &SavedState) {
        self.pos = save.pos;
        self.end = save.end;
        self.depth = save.depth;
        self.closer = save.closer;
        self.notes.marks.truncate(save.lengths[0]);
        self.notes.bashisms.truncate(save.lengths[1]);
        self.notes.unknowns.truncate(save.lengths[2]);
        self.pending.truncate(save.lengths[3]);
    }

    /// Reads a range by itself, and stays where it was.
    pub(crate) fn within<T>(
        &mut self,
        start: usize,
        end: usize,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let pending = std::mem::take(&mut self.pending);
        let outside = (self.pos, self.end, self.closer, self.depth);
        (self.pos, self.end, self.closer) = (start, end, 0);
        let result = read(self);
        (self.pos, self.end, self.closer, self.depth) = outside;
        self.pending = pending;
        result
    }
}
