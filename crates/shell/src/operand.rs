//! Operands of `${…}`: text with its own rules about quotes.

use crate::atoms::Quoting;
use crate::atoms::{Atoms, WordRules};
use crate::cursor::{ParseStop, Result};
use crate::reader::WordReader;
use crate::{Operation, Piece, Word};

/// What single quotes are in an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuoteStyle {
    Bare,
    /// In double quotes: plain text that hides a closing brace.
    Text,
    /// In double quotes, but a pattern: quotes.
    Pattern,
}

impl QuoteStyle {
    /// Returns how the operands of an operation are read.
    pub(crate) fn of(operation: Operation, quoting: Quoting) -> QuoteStyle {
        let pattern = matches!(
            operation,
            Operation::Trim | Operation::Replace | Operation::Case
        );
        match quoting {
            Quoting::Bare => QuoteStyle::Bare,
            _ if pattern => QuoteStyle::Pattern,
            _ => QuoteStyle::Text,
        }
    }
}

impl WordReader<'_> {
    /// Reads text up to one of `stops`, which it leaves.
    pub(crate) fn operand(&mut self, stops: &[u8], style: QuoteStyle) -> Result<Word> {
        self.peek();
        let start = self.pos;
        let mut atoms = Atoms::default();
        self.nested(|inner| inner.operand_atoms(&mut atoms, stops, style))?;
        let span = self.span(start);
        Ok(Word {
            pieces: atoms.pieces(WordRules::PATTERN),
            span,
        })
    }

    fn operand_atoms(&mut self, atoms: &mut Atoms, stops: &[u8], style: QuoteStyle) -> Result<()> {
        loop {
            if self.done() {
                return Err(ParseStop("an unclosed brace"));
            }
            let byte = self.peek();
            if stops.contains(&byte) {
                return Ok(());
            }
            match byte {
                b'<' | b'>' if self.peek_at(1) == b'(' => self.operand_process(atoms, style)?,
                _ if style == QuoteStyle::Bare => self.bare_part(atoms, stops)?,
                b'$' if self.peek_at(1) == b'\'' => {
                    // Bash decodes this and then expands what comes out.
                    return Err(ParseStop("a quote inside of double quotes"));
                }
                b'$' => self.dollar(atoms, Quoting::Double)?,
                b'`' => self.backquote(atoms, Quoting::Double)?,
                b'"' => self.double(atoms)?,
                b'\'' if style == QuoteStyle::Text => self.text_quote(atoms)?,
                b'\'' => self.single(atoms)?,
                b'\\' if self.byte(self.pos + 1) == b'\'' && style == QuoteStyle::Text => {
                    self.pos += 2;
                    atoms.quoted("\\'");
                }
                b'\\' if self.byte(self.pos + 1) == b'\'' => {
                    return Err(ParseStop("an escaped quote in a quoted pattern"));
                }
                b'\\' => self.double_escape(atoms, b"$`\"\\}/"),
                _ => {
                    let next = self.run_text(stops);
                    atoms.quoted(next);
                }
            }
        }
    }

    fn bare_part(&mut self, atoms: &mut Atoms, stops: &[u8]) -> Result<()> {
        if matches!(self.peek(), b'\'' | b'"' | b'`' | b'$' | b'\\') {
            return self.special(atoms);
        }
        let text = self.run_text(stops);
        atoms.plain(text);
        Ok(())
    }

    /// Steps over at least one character that means nothing.
    fn run_text(&mut self, stops: &[u8]) -> &str {
        let start = self.pos;
        self.character();
        self.run(|b| {
            matches!(b, b'\'' | b'"' | b'`' | b'$' | b'\\' | b'<' | b'>') || stops.contains(&b)
        });
        &self.text[start..self.pos]
    }

    /// Reads `<(…)` in an operand. In double quotes it is plain text to bash,
    /// but its end is looked for all the same.
    fn operand_process(&mut self, atoms: &mut Atoms, style: QuoteStyle) -> Result<()> {
        let start = self.pos;
        if style == QuoteStyle::Bare {
            return self.process(atoms);
        }
        let mut inside = Atoms::default();
        self.process(&mut inside)?;
        let span = self.unknown(start, "a quoted process substitution");
        atoms.piece(Piece::Unknown(span));
        Ok(())
    }

    /// Reads `'…'` in double quotes: plain text with expansions in it, though
    /// a brace or a quote inside does not close anything.
    fn text_quote(&mut self, atoms: &mut Atoms) -> Result<()> {
        let start = self.pos;
        let mut unused = Atoms::default();
        self.single(&mut unused)?;
        let (from, to) = (start + 1, self.pos - 1);
        let raw = &self.text[from..to];
        if raw.contains('"') {
            let span = self.unknown(start, "quotes inside of quotes");
            atoms.piece(Piece::Unknown(span));
            return Ok(());
        }
        if raw.contains('}') {
            self.bashism(start);
        }
        atoms.quoted("'");
        let inside = self.within(from, to, |inner| inner.text_atoms(atoms));
        if let Err(ParseStop(why)) = inside {
            let span = self.unknown(start, why);
            atoms.piece(Piece::Unknown(span));
        }
        atoms.quoted("'");
        Ok(())
    }

    fn text_atoms(&mut self, atoms: &mut Atoms) -> Result<()> {
        while !self.done() {
            match self.peek() {
                b'$' => self.dollar(atoms, Quoting::Double)?,
                b'`' => self.backquote(atoms, Quoting::Double)?,
                b'\\' => self.double_escape(atoms, b"$`\\}"),
                _ => {
                    let next = self.run(|b| matches!(b, b'$' | b'`' | b'\\'));
                    atoms.quoted(next);
                }
            }
        }
        Ok(())
    }
}
