//! A place in the text, and what has been noticed on the way there.

use crate::{
    Command, CommandKind, Item, Joint, List, MarkKind, Pipeline, Span, TOO_COMPLEX, Unknown,
};

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

/// Goes through a text, or a range of it, from left to right.
pub(crate) struct Cursor<'a> {
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
    pub(crate) notes: Notes,
}

/// What is collected beside the tree.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) marks: Vec<(Span, MarkKind)>,
    pub(crate) bashisms: Vec<Span>,
    pub(crate) unknowns: Vec<Unknown>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str, posix: bool) -> Self {
        Self {
            text,
            pos: 0,
            end: text.len(),
            depth: 0,
            fuel: 32 * text.len() + 65_536,
            nodes: MAX_NODES,
            fixed: None,
            posix,
            notes: Notes::default(),
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

    /// Pays for reading some bytes again.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<()> {
        self.fuel = self
            .fuel
            .checked_sub(bytes)
            .ok_or(ParseStop("text that is too ambiguous"))?;
        Ok(())
    }

    /// Pays for reading again what began at `start`.
    pub(crate) fn spend_since(&mut self, start: usize) -> Result<()> {
        self.spend(self.pos - start)
    }

    /// Pays for nodes of the tree.
    pub(crate) fn grow(&mut self, nodes: usize) -> Result<()> {
        self.nodes = self
            .nodes
            .checked_sub(nodes)
            .ok_or(ParseStop(TOO_COMPLEX))?;
        Ok(())
    }

    /// Goes one level deeper; [`Cursor::leave`] comes back.
    pub(crate) fn enter(&mut self) -> Result<()> {
        if self.depth >= MAX_DEPTH {
            return Err(ParseStop("nesting that is too deep"));
        }
        self.depth += 1;
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Steps over one character, of any width, and returns it.
    pub(crate) fn character(&mut self) -> &'a str {
        let text = self.text;
        let rest = &text[self.pos..self.end];
        let width = rest.chars().next().map_or(0, char::len_utf8);
        self.pos += width;
        &rest[..width]
    }

    /// Steps over all bytes up to one that `stops`. Those are ASCII.
    pub(crate) fn run(&mut self, stops: impl Fn(u8) -> bool) -> &'a str {
        let text = self.text;
        let rest = &text.as_bytes()[self.pos..self.end];
        let length = rest.iter().position(|&b| stops(b)).unwrap_or(rest.len());
        let start = self.pos;
        self.pos += length;
        &text[start..self.pos]
    }

    /// Reads the name of a variable.
    pub(crate) fn name(&mut self) -> String {
        let mut name = String::new();
        while in_name(self.peek()) {
            name.push_str(self.run(|b| !in_name(b)));
        }
        name
    }

    /// Tells whether the next word is exactly this one, unquoted.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.word_end(word).is_some()
    }

    fn word_end(&self, word: &str) -> Option<usize> {
        let mut at = self.pos;
        for byte in word.bytes() {
            at = self.join(at);
            if self.byte(at) != byte {
                return None;
            }
            at += 1;
        }
        let next = self.join(at);
        (next >= self.end || is_meta(self.byte(next))).then_some(at)
    }

    /// Steps over a reserved word, if it is next.
    pub(crate) fn keyword(&mut self, word: &str) -> bool {
        self.peek();
        let start = self.pos;
        let Some(end) = self.word_end(word) else {
            return false;
        };
        self.pos = end;
        self.mark(start, MarkKind::Keyword);
        true
    }

    /// Calls everything unknown.
    pub(crate) fn nothing(&mut self, why: &'static str) -> List {
        self.pos = self.end;
        List {
            items: vec![self.unknown_item(0, why)],
        }
    }

    /// Returns the rest, from `start`, as something that is not understood.
    pub(crate) fn unknown_item(&mut self, start: usize, why: &'static str) -> Item {
        let span = self.unknown(start, why);
        let command = Command {
            kind: CommandKind::Unknown,
            redirections: vec![],
            span,
        };
        let pipeline = Pipeline {
            negated: false,
            timed: false,
            stages: vec![command],
            span,
        };
        Item {
            joint: Joint::Sequence,
            pipeline,
            background: false,
        }
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
