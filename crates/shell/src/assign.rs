//! Assignments and arrays.

use crate::arithmetic::SUBSCRIPT;
use crate::atoms::{Atoms, WordRules};
use crate::cursor::{ParseStop, Result, in_name, is_meta, starts_name};
use crate::grammar::CommandReader;
use crate::{Assignment, Piece, Value, Word};

impl CommandReader<'_, '_> {
    /// Reads an assignment, if there is one.
    pub(crate) fn assignment(&mut self) -> Result<Option<Assignment>> {
        if !starts_name(self.peek()) || !self.assigns() {
            return Ok(None);
        }
        let save = self.save();
        let start = self.pos;
        let name = self.name();
        let index = self.subscript(start)?;
        let Some(append) = self.equals() else {
            let raw = &self.text.as_bytes()[start..self.pos];
            if index.is_some() && raw.iter().any(|&b| is_meta(b)) {
                return Err(ParseStop("a subscript that is assigned nothing"));
            }
            self.spend_since(start)?;
            self.restore(&save);
            return Ok(None);
        };
        if append || index.is_some() {
            self.bashism(start);
        }
        let value = if self.peek() == b'(' {
            self.bashism(start);
            Value::Array(self.array()?)
        } else {
            Value::Scalar(self.word(WordRules::VALUE)?)
        };
        Ok(Some(Assignment {
            name,
            index,
            append,
            value,
            span: self.span(start),
        }))
    }

    /// Tells quickly whether a name is followed by what an assignment has.
    pub(crate) fn assigns(&self) -> bool {
        let mut at = self.pos;
        while in_name(self.byte(at)) {
            at += 1;
        }
        matches!(self.byte(at), b'=' | b'+' | b'[' | b'\\')
    }

    fn subscript(&mut self, start: usize) -> Result<Option<Word>> {
        if self.peek() != b'[' || self.pos == start {
            return Ok(None);
        }
        self.bump();
        let index = self.nested(|inner| inner.expression(SUBSCRIPT, b""))?;
        self.bump();
        Ok(Some(index))
    }

    /// Steps over `=` or `+=`, and returns whether it was the latter.
    fn equals(&mut self) -> Option<bool> {
        if self.eat("+=") {
            return Some(true);
        }
        self.eat("=").then_some(false)
    }

    /// Reads `(…)`.
    fn array(&mut self) -> Result<Vec<Word>> {
        self.bump();
        let words = self.nested(|inner| inner.elements())?;
        if !self.eat(")") {
            return Err(ParseStop("an unclosed array"));
        }
        if !self.done() && !is_meta(self.peek()) {
            return Err(ParseStop("text after an array"));
        }
        Ok(words)
    }

    fn elements(&mut self) -> Result<Vec<Word>> {
        let mut words = vec![];
        loop {
            self.newlines()?;
            if self.done() || self.peek() == b')' {
                return Ok(words);
            }
            let byte = self.peek();
            let process = matches!(byte, b'<' | b'>') && self.peek_at(1) == b'(';
            if is_meta(byte) && !process {
                return Err(ParseStop("an operator in an array"));
            }
            if byte != b'[' || !self.keyed(&mut words)? {
                self.argument(&mut words)?;
            }
        }
    }

    /// Reads `[index]=value`, if it is one.
    fn keyed(&mut self, words: &mut Vec<Word>) -> Result<bool> {
        let save = self.save();
        let start = self.pos;
        let mut atoms = Atoms::default();
        self.bump();
        let index = self.nested(|inner| inner.expression(SUBSCRIPT, b""))?;
        self.bump();
        let Some(append) = self.equals() else {
            let raw = &self.text.as_bytes()[start..self.pos];
            if raw.iter().any(|&b| is_meta(b)) {
                return Err(ParseStop("a subscript that is assigned nothing"));
            }
            self.spend_since(start)?;
            self.restore(&save);
            return Ok(false);
        };
        atoms.quoted("[");
        for piece in index.pieces {
            atoms.piece(piece);
        }
        atoms.quoted(if append { "]+=" } else { "]=" });
        let value = self.word(WordRules::VALUE)?;
        for piece in value.pieces {
            atoms.piece(piece);
        }
        if self.braces_in(start) {
            let span = self.unknown(start, "braces in an element of an array");
            atoms.piece(Piece::Unknown(span));
        }
        let pieces = atoms.pieces(WordRules::VALUE);
        words.push(Word {
            pieces,
            span: self.span(start),
        });
        Ok(true)
    }

    /// Tells whether there may be a brace expansion in what was read.
    fn braces_in(&self, start: usize) -> bool {
        let raw = &self.text[start..self.pos];
        raw.contains('{') && (raw.contains(',') || raw.contains(".."))
    }

    /// Reads `NAME=(…)` among the arguments of `declare`, if it is one.
    pub(crate) fn declaration(&mut self, words: &mut Vec<Word>) -> Result<bool> {
        if !starts_name(self.peek()) {
            return Ok(false);
        }
        let start = self.pos;
        let mut head = self.name();
        match self.equals() {
            Some(append) if self.peek() == b'(' => {
                head.push_str(if append { "+=" } else { "=" });
            }
            _ => {
                self.pos = start;
                return Ok(false);
            }
        }
        self.bashism(start);
        let array = Piece::Array(self.array()?);
        let text = Piece::Text {
            text: head,
            quoted: false,
        };
        words.push(Word {
            pieces: vec![text, array],
            span: self.span(start),
        });
        Ok(true)
    }
}
