//! Pipelines, one after another: whole texts, and lists inside of commands.

use crate::cursor::{ParseStop, Result};
use crate::grammar::CommandReader;
use crate::{
    Command, CommandKind, Fd, Item, Joint, List, Piece, Pipeline, Redirect, Redirection, Simple,
    Word,
};

/// Words that end a list.
const CLOSERS: [&str; 10] = [
    "]]", "then", "else", "elif", "fi", "do", "done", "esac", "}", "in",
];

impl CommandReader<'_, '_> {
    /// Reads everything up to the end. What the shell would refuse becomes one
    /// unknown command; the lines before it run, and so they stay.
    pub(crate) fn program(&mut self) -> List {
        let mut list = List::default();
        while self.newlines().is_ok() && !self.done() {
            let save = self.save();
            let count = list.items.len();
            if let Err(ParseStop(why)) = self.unit(&mut list.items) {
                list.items.truncate(count);
                self.restore(&save);
                self.pos = self.end;
                list.items.push(self.unknown_item(save.pos, why));
            }
        }
        self.pending.clear();
        list
    }

    /// Reads what the shell reads before it runs any of it: a line, or more
    /// if commands go on. Twice if there are here-documents, because only the
    /// first time through tells where their bodies are.
    fn unit(&mut self, items: &mut Vec<Item>) -> Result<()> {
        let (save, count, known) = (self.save(), items.len(), self.bodies.len());
        self.line(items)?;
        if self.bodies.len() > known {
            self.spend_since(save.pos)?;
            items.truncate(count);
            self.restore(&save);
            self.line(items)?;
        }
        Ok(())
    }

    fn line(&mut self, items: &mut Vec<Item>) -> Result<()> {
        loop {
            let first = items.len();
            self.chain(items)?;
            self.blank();
            if !self.done() && self.peek() != b'\n' && !self.separator(&mut items[first..]) {
                return Err(ParseStop("a syntax error"));
            }
            self.blank();
            if self.done() {
                self.read_bodies();
                return Ok(());
            }
            if self.peek() == b'\n' {
                return self.newline();
            }
        }
    }

    /// Steps over `;` or `&` after a chain.
    fn separator(&mut self, chain: &mut [Item]) -> bool {
        let (first, second) = (self.peek(), self.peek_at(1));
        if first == b';' && second != b';' && second != b'&' {
            return self.operator(";");
        }
        if first != b'&' || second == b'&' {
            return false;
        }
        for item in chain {
            item.background = true;
        }
        self.operator("&")
    }

    /// Reads pipelines up to something that is none. May find none at all.
    pub(crate) fn list(&mut self) -> Result<List> {
        let mut items = vec![];
        self.newlines()?;
        self.reserved = true;
        while self.starts_command() {
            let first = items.len();
            self.chain(&mut items)?;
            self.blank();
            if self.peek() != b'\n' && !self.separator(&mut items[first..]) {
                break;
            }
            self.reserved = true;
            self.newlines()?;
        }
        Ok(List { items })
    }

    /// Reads the list of a substitution, up to what closes it.
    pub(crate) fn substitution(&mut self) -> Result<List> {
        self.refuse_time()?;
        self.list()
    }

    /// Refuses a compound command after `time` where a substitution begins:
    /// bash 5.2 does not know the word there when it looks for the end, but
    /// does when it runs.
    fn refuse_time(&mut self) -> Result<()> {
        self.blank();
        if !self.is_word("time") {
            return Ok(());
        }
        let save = self.save();
        self.eat("time");
        self.blank();
        self.keyword("-p");
        self.blank();
        let compound = self.starts_compound();
        self.restore(&save);
        if compound {
            Err(ParseStop("`time` in a substitution"))
        } else {
            Ok(())
        }
    }

    /// Reads a list that has something in it.
    pub(crate) fn body(&mut self) -> Result<List> {
        let list = self.list()?;
        if list.items.is_empty() {
            return Err(ParseStop("a missing command"));
        }
        Ok(list)
    }

