//! What the shells of Windows have in common: commands, pipes, redirections.

use crate::cursor::{ParseStop, Parser, Result};
use crate::word::{Atoms, WordRules};
use crate::{
    Command, CommandKind, Fd, Item, Joint, List, MarkKind, Piece, Pipeline, Redirect, Redirection,
    Simple, Word,
};

/// What stands between commands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separator {
    /// Nothing: a word goes on.
    None,
    /// One sign after which the next command begins.
    Sequence(usize),
    And,
    Or,
    Pipe,
    /// The end of a block.
    Close,
}

/// What differs.
pub(crate) trait WindowsSyntax {
    /// Tells what is at a place, outside of quotes.
    fn split(&self, parser: &Parser<'_>, at: usize) -> Separator;
    /// Steps over what separates words.
    fn blank(&self, parser: &mut Parser<'_>);
    /// Reads at least one character of a word.
    fn atom(&self, parser: &mut Parser<'_>, atoms: &mut Atoms) -> Result<()>;
}

impl Parser<'_> {
    /// Reads everything up to the end.
    pub(crate) fn windows(&mut self, reader: &dyn WindowsSyntax) -> List {
        let save = self.save();
        let why = match self.windows_list(reader) {
            Ok(list) if self.pos >= self.end => return list,
            Ok(_) => "an unopened bracket",
            Err(ParseStop(why)) => why,
        };
        self.restore(&save);
        self.nothing(why)
    }

    /// Reads commands up to the end of a block.
    pub(crate) fn windows_list(&mut self, reader: &dyn WindowsSyntax) -> Result<List> {
        let mut items: Vec<Item> = vec![];
        let (mut joint, mut piped) = (Joint::Sequence, false);
        loop {
            reader.blank(self);
            let start = self.pos;
            let command = self.windows_command(reader)?;
            let empty = command.is_none();
            if let Some(command) = command {
                push(&mut items, command, joint, piped);
            }
            self.unstuck(reader, start)?;
            let (next, width) = match reader.split(self, self.pos) {
                _ if self.pos >= self.end => return Ok(List { items }),
                Separator::Close => return Ok(List { items }),
                Separator::And => (Some(Joint::And), 2),
                Separator::Or => (Some(Joint::Or), 2),
                Separator::Pipe => (None, 1),
                Separator::Sequence(width) => (Some(Joint::Sequence), width),
                Separator::None => return Err(ParseStop("a syntax error")),
            };
            let from = self.pos;
            self.pos += width;
            if self.byte(from) != b'\n' {
                self.mark(from, MarkKind::Operator);
            }
            // `a && (b` is still a condition for `b`.
            if !empty || next != Some(Joint::Sequence) {
                piped = next.is_none();
                joint = next.unwrap_or(joint);
            }
        }
    }

    /// Makes sure that reading goes on.
    fn unstuck(&mut self, reader: &dyn WindowsSyntax, start: usize) -> Result<()> {
        let stuck = self.pos == start && reader.split(self, self.pos) == Separator::None;
        if stuck && self.pos < self.end {
            Err(ParseStop("a syntax error"))
        } else {
            Ok(())
        }
    }

    fn windows_command(&mut self, reader: &dyn WindowsSyntax) -> Result<Option<Command>> {
        let start = self.pos;
        let mut simple = Simple::default();
        let mut redirections = vec![];
        let mut span = self.span(start);
        while self.pos < self.end && reader.split(self, self.pos) == Separator::None {
            match self.windows_redirection(reader)? {
                Some(redirection) => redirections.push(redirection),
                None => simple.words.push(self.windows_word(reader)?),
            }
            span = self.span(start);
            reader.blank(self);
        }
        let empty = simple.words.is_empty() && redirections.is_empty();
        let command = Command {
            kind: CommandKind::Simple(simple),
            redirections,
            span,
        };
        Ok((!empty).then_some(command))
    }

    fn windows_word(&mut self, reader: &dyn WindowsSyntax) -> Result<Word> {
        let start = self.pos;
        let mut atoms = Atoms::default();
        while self.pos < self.end
            && !matches!(
                self.byte(self.pos),
                b' ' | b'\t' | b'\r' | b'\n' | b'<' | b'>'
            )
            && reader.split(self, self.pos) == Separator::None
        {
            reader.atom(self, &mut atoms)?;
        }
        if self.pos == start {
            return Err(ParseStop("a missing word"));
        }
        let span = self.span(start);
        Ok(Word {
            pieces: atoms.pieces(RULES),
            span,
        })
    }

    /// Reads `>`, `>>`, `<` or `2>&1`, if there is one.
    fn windows_redirection(&mut self, reader: &dyn WindowsSyntax) -> Result<Option<Redirection>> {
        let start = self.pos;
        let mut fd = None;
        if matches!(self.byte(start), b'0'..=b'9' | b'*')
            && matches!(self.byte(start + 1), b'<' | b'>')
        {
            fd = char::from(self.byte(start)).to_digit(10).map(Fd::Number);
            self.pos += 1;
        }
        let at = self.pos;
        let op = if self.eat(">>") {
            Redirect::Append
        } else if self.eat(">&") {
            Redirect::DuplicateOutput
        } else if self.eat(">") {
            Redirect::Write
        } else if self.eat("<") {
            Redirect::Read
        } else {
            self.pos = start;
            return Ok(None);
        };
        self.mark(at, MarkKind::Operator);
        reader.blank(self);
        let target = self.windows_word(reader)?;
        Ok(Some(Redirection {
            fd,
            op,
            target,
            span: self.span(start),
        }))
    }

    /// Reads a sign that stands for any characters.
    pub(crate) fn wildcard(&mut self, atoms: &mut Atoms) {
        let text = self.character();
        atoms.piece(Piece::Glob(text.to_owned()));
    }

    /// Steps over what joins two lines.
    pub(crate) fn joint(&mut self, length: usize) {
        let start = self.pos;
        self.pos += length;
        self.mark(start, MarkKind::Operator);
    }

    /// Steps over a comment.
    pub(crate) fn remark(&mut self, length: usize) {
        let start = self.pos;
        self.pos += length;
        self.mark(start, MarkKind::Comment);
    }

    /// Steps over a sign that separates words but is no blank.
    pub(crate) fn separator_sign(&mut self) {
        let start = self.pos;
        self.pos += 1;
        if !matches!(self.byte(start), b' ' | b'\t' | b'\r') {
            self.mark(start, MarkKind::Operator);
        }
    }
}

/// Patterns are found while reading, and nothing else is expanded later.
const RULES: WordRules = WordRules::SUBJECT;

fn push(items: &mut Vec<Item>, command: Command, joint: Joint, piped: bool) {
    let span = command.span;
    match items.last_mut() {
        Some(item) if piped => {
            item.pipeline.span.end = span.end;
            item.pipeline.stages.push(command);
        }
        _ => {
            let pipeline = Pipeline {
                negated: false,
                timed: false,
                stages: vec![command],
                span,
            };
            items.push(Item {
                joint,
                pipeline,
                background: false,
            });
        }
    }
}
