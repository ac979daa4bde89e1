//! A place in the text, and what has been noticed on the way there.

use std::collections::{BTreeMap, BTreeSet};

use crate::heredoc::{HeredocBody, Pending};
use crate::{MarkKind, Span, TOO_COMPLEX, Unknown};

/// Levels of nesting of any kind. People stay below ten; the stack of a
/// thread holds several times this.
const MAX_DEPTH: usize = 100;

/// Commands, words and expansions of one text; see below what each counts. Each takes time
/// and memory here and with everybody who walks through the tree.
const MAX_NODES: usize = 60_000;

/// Nodes that something counts as, by the time and memory it takes.
pub(crate) const COMMAND_NODES: usize = 5;
pub(crate) const EXPANSION_NODES: usize = 2;
/// Beside the words that they have.
pub(crate) const ASSIGNMENT_NODES: usize = 1;
pub(crate) const REDIRECTION_NODES: usize = 1;
/// A word made from braces: it was copied for each pair of them.
pub(crate) const BRACE_WORD_NODES: usize = 3;

/// Why a text cannot be read on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParseStop(pub(crate) &'static str);

pub(crate) type Result<T> = std::result::Result<T, ParseStop>;

/// Reads a text, or a range of it, from left to right.
pub(crate) struct Parser<'a> {
    pub(crate) text: &'a str,
    pub(crate) pos: usize,
    /// The end of the range that is read now.
    pub(crate) end: usize,
    pub(crate) depth: usize,
    /// Bytes that may still be read a second time. Some texts only show at
    /// their end what they began as; this keeps that from adding up.
    pub(crate) fuel: usize,
    /// Commands and words that the tree may still get.
    pub(crate) nodes: usize,
    /// What every span is, when the text is not a part of the original.
    pub(crate) fixed: Option<Span>,
    pub(crate) posix: bool,
    /// The byte that ends the substitution being read; zero outside.
    pub(crate) closer: u8,
    /// A reserved word may follow, though there was no separator.
    pub(crate) reserved: bool,
    pub(crate) notes: Notes,
    pub(crate) pending: Vec<Pending>,
    /// Bodies of here-documents, by where their operator is.
    pub(crate) bodies: BTreeMap<usize, HeredocBody>,
    /// Where `((` turned out to be two subshells.
    pub(crate) shells: BTreeSet<usize>,
}

/// What is collected beside the tree.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) marks: Vec<(Span, MarkKind)>,
    pub(crate) bashisms: Vec<Span>,
    pub(crate) unknowns: Vec<Unknown>,
}

/// A state to return to.
pub(crate) struct SavedState {
    pub(crate) pos: usize,
    end: usize,
    depth: usize,
    closer: u8,
    lengths: [usize; 4],
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, posix: bool) -> Self {
        Parser {
            text,
            pos: 0,
            end: text.len(),
            depth: 0,
            fuel: 32 * text.len() + 65_536,
            nodes: MAX_NODES,
            fixed: None,
            posix,
            closer: 0,
            reserved: true,
            notes: Notes::default(),
            pending: vec![],
            bodies: BTreeMap::new(),
            shells: BTreeSet::new(),
        }
    }

    /// Returns the byte at a place; zero past the end.
    #[inline]
    pub(crate) fn byte(&self, at: usize) -> u8 {
        if at < self.end {
            self.text.as_bytes()[at]
        } else {
            0
        }
    }

    /// Returns where the text goes on after line continuations.
    #[inline]
    pub(crate) fn join(&self, mut at: usize) -> usize {
        while self.byte(at) == b'\\' && self.byte(at + 1) == b'\n' {
            at += 2;
        }
        at
    }

    /// Returns the next byte; zero at the end.
    #[inline]
    pub(crate) fn peek(&mut self) -> u8 {
        self.pos = self.join(self.pos);
        self.byte(self.pos)
    }

    /// Returns a byte further on.
    pub(crate) fn peek_at(&self, count: usize) -> u8 {
        let mut at = self.join(self.pos);
        for _ in 0..count {
            at = self.join(at + 1);
        }
        self.byte(at)
    }

    /// Steps over the next byte, which must be ASCII.
    pub(crate) fn bump(&mut self) {
        self.pos = (self.join(self.pos) + 1).min(self.end);
    }

    /// Steps over a text, if it is next.
    pub(crate) fn eat(&mut self, wanted: &str) -> bool {
        let mut at = self.pos;
        for byte in wanted.bytes() {
            at = self.join(at);
            if self.byte(at) != byte {
                return false;
            }
            at += 1;
        }
        self.pos = at;
        true
    }

    /// Steps over an operator, if it is next, and marks it.
    pub(crate) fn operator(&mut self, wanted: &str) -> bool {
        self.peek();
        let start = self.pos;
        let found = self.eat(wanted);
        if found {
            self.mark(start, MarkKind::Operator);
        }
        found
    }

    pub(crate) fn expect(&mut self, wanted: &str, why: &'static str) -> Result<()> {
        if self.operator(wanted) {
            Ok(())
        } else {
            Err(ParseStop(why))
        }
    }

    pub(crate) fn done(&mut self) -> bool {
        self.peek();
        self.pos >= self.end
    }

    /// Steps over what separates words of one line, and a comment.
    pub(crate) fn blank(&mut self) {
        loop {
            match self.peek() {
                b' ' | b'\t' => self.pos += 1,
                b'#' => self.comment(),
                _ => return,
            }
        }
    }

    fn comment(&mut self) {
        let start = self.pos;
        let rest = &self.text.as_bytes()[start..self.end];
        let length = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        self.pos += length;
        self.mark(start, MarkKind::Comment);
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

    pub(crate) fn span(&self, start: usize) -> Span {
        self.fixed.unwrap_or(Span {
            start,
            end: self.pos,
        })
    }

    pub(crate) fn mark(&mut self, start: usize, mark: MarkKind) {
        if self.fixed.is_none() {
            let span = self.span(start);
            self.notes.marks.push((span, mark));
        }
    }

    /// Notes that other shells read differently what began at `start`.
    pub(crate) fn bashism(&mut self, start: usize) {
        if self.posix {
            let span = self.span(start);
            self.notes.bashisms.push(span);
        }
    }

    /// Notes that what began at `start` is not understood.
    pub(crate) fn unknown(&mut self, start: usize, why: &'static str) -> Span {
        let span = self.span(start);
        self.notes.unknowns.push(Unknown { span, why });
        span
    }

    /// Goes one level deeper for as long as `read` takes.
    pub(crate) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(ParseStop("nesting that is too deep"));
        }
        self.depth += 1;
        let result = read(self)?;
        self.depth -= 1;
        Ok(result)
    }

    /// Pays for reading some bytes again.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<()> {
        self.fuel = self
            .fuel
            .checked_sub(bytes)
            .ok_or(ParseStop("text that is too ambiguous"))?;
        Ok(())
    }

    /// Pays for nodes of the tree.
    pub(crate) fn grow(&mut self, nodes: usize) -> Result<()> {
        self.nodes = self
            .nodes
            .checked_sub(nodes)
            .ok_or(ParseStop(TOO_COMPLEX))?;
        Ok(())
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

/// Tells whether a byte ends an unquoted word.
pub(crate) fn is_meta(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')'
    )
}

/// Tells whether a byte can begin the name of a variable.
pub(crate) fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(crate) fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
