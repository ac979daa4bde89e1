//! Redirections.

use crate::atoms::WordRules;
use crate::cursor::{ParseStop, REDIRECTION_NODES, Result, starts_name};
use crate::grammar::CommandReader;
use crate::{Fd, Piece, Redirect, Redirection, Word};

/// Longer ones first.
const OPERATORS: [(&str, Redirect); 12] = [
    ("&>>", Redirect::AppendBoth),
    ("&>", Redirect::WriteBoth),
    ("<<<", Redirect::HereString),
    ("<<-", Redirect::HereDocument),
    ("<<", Redirect::HereDocument),
    ("<&", Redirect::DuplicateInput),
    ("<>", Redirect::ReadWrite),
    ("<", Redirect::Read),
    (">>", Redirect::Append),
    (">&", Redirect::DuplicateOutput),
    (">|", Redirect::Clobber),
    (">", Redirect::Write),
];

impl CommandReader<'_, '_> {
    /// Reads a redirection, if there is one.
    pub(crate) fn redirection(&mut self) -> Result<Option<Redirection>> {
        let first = self.peek();
        if !matches!(first, b'<' | b'>' | b'&' | b'{') && !first.is_ascii_digit() {
            return Ok(None);
        }
        let start = self.pos;
        let fd = self.descriptor();
        let next = self.peek();
        let redirects = match next {
            b'<' | b'>' => self.peek_at(1) != b'(',
            b'&' => fd.is_none() && self.peek_at(1) == b'>',
            _ => false,
        };
        if !redirects {
            self.pos = start;
            return Ok(None);
        }
        if matches!(fd, Some(Fd::Variable(_))) {
            self.bashism(start);
        }
        self.redirect(start, fd).map(Some)
    }

    /// Reads a number or `{name}`, if a redirection follows.
    fn descriptor(&mut self) -> Option<Fd> {
        let start = self.pos;
        let fd = match self.peek() {
            b'{' => {
                self.bump();
                let name = if starts_name(self.peek()) {
                    self.name()
                } else {
                    String::new()
                };
                (!name.is_empty() && self.eat("}")).then_some(Fd::Variable(name))
            }
            b'0'..=b'9' => self.digits().parse().ok().map(Fd::Number),
            _ => None,
        };
        let follows = matches!(self.peek(), b'<' | b'>');
        let fd = fd.filter(|_| follows);
        if fd.is_none() {
            self.pos = start;
        }
        fd
    }

    fn digits(&mut self) -> String {
        let mut digits = String::new();
        while self.peek().is_ascii_digit() {
            digits.push_str(self.run(|b| !b.is_ascii_digit()));
        }
        digits
    }

    fn redirect(&mut self, start: usize, fd: Option<Fd>) -> Result<Redirection> {
        self.grow(REDIRECTION_NODES)?;
        self.peek();
        let at = self.pos;
        let found = OPERATORS.iter().find(|(sign, _)| self.operator(sign));
        let &(sign, op) = found.ok_or(ParseStop("a syntax error"))?;
        self.note_operator(at, op);
        let strip = sign == "<<-";
        let target = match op {
            Redirect::HereDocument => {
                self.blank();
                let from = self.pos;
                let delimiter = self.target(WordRules::SUBJECT)?;
                let target = self.here_document(at, strip, from, &delimiter)?;
                return Ok(Redirection {
                    fd,
                    op,
                    target,
                    span: self.span(start),
                });
            }
            Redirect::HereString => self.target(WordRules::SUBJECT)?,
            Redirect::DuplicateInput | Redirect::DuplicateOutput => self.duplicate(at, op)?,
            _ => self.target(WordRules::TARGET)?,
        };
        Ok(Redirection {
            fd,
            op,
            target,
            span: self.span(start),
        })
    }

    fn note_operator(&mut self, start: usize, op: Redirect) {
        if matches!(
            op,
            Redirect::HereString | Redirect::WriteBoth | Redirect::AppendBoth
        ) {
            self.bashism(start);
        }
    }

    /// Reads the word that every redirection must have.
    pub(crate) fn target(&mut self, rules: WordRules) -> Result<Word> {
        self.blank();
        let start = self.pos;
        let word = self.word(rules)?;
        let end = self.pos;
        self.pos = start;
        // A number in front of another redirection belongs to that one.
        if end == start || self.descriptor().is_some() {
            return Err(ParseStop("a missing file"));
        }
        self.pos = end;
        Ok(word)
    }

    /// Bash 5.2 expands a file's name after `>&` twice: even what is quoted
    /// runs in `>&'$(code)'`, and so may what is in a variable.
    fn expand_twice(&mut self, word: &mut Word) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_./-+,:=@%".contains(c);
        if word.literal().is_none_or(|text| !text.chars().all(plain)) {
            let span = self.unknown(word.span.start, "a file's name that is expanded twice");
            word.pieces.push(Piece::Unknown(span));
        }
    }

    /// Reads a descriptor, or a dash, which is a word of its own.
    fn duplicate(&mut self, operator: usize, op: Redirect) -> Result<Word> {
        self.blank();
        if self.peek() == b'-' {
            let start = self.pos;
            self.bump();
            let text = "-".to_owned();
            let pieces = vec![Piece::Text {
                text,
                quoted: false,
            }];
            return Ok(Word {
                pieces,
                span: self.span(start),
            });
        }
        let mut word = self.target(WordRules::TARGET)?;
        let is_digit = |b: u8| b.is_ascii_digit() || b == b'-';
        let file = word
            .literal()
            .is_none_or(|text| !text.bytes().all(is_digit));
        if op == Redirect::DuplicateOutput && file {
            self.bashism(operator);
            self.expand_twice(&mut word);
        }
        Ok(word)
    }
}
