//! Commands: which kind it is, and the simple ones.

use crate::atoms::{Atoms, WordRules};
use crate::cursor::{
    ASSIGNMENT_NODES, COMMAND_NODES, ParseStop, Result, in_name, is_meta, starts_name,
};
use crate::grammar::CommandReader;
use crate::{Command, CommandKind, Redirection, Simple};

/// Commands whose arguments may be arrays: `declare a=(…)`.
const DECLARATIONS: [&str; 8] = [
    "alias", "declare", "eval", "export", "let", "local", "readonly", "typeset",
];

impl CommandReader<'_, '_> {
    pub(crate) fn command(&mut self) -> Result<Command> {
        self.grow(COMMAND_NODES)?;
        self.blank();
        let start = self.pos;
        if let Some(kind) = self.nested(|inner| inner.compound())? {
            return self.finish(start, kind);
        }
        if self.keyword("coproc") {
            return self.nested(|inner| inner.coprocess(start));
        }
        if self.keyword("function") {
            self.bashism(start);
            return self.nested(|inner| inner.function_keyword(start));
        }
        if self.at_closer() {
            return Err(ParseStop("a reserved word out of place"));
        }
        self.simple(start)
    }

    /// Reads the redirections after a compound command.
    fn finish(&mut self, start: usize, kind: CommandKind) -> Result<Command> {
        self.reserved = true;
        let mut span = self.span(start);
        let mut redirections = vec![];
        self.blank();
        while let Some(redirection) = self.redirection()? {
            span = self.span(start);
            redirections.push(redirection);
            self.reserved = false;
            self.blank();
        }
        Ok(Command {
            kind,
            redirections,
            span,
        })
    }

    fn simple(&mut self, start: usize) -> Result<Command> {
        let mut simple = Simple::default();
        let mut redirections: Vec<Redirection> = vec![];
        let (mut span, mut declares) = (self.span(start), false);
        loop {
            self.blank();
            let from = self.pos;
            if let Some(redirection) = self.redirection()? {
                redirections.push(redirection);
                declares = false;
            } else if self.at_word_end() {
                break;
            } else if simple.words.is_empty() {
                if let Some(assignment) = self.assignment()? {
                    self.grow(ASSIGNMENT_NODES)?;
                    simple.assignments.push(assignment);
                } else {
                    self.argument(&mut simple.words)?;
                    let raw = &self.text[from..self.pos];
                    declares = DECLARATIONS.contains(&raw);
                    if from == start && self.opens_function() {
                        let name = raw.to_owned();
                        return self.function(start, name);
                    }
                }
            } else if !declares || !self.declaration(&mut simple.words)? {
                self.argument(&mut simple.words)?;
            }
            span = self.span(start);
        }
        if span.start == span.end {
            return Err(ParseStop("a missing command"));
        }
        self.reserved = false;
        Ok(Command {
            kind: CommandKind::Simple(simple),
            redirections,
            span,
        })
    }

    fn at_word_end(&mut self) -> bool {
        let byte = self.peek();
        let process = matches!(byte, b'<' | b'>') && self.peek_at(1) == b'(';
        self.pos >= self.end || (is_meta(byte) && !process)
    }

    fn opens_function(&mut self) -> bool {
        self.blank();
        self.peek() == b'('
    }

    /// Reads `() …` after a name.
    fn function(&mut self, start: usize, name: String) -> Result<Command> {
        self.expect("(", "a syntax error")?;
        self.blank();
        self.expect(")", "a syntax error")?;
        self.nested(|inner| inner.function_body(start, name))
    }

    /// Reads `NAME [()] …` after `function`.
    fn function_keyword(&mut self, start: usize) -> Result<Command> {
        self.blank();
        let from = self.pos;
        if self.at_word_end() {
            return Err(ParseStop("a missing name"));
        }
        self.argument(&mut vec![])?;
        let name = self.text[from..self.pos].to_owned();
        self.blank();
        let save = self.save();
        if self.operator("(") {
            self.blank();
            if !self.operator(")") {
                self.restore(&save);
            }
        }
        self.function_body(start, name)
    }

    fn function_body(&mut self, start: usize, name: String) -> Result<Command> {
        if name.contains([
            '\'', '"', '\\', '$', '`', '<', '>', '\n', '{', '*', '?', '[',
        ]) {
            return Err(ParseStop("a function whose name is not plain"));
        }
        self.newlines()?;
        let body = Box::new(self.compound_command()?);
        let kind = CommandKind::Function { name, body };
        Ok(Command {
            kind,
            redirections: vec![],
            span: self.span(start),
        })
    }

    fn compound_command(&mut self) -> Result<Command> {
        let start = self.pos;
        match self.nested(|inner| inner.compound())? {
            Some(kind) => self.finish(start, kind),
            None => Err(ParseStop("a missing compound command")),
        }
    }

    /// Tells whether a reserved word is next that a coprocess cannot have.
    fn at_misplaced(&self) -> bool {
        self.at_closer()
            || ["!", "coproc", "function"]
                .iter()
                .any(|word| self.is_word(word))
    }

    /// Reads a name, if a compound command follows.
    fn coprocess_name(&mut self) -> Result<Option<String>> {
        if self.starts_compound() {
            return Ok(None);
        }
        let save = self.save();
        self.atoms(&mut Atoms::default(), WordRules::ARGUMENT)?;
        let name = self.text[save.pos..self.pos].to_owned();
        let blank = matches!(self.peek(), b' ' | b'\t');
        self.blank();
        if blank && !name.is_empty() && self.starts_compound() {
            let plain = name.bytes().all(in_name);
            return plain
                .then_some(Some(name))
                .ok_or(ParseStop("a name that is not plain"));
        }
        if self.at_misplaced() || (starts_name(self.peek()) && self.assigns()) {
            return Err(ParseStop("a word out of place"));
        }
        self.spend_since(save.pos)?;
        self.restore(&save);
        Ok(None)
    }

    /// Reads what follows `coproc`.
    fn coprocess(&mut self, start: usize) -> Result<Command> {
        self.blank();
        if self.at_misplaced() {
            return Err(ParseStop("a reserved word out of place"));
        }
        let name = self.coprocess_name()?;
        let from = self.pos;
        let body = match self.nested(|inner| inner.compound())? {
            Some(kind) => self.finish(from, kind)?,
            None => self.simple(from)?,
        };
        if matches!(body.kind, CommandKind::Function { .. }) {
            return Err(ParseStop("a function as a coprocess"));
        }
        let span = self.span(start);
        self.bashism(start);
        let kind = CommandKind::Coprocess {
            name,
            body: Box::new(body),
        };
        Ok(Command {
            kind,
            redirections: vec![],
            span,
        })
    }
}
