//! Arithmetic: text that is computed, with expansions in it.

use crate::atoms::Quoting;
use crate::atoms::{Atoms, WordRules};
use crate::cursor::{ParseStop, Result};
use crate::reader::WordReader;
use crate::{Piece, Word};

/// The brackets that nest in an expression.
#[derive(Clone, Copy)]
pub(crate) struct Nest {
    open: u8,
    close: u8,
    /// `<(…)` and `>(…)` are process substitutions.
    processes: bool,
}

pub(crate) const PARENTHESES: Nest = Nest {
    open: b'(',
    close: b')',
    processes: false,
};
const BRACKETS: Nest = Nest {
    open: b'[',
    close: b']',
    processes: false,
};
/// An index of an array.
pub(crate) const SUBSCRIPT: Nest = Nest {
    processes: true,
    ..BRACKETS
};
/// The numbers of `${x:1:2}`.
pub(crate) const SLICE: Nest = Nest {
    processes: true,
    ..PARENTHESES
};

impl WordReader<'_> {
    /// Reads `(…))` if it is arithmetic: two parentheses close it, without
    /// anything between them. Otherwise stays in front of it.
    pub(crate) fn double_parenthesis(&mut self) -> Result<Option<Word>> {
        if self.shells.contains(&self.pos) {
            return Ok(None);
        }
        let save = self.save();
        self.bump();
        let word = self.expression(PARENTHESES, b"")?;
        // Bash does not join lines here, and is confused by what it sees.
        if self.byte(self.pos + 1) == b'\\' {
            return Err(ParseStop("ambiguous parentheses"));
        }
        if self.eat("))") {
            return Ok(Some(word));
        }
        self.spend_since(save.pos)?;
        self.restore(&save);
        self.shells.insert(self.pos);
        Ok(None)
    }

    /// Reads `$[…]`.
    pub(crate) fn bracketed(&mut self, quoted: bool) -> Result<Piece> {
        let start = self.pos;
        self.bump();
        self.bump();
        let expression = Box::new(self.expression(BRACKETS, b"")?);
        if !self.eat("]") {
            return Err(ParseStop("an unclosed bracket"));
        }
        self.bashism(start);
        Ok(Piece::Arithmetic { expression, quoted })
    }

    /// Reads up to what closes, or to one of `stops` outside of brackets.
    /// Leaves it.
    pub(crate) fn expression(&mut self, nest: Nest, stops: &[u8]) -> Result<Word> {
        self.peek();
        let start = self.pos;
        let mut atoms = Atoms::default();
        let mut depth = 0usize;
        let plain = |b: u8| {
            matches!(b, b'\'' | b'"' | b'`' | b'$' | b'\\')
                || b == nest.open
                || b == nest.close
                || stops.contains(&b)
                || (nest.processes && matches!(b, b'<' | b'>'))
        };
        loop {
            let run = self.run(plain);
            if !run.is_empty() {
                atoms.plain(run);
            }
            if self.done() {
                return Err(ParseStop("unclosed arithmetic"));
            }
            let byte = self.peek();
            if depth == 0 && (byte == nest.close || stops.contains(&byte)) {
                break;
            }
            if byte == nest.open {
                depth += 1;
            } else if byte == nest.close {
                depth -= 1;
            }
            self.term(&mut atoms, nest)?;
        }
        let span = self.span(start);
        Ok(Word {
            pieces: atoms.pieces(WordRules::SUBJECT),
            span,
        })
    }

    fn term(&mut self, atoms: &mut Atoms, nest: Nest) -> Result<()> {
        let start = self.pos;
        match self.peek() {
            b'<' | b'>' if nest.processes && self.peek_at(1) == b'(' => self.process(atoms),
            b'\'' => self.quoted_term(atoms),
            b'`' => self.backquote(atoms, Quoting::Double),
            b'$' if self.peek_at(1) == b'\'' => Err(ParseStop("a quote in arithmetic")),
            b'$' => {
                let braced = self.peek_at(1) == b'{';
                self.dollar(atoms, Quoting::Double)?;
                if braced && !balanced(&self.text[start..self.pos], nest) {
                    return Err(ParseStop("unbalanced brackets in arithmetic"));
                }
                Ok(())
            }
            _ => self.special(atoms),
        }
    }

    /// Reads `'…'`, which hides brackets here but no expansions.
    fn quoted_term(&mut self, atoms: &mut Atoms) -> Result<()> {
        let start = self.pos;
        let mut inside = Atoms::default();
        self.single(&mut inside)?;
        let raw = &self.text[start + 1..self.pos - 1];
        if raw.contains(['$', '`', '"', '\\']) {
            let span = self.unknown(start, "a quote in arithmetic");
            atoms.piece(Piece::Unknown(span));
        } else {
            atoms.quoted(raw);
        }
        Ok(())
    }
}

/// Tells whether brackets match when quotes mean nothing: bash counts those
/// inside of `${…}` too.
fn balanced(raw: &str, nest: Nest) -> bool {
    let mut depth = 0i64;
    for byte in raw.bytes() {
        depth += i64::from(byte == nest.open) - i64::from(byte == nest.close);
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}
