//! Words: what stands between blanks and operators.

use crate::cursor::{BRACE_WORD_NODES, ParseStop, Parser, Result, is_meta};
use crate::dollar::Quoting;
use crate::{Piece, Word};

/// A part of a word before braces, tildes and patterns are looked for.
#[derive(Debug, Clone)]
pub(crate) enum Atom {
    /// Unquoted: any byte may mean something.
    Plain(String),
    Quoted(String),
    Piece(Piece),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Atoms(pub(crate) Vec<Atom>);

/// What the shell does with a word, which depends on where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordRules {
    pub(crate) braces: Braces,
    pub(crate) globs: bool,
    pub(crate) tilde: Tilde,
    pub(crate) extended: Extended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Braces {
    /// They make several words.
    Expand,
    /// They must not make several words.
    Refuse,
    /// They are plain text.
    Keep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tilde {
    /// At the start only: what braces make is no assignment to bash.
    Only,
    /// At the start, and after `=` in what looks like an assignment.
    Start,
    /// At the start and after each `:`.
    Value,
}

/// What `@(…)` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extended {
    /// It depends on an option that a text cannot show.
    Unsure,
    /// A pattern.
    Pattern,
    /// A part of a regular expression, as is every parenthesis.
    Regex,
}

impl WordRules {
    pub(crate) const ARGUMENT: WordRules = WordRules {
        braces: Braces::Expand,
        globs: true,
        tilde: Tilde::Start,
        extended: Extended::Unsure,
    };
    /// A word that braces have made.
    pub(crate) const MADE: WordRules = WordRules {
        tilde: Tilde::Only,
        ..WordRules::ARGUMENT
    };
    pub(crate) const TARGET: WordRules = WordRules {
        braces: Braces::Refuse,
        ..WordRules::ARGUMENT
    };
    pub(crate) const PATTERN: WordRules = WordRules {
        braces: Braces::Keep,
        ..WordRules::ARGUMENT
    };
    /// The word of a `case`, an operand of `[[`, a here-string.
    pub(crate) const SUBJECT: WordRules = WordRules {
        globs: false,
        ..WordRules::PATTERN
    };
    pub(crate) const VALUE: WordRules = WordRules {
        tilde: Tilde::Value,
        ..WordRules::SUBJECT
    };
    /// The right side of `==` in `[[`, where `@(…)` is always a pattern, and a
    /// pattern of `case`, where it is one or else an error.
    pub(crate) const MATCH: WordRules = WordRules {
        extended: Extended::Pattern,
        ..WordRules::PATTERN
    };
    /// The right side of `=~` in `[[`.
    pub(crate) const REGEX: WordRules = WordRules {
        extended: Extended::Regex,
        ..WordRules::SUBJECT
    };
}

impl Atoms {
    pub(crate) fn plain(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Atom::Plain(last)) => last.push_str(text),
            _ => self.0.push(Atom::Plain(text.to_owned())),
        }
    }

    pub(crate) fn quoted(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Atom::Quoted(last)) => last.push_str(text),
            _ => self.0.push(Atom::Quoted(text.to_owned())),
        }
    }

    /// Adds text that is quoted where it stands.
    pub(crate) fn text(&mut self, text: &str, quoting: Quoting) {
        if quoting == Quoting::Bare {
            self.plain(text);
        } else {
            self.quoted(text);
        }
    }

    pub(crate) fn piece(&mut self, piece: Piece) {
        self.0.push(Atom::Piece(piece));
    }
}

impl<'a> Parser<'a> {
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
