//! Compound commands.

use crate::arithmetic::PARENTHESES;
use crate::atoms::WordRules;
use crate::cursor::{ParseStop, Result};
use crate::grammar::CommandReader;
use crate::{Arm, CommandKind, List, MarkKind, Word};

/// What begins a compound command, apart from parentheses.
const OPENERS: [&str; 8] = ["{", "[[", "if", "while", "until", "for", "case", "select"];

impl CommandReader<'_, '_> {
    pub(crate) fn starts_compound(&mut self) -> bool {
        self.peek() == b'(' || OPENERS.iter().any(|word| self.is_word(word))
    }

    /// Reads a compound command without its redirections, if there is one.
    pub(crate) fn compound(&mut self) -> Result<Option<CommandKind>> {
        let start = self.pos;
        let kind = match self.peek() {
            b'(' => self.parentheses()?,
            b'{' if self.keyword("{") => self.group()?,
            b'[' if self.keyword("[[") => {
                self.bashism(start);
                self.condition()?
            }
            b'i' if self.keyword("if") => self.branches()?,
            b'w' if self.keyword("while") => self.repeat()?,
            b'u' if self.keyword("until") => self.repeat()?,
            b'f' if self.keyword("for") => self.each(start, true)?,
            b's' if self.keyword("select") => {
                self.bashism(start);
                self.each(start, false)?
            }
            b'c' if self.keyword("case") => self.cases()?,
            _ => return Ok(None),
        };
        Ok(Some(kind))
    }

    /// Reads a word that must be here.
    fn required(&mut self, word: &str) -> Result<()> {
        self.blank();
        if self.reserved && self.keyword(word) {
            return Ok(());
        }
        Err(ParseStop("an unfinished command"))
    }

    /// Reads `(…)` or `((…))`.
    fn parentheses(&mut self) -> Result<CommandKind> {
        let start = self.pos;
        if self.peek_at(1) == b'(' {
            self.bump();
            self.peek();
            if let Some(word) = self.double_parenthesis()? {
                self.bashism(start);
                return Ok(CommandKind::Arithmetic(word));
            }
            self.pos = start;
        }
        self.operator("(");
        let list = self.body()?;
        self.expect(")", "an unclosed parenthesis")?;
        Ok(CommandKind::Subshell(list))
    }

    fn group(&mut self) -> Result<CommandKind> {
        let list = self.body()?;
        self.required("}")?;
        Ok(CommandKind::Group(list))
    }

    fn branches(&mut self) -> Result<CommandKind> {
        let mut branches = vec![];
        let mut otherwise = None;
        loop {
            let condition = self.body()?;
            self.required("then")?;
            branches.push((condition, self.body()?));
            self.blank();
            if self.reserved && self.keyword("elif") {
                continue;
            }
            if self.reserved && self.keyword("else") {
                otherwise = Some(self.body()?);
            }
            self.required("fi")?;
            return Ok(CommandKind::If {
                branches,
                otherwise,
            });
        }
    }

    fn repeat(&mut self) -> Result<CommandKind> {
        let condition = self.body()?;
        self.required("do")?;
        let body = self.body()?;
        self.required("done")?;
        Ok(CommandKind::While { condition, body })
    }

    /// Reads `do …; done` or `{ …; }`.
    fn loop_body(&mut self) -> Result<List> {
        self.newlines()?;
        let braces = self.is_word("{");
        let (open, close) = if braces { ("{", "}") } else { ("do", "done") };
        self.reserved = true;
        self.required(open)?;
        let body = self.body()?;
        self.required(close)?;
        Ok(body)
    }

    fn each(&mut self, start: usize, counts: bool) -> Result<CommandKind> {
        self.blank();
        if counts && self.peek() == b'(' && self.peek_at(1) == b'(' {
            self.operator("((");
            self.bashism(start);
            return self.count();
        }
        let from = self.pos;
        let name = self.name();
        if name.is_empty() || self.text[from..].starts_with(|c: char| c.is_ascii_digit()) {
            return Err(ParseStop("a variable whose name is not plain"));
        }
        let next = self.peek();
        if self.pos < self.end && !crate::cursor::is_meta(next) {
            return Err(ParseStop("a variable whose name is not plain"));
        }
        self.blank();
        let words = self.values()?;
        let body = self.loop_body()?;
        Ok(CommandKind::For { name, words, body })
    }

    /// Reads `in …` and what ends it.
    fn values(&mut self) -> Result<Option<Vec<Word>>> {
        if self.operator(";") {
            return Ok(None);
        }
        self.newlines()?;
        if !self.keyword("in") {
            return Ok(None);
        }
        let mut words = vec![];
        loop {
            self.blank();
            if self.operator(";") {
                return Ok(Some(words));
            }
            if self.peek() == b'\n' {
                self.newline()?;
                return Ok(Some(words));
            }
            let before = self.pos;
            self.argument(&mut words)?;
            if self.pos == before {
                return Err(ParseStop("an unfinished loop"));
            }
        }
    }

    /// Reads `…; …; …))` and the loop after it.
    fn count(&mut self) -> Result<CommandKind> {
        let mut expressions = vec![];
        loop {
            expressions.push(self.expression(PARENTHESES, b";")?);
            if !self.operator(";") {
                break;
            }
        }
        self.expect("))", "an unclosed parenthesis")?;
        if expressions.len() != 3 {
            return Err(ParseStop("a loop without three expressions"));
        }
        self.blank();
        self.operator(";");
        let body = self.loop_body()?;
        Ok(CommandKind::Count { expressions, body })
    }

    fn cases(&mut self) -> Result<CommandKind> {
        self.blank();
        let from = self.pos;
        let word = self.word(WordRules::SUBJECT)?;
        if self.pos == from {
            return Err(ParseStop("a missing word"));
        }
        self.newlines()?;
        self.reserved = true;
        self.required("in")?;
        let mut arms = vec![];
        loop {
            self.newlines()?;
            if self.keyword("esac") {
                return Ok(CommandKind::Case { word, arms });
            }
            arms.push(self.arm()?);
            self.blank();
            if !self.arm_end() {
                self.required("esac")?;
                return Ok(CommandKind::Case { word, arms });
            }
        }
    }

    fn arm(&mut self) -> Result<Arm> {
        self.operator("(");
        let mut patterns = vec![];
        loop {
            self.blank();
            let from = self.pos;
            patterns.push(self.word(WordRules::MATCH)?);
            if self.pos == from {
                return Err(ParseStop("a missing pattern"));
            }
            self.blank();
            if self.peek() == b'|' && self.peek_at(1) != b'|' && self.peek_at(1) != b'&' {
                self.operator("|");
                continue;
            }
            self.expect(")", "an unfinished pattern")?;
            let body = self.list()?;
            return Ok(Arm { patterns, body });
        }
    }

    /// Steps over `;;`, `;&` or `;;&`.
    fn arm_end(&mut self) -> bool {
        let start = self.pos;
        let plain = !self.eat(";;&") && !self.eat(";&");
        if plain && !self.eat(";;") {
            return false;
        }
        self.mark(start, MarkKind::Operator);
        if !plain {
            self.bashism(start);
        }
        true
    }
}
