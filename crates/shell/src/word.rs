//! Words: what stands between blanks and operators.

use crate::atoms::{Atom, Atoms, Braces, Extended, Quoting, WordRules};
use crate::cursor::{BRACE_WORD_NODES, ParseStop, Result, is_meta};
use crate::reader::WordReader;
use crate::{Piece, Word};

impl WordReader<'_> {
    /// Reads one word where braces make no others.
    pub(crate) fn word(&mut self, rules: WordRules) -> Result<Word> {
        self.grow(1)?;
        self.peek();
        let start = self.pos;
        let mut atoms = Atoms::default();
        self.atoms(&mut atoms, rules)?;
        let span = self.span(start);
        if rules.braces == Braces::Refuse && self.expands(&atoms) {
            let span = self.unknown(start, "braces in a redirection");
            return Ok(Word {
                pieces: vec![Piece::Unknown(span)],
                span,
            });
        }
        Ok(Word {
            pieces: atoms.pieces(rules),
            span,
        })
    }

    /// Reads one word, which braces may make several of.
    pub(crate) fn argument(&mut self, words: &mut Vec<Word>) -> Result<()> {
        self.peek();
        let start = self.pos;
        let mut atoms = Atoms::default();
        self.atoms(&mut atoms, WordRules::ARGUMENT)?;
        let before = words.len();
        self.spread(start, atoms, words);
        let made = &words[before..];
        let each = if made.len() > 1 { BRACE_WORD_NODES } else { 1 };
        let pieces: usize = made.iter().map(|word| word.pieces.len()).sum();
        self.grow(each * made.len() + pieces / 2)
    }

    /// Reads up to what ends a word.
    pub(crate) fn atoms(&mut self, atoms: &mut Atoms, rules: WordRules) -> Result<()> {
        loop {
            let run = self.run(is_special);
            if !run.is_empty() {
                atoms.plain(run);
            }
            if self.done() {
                return Ok(());
            }
            let byte = self.peek();
            match byte {
                b'(' if rules.extended == Extended::Regex => self.regex_group(atoms)?,
                b'|' if rules.extended == Extended::Regex => {
                    self.pos += 1;
                    atoms.plain("|");
                }
                b'(' if ends_in_prefix(atoms) => self.extended(atoms, rules)?,
                b'<' | b'>' if self.peek_at(1) == b'(' => self.process(atoms)?,
                _ if is_meta(byte) => return Ok(()),
                b'\\' if self.pos + 1 >= self.end => self.last_backslash(atoms),
                _ => self.special(atoms)?,
            }
        }
    }

    /// Reads a backslash that nothing follows. It is a plain one, but bash
    /// forgets it at the end of a command of several lines.
    fn last_backslash(&mut self, atoms: &mut Atoms) {
        let start = self.pos;
        self.pos += 1;
        if self.end == self.text.len() && self.text[..start].contains('\n') {
            let span = self.unknown(start, "a backslash at the end of several lines");
            atoms.piece(Piece::Unknown(span));
        } else {
            atoms.quoted("\\");
        }
    }

    /// Reads a quote, an escape or an expansion outside of double quotes.
    pub(crate) fn special(&mut self, atoms: &mut Atoms) -> Result<()> {
        match self.peek() {
            b'\'' => self.single(atoms),
            b'"' => self.double(atoms),
            b'`' => self.backquote(atoms, Quoting::Bare),
            b'$' => self.dollar(atoms, Quoting::Bare),
            b'\\' => {
                self.pos += 1;
                let next = self.character();
                atoms.quoted(next);
                Ok(())
            }
            _ => {
                let next = self.character();
                atoms.plain(next);
                Ok(())
            }
        }
    }

    /// Reads `(…)` in a regular expression, where blanks are plain.
    fn regex_group(&mut self, atoms: &mut Atoms) -> Result<()> {
        let mut depth = 0;
        loop {
            if self.done() {
                return Err(ParseStop("an unclosed parenthesis"));
            }
            match self.peek() {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            let run = self.run(|b| is_special(b) && b != b' ');
            if run.is_empty() {
                self.special(atoms)?;
            } else {
                atoms.plain(run);
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Reads `(…)` after `@` and its kin.
    fn extended(&mut self, atoms: &mut Atoms, rules: WordRules) -> Result<()> {
        let start = self.pos - 1;
        let sign = match atoms.0.last_mut() {
            Some(Atom::Plain(text)) => text.pop(),
            _ => None,
        };
        let from = self.pos;
        let mut inside = Atoms::default();
        self.regex_group(&mut inside)?;
        let raw = &self.text[from..self.pos];
        if rules.extended != Extended::Pattern || raw.contains('\n') {
            let span = self.unknown(start, "an extended pattern");
            atoms.piece(Piece::Unknown(span));
            return Ok(());
        }
        self.bashism(start);
        if raw.contains(['$', '`', '\'', '"', '\\']) {
            atoms.piece(Piece::Glob(sign.into_iter().collect()));
            atoms.0.extend(inside.0);
        } else {
            atoms.piece(Piece::Glob(sign.into_iter().chain(raw.chars()).collect()));
        }
        Ok(())
    }
}

fn ends_in_prefix(atoms: &Atoms) -> bool {
    matches!(atoms.0.last(), Some(Atom::Plain(text)) if text.ends_with(['?', '*', '+', '@', '!']))
}

fn is_special(byte: u8) -> bool {
    is_meta(byte) || matches!(byte, b'\'' | b'"' | b'`' | b'$' | b'\\')
}
