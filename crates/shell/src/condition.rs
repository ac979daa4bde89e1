//! `[[ … ]]`

use crate::atoms::WordRules;
use crate::cursor::{ParseStop, Result};
use crate::grammar::CommandReader;
use crate::{CommandKind, MarkKind, Piece, Word};

const UNARY: &[u8] = b"abcdefghknoprstuvwxzGLNORS";
const BINARY: [&str; 12] = [
    "=", "==", "!=", "-ef", "-eq", "-ge", "-gt", "-le", "-lt", "-ne", "-nt", "-ot",
];

impl CommandReader<'_, '_> {
    /// Reads up to `]]`.
    pub(crate) fn condition(&mut self) -> Result<CommandKind> {
        let mut words = vec![];
        self.alternatives(&mut words)?;
        if !self.keyword("]]") {
            return Err(ParseStop("an unfinished condition"));
        }
        Ok(CommandKind::Test(words))
    }

    fn alternatives(&mut self, words: &mut Vec<Word>) -> Result<()> {
        loop {
            self.condition_term(words)?;
            self.newlines()?;
            if !self.sign("&&", words) && !self.sign("||", words) {
                return Ok(());
            }
        }
    }

    fn condition_term(&mut self, words: &mut Vec<Word>) -> Result<()> {
        self.newlines()?;
        while self.is_word("!") {
            words.push(self.word(WordRules::SUBJECT)?);
            self.newlines()?;
        }
        if self.is_word("]]") {
            return Err(ParseStop("an unfinished condition"));
        }
        if self.sign("(", words) {
            self.nested(|inner| inner.alternatives(words))?;
            if !self.sign(")", words) {
                return Err(ParseStop("an unclosed parenthesis"));
            }
            return Ok(());
        }
        let unary = self.peek() == b'-' && UNARY.contains(&self.peek_at(1)) && {
            let name = format!("-{}", char::from(self.peek_at(1)));
            self.is_word(&name)
        };
        words.push(self.condition_word(WordRules::SUBJECT)?);
        self.blank();
        if unary {
            words.push(self.condition_word(WordRules::SUBJECT)?);
            return Ok(());
        }
        self.comparison(words)
    }

    /// Reads an operator and what is compared with, if there is one.
    fn comparison(&mut self, words: &mut Vec<Word>) -> Result<()> {
        let process = self.peek_at(1) == b'(';
        if !process && (self.sign("<", words) || self.sign(">", words)) {
            self.blank();
            words.push(self.condition_word(WordRules::SUBJECT)?);
            return Ok(());
        }
        let rules = if self.is_word("=~") {
            WordRules::REGEX
        } else if let Some(name) = BINARY.iter().find(|name| self.is_word(name)) {
            if name.ends_with('=') {
                WordRules::MATCH
            } else {
                WordRules::SUBJECT
            }
        } else if self.peek() == b'\n' {
            return Err(ParseStop("an unfinished condition"));
        } else {
            return Ok(());
        };
        words.push(self.word(WordRules::SUBJECT)?);
        self.blank();
        words.push(self.condition_word(rules)?);
        Ok(())
    }

    fn condition_word(&mut self, rules: WordRules) -> Result<Word> {
        let start = self.pos;
        let closes = self.is_word("]]");
        let word = self.word(rules)?;
        if self.pos == start || closes {
            return Err(ParseStop("an unfinished condition"));
        }
        let raw = &self.text[start..self.pos];
        if matches!(self.peek(), b'<' | b'>') && raw.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ParseStop("a redirection in a condition"));
        }
        Ok(word)
    }

    /// Reads an operator as a word.
    fn sign(&mut self, sign: &str, words: &mut Vec<Word>) -> bool {
        self.peek();
        let start = self.pos;
        if !self.eat(sign) {
            return false;
        }
        self.mark(start, MarkKind::Operator);
        let pieces = vec![Piece::Text {
            text: sign.to_owned(),
            quoted: false,
        }];
        words.push(Word {
            pieces,
            span: self.span(start),
        });
        true
    }
}