    fn starts_command(&mut self) -> bool {
        if self.done() || matches!(self.peek(), b')' | b';' | b'|') {
            return false;
        }
        if self.peek() == b'}' && self.closer == b'}' {
            return false;
        }
        if self.peek() == b'&' {
            return self.peek_at(1) == b'>';
        }
        !self.at_closer()
    }

    pub(crate) fn at_closer(&self) -> bool {
        let first = self.byte(self.join(self.pos));
        matches!(first, b't' | b'e' | b'f' | b'd' | b'}' | b'i' | b']')
            && CLOSERS.iter().any(|word| self.is_word(word))
    }

    /// Reads pipelines joined by `&&` and `||`.
    fn chain(&mut self, items: &mut Vec<Item>) -> Result<()> {
        let mut joint = Joint::Sequence;
        loop {
            let pipeline = self.pipeline()?;
            items.push(Item {
                joint,
                pipeline,
                background: false,
            });
            self.blank();
            joint = if self.operator("&&") {
                Joint::And
            } else if self.operator("||") {
                Joint::Or
            } else {
                return Ok(());
            };
            self.newlines()?;
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline> {
        self.blank();
        let start = self.pos;
        let (negated, timed) = self.prefixes()?;
        if (negated || timed) && self.ends_early() {
            let span = self.span(start);
            let kind = CommandKind::Simple(Simple::default());
            let stages = vec![Command {
                kind,
                redirections: vec![],
                span,
            }];
            return Ok(Pipeline {
                negated,
                timed,
                stages,
                span,
            });
        }
        let mut stages = vec![self.command()?];
        while self.pipe(&mut stages) {
            self.newlines()?;
            if self.is_word("!") {
                return Err(ParseStop("a reserved word out of place"));
            }
            stages.push(self.command()?);
        }
        let end = stages.last().map_or(start, |stage| stage.span.end);
        let span = self.fixed.unwrap_or(crate::Span { start, end });
        Ok(Pipeline {
            negated,
            timed,
            stages,
            span,
        })
    }

    /// Reads `!` and `time`, of which there may be several.
    fn prefixes(&mut self) -> Result<(bool, bool)> {
        let (mut negated, mut timed) = (false, false);
        loop {
            let start = self.pos;
            if self.keyword("!") {
                negated = !negated;
                // With an option that an earlier line may set, it is a pattern.
                if self.byte(self.pos) == b'(' && self.text.contains("extglob") {
                    return Err(ParseStop("an extended pattern"));
                }
            } else if self.keyword("time") {
                timed = true;
                self.bashism(start);
                self.blank();
                if self.keyword("-p") {
                    self.blank();
                }
                self.keyword("--");
            } else {
                return Ok((negated, timed));
            }
            self.blank();
        }
    }

    /// Tells whether `!` or `time` stands alone.
    fn ends_early(&mut self) -> bool {
        match self.peek() {
            b';' => !matches!(self.peek_at(1), b';' | b'&'),
            byte => byte == b'\n' || self.pos >= self.end,
        }
    }

    /// Steps over `|` or `|&`.
    fn pipe(&mut self, stages: &mut [Command]) -> bool {
        self.blank();
        if self.peek() != b'|' || self.peek_at(1) == b'|' {
            return false;
        }
        let start = self.pos;
        if !self.operator("|&") {
            return self.operator("|");
        }
        self.bashism(start);
        let span = self.span(start);
        let text = "1".to_owned();
        let target = Word {
            pieces: vec![Piece::Text {
                text,
                quoted: false,
            }],
            span,
        };
        if let Some(stage) = stages.last_mut() {
            let (fd, op) = (Some(Fd::Number(2)), Redirect::DuplicateOutput);
            stage.redirections.push(Redirection {
                fd,
                op,
                target,
                span,
            });
        }
        true
    }
}
