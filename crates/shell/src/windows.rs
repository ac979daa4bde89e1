//! What the shells of Windows have in common: commands, pipes, redirections.

use crate::atoms::{Atoms, WordRules};
use crate::cursor::{Cursor, ParseStop, Result};
use crate::reader::WordReader;
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
    fn split(&self, parser: &Cursor<'_>, at: usize) -> Separator;
    /// Steps over what separates words.
    fn blank(&self, parser: &mut Cursor<'_>);
    /// Reads at least one character of a word.
    fn atom(&self, parser: &mut WordReader<'_>, atoms: &mut Atoms) -> Result<()>;
}

/// Reads the commands of a Windows shell.
pub(crate) struct WindowsReader<'r, 'a> {
    pub(crate) words: &'r mut WordReader<'a>,
    pub(crate) syntax: &'static dyn WindowsSyntax,
}

impl WindowsReader<'_, '_> {
    /// Reads everything up to the end.
    pub(crate) fn program(&mut self) -> List {
        let save = self.words.save();
        let why = match self.list() {
            Ok(list) if self.words.pos >= self.words.end => return list,
            Ok(_) => "an unopened bracket",
            Err(ParseStop(why)) => why,
        };
        self.words.restore(&save);
        self.words.nothing(why)
    }

    /// Reads commands up to the end of a block.
    pub(crate) fn list(&mut self) -> Result<List> {
        let mut items: Vec<Item> = vec![];
        let (mut joint, mut piped) = (Joint::Sequence, false);
        loop {
            self.syntax.blank(self.words);
            let start = self.words.pos;
            let command = self.command()?;
            let empty = command.is_none();
            if let Some(command) = command {
                push(&mut items, command, joint, piped);
            }
            self.unstuck(start)?;
            let (next, width) = match self.syntax.split(self.words, self.words.pos) {
                _ if self.words.pos >= self.words.end => return Ok(List { items }),
                Separator::Close => return Ok(List { items }),
                Separator::And => (Some(Joint::And), 2),
                Separator::Or => (Some(Joint::Or), 2),
                Separator::Pipe => (None, 1),
                Separator::Sequence(width) => (Some(Joint::Sequence), width),
                Separator::None => return Err(ParseStop("a syntax error")),
            };
            let from = self.words.pos;
            self.words.pos += width;
            if self.words.byte(from) != b'\n' {
                self.words.mark(from, MarkKind::Operator);
            }
            // `a && (b` is still a condition for `b`.
            if !empty || next != Some(Joint::Sequence) {
                piped = next.is_none();
                joint = next.unwrap_or(joint);
            }
        }
    }

    /// Makes sure that reading goes on.
    fn unstuck(&mut self, start: usize) -> Result<()> {
        let stuck = self.words.pos == start
            && self.syntax.split(self.words, self.words.pos) == Separator::None;
        if stuck && self.words.pos < self.words.end {
            Err(ParseStop("a syntax error"))
        } else {
            Ok(())
        }
    }

    fn command(&mut self) -> Result<Option<Command>> {
        let start = self.words.pos;
        let mut simple = Simple::default();
        let mut redirections = vec![];
        let mut span = self.words.span(start);
        while self.words.pos < self.words.end
            && self.syntax.split(self.words, self.words.pos) == Separator::None
        {
            match self.redirection()? {
                Some(redirection) => redirections.push(redirection),
                None => simple.words.push(self.word()?),
            }
            span = self.words.span(start);
            self.syntax.blank(self.words);
        }
        let empty = simple.words.is_empty() && redirections.is_empty();
        let command = Command {
            kind: CommandKind::Simple(simple),
            redirections,
            span,
        };
        Ok((!empty).then_some(command))
    }

    fn word(&mut self) -> Result<Word> {
        let start = self.words.pos;
        let mut atoms = Atoms::default();
        while self.words.pos < self.words.end
            && !matches!(
                self.words.byte(self.words.pos),
                b' ' | b'\t' | b'\r' | b'\n' | b'<' | b'>'
            )
            && self.syntax.split(self.words, self.words.pos) == Separator::None
        {
            self.syntax.atom(self.words, &mut atoms)?;
        }
        if self.words.pos == start {
            return Err(ParseStop("a missing word"));
        }
        let span = self.words.span(start);
        Ok(Word {
            pieces: atoms.pieces(RULES),
            span,
        })
    }

    /// Reads `>`, `>>`, `<` or `2>&1`, if there is one.
    fn redirection(&mut self) -> Result<Option<Redirection>> {
        let start = self.words.pos;
        let mut fd = None;
        if matches!(self.words.byte(start), b'0'..=b'9' | b'*')
            && matches!(self.words.byte(start + 1), b'<' | b'>')
        {
            fd = char::from(self.words.byte(start))
                .to_digit(10)
                .map(Fd::Number);
            self.words.pos += 1;
        }
        let at = self.words.pos;
        let op = if self.words.eat(">>") {
            Redirect::Append
        } else if self.words.eat(">&") {
            Redirect::DuplicateOutput
        } else if self.words.eat(">") {
            Redirect::Write
        } else if self.words.eat("<") {
            Redirect::Read
        } else {
            self.words.pos = start;
            return Ok(None);
        };
        self.words.mark(at, MarkKind::Operator);
        self.syntax.blank(self.words);
        let target = self.word()?;
        Ok(Some(Redirection {
            fd,
            op,
            target,
            span: self.words.span(start),
        }))
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

/// Reads a sign that stands for any characters.
pub(crate) fn wildcard(cursor: &mut Cursor<'_>, atoms: &mut Atoms) {
    let text = cursor.character();
    atoms.piece(Piece::Glob(text.to_owned()));
}

/// Steps over what joins two lines.
pub(crate) fn joint(cursor: &mut Cursor<'_>, length: usize) {
    let start = cursor.pos;
    cursor.pos += length;
    cursor.mark(start, MarkKind::Operator);
}

/// Steps over a comment.
pub(crate) fn remark(cursor: &mut Cursor<'_>, length: usize) {
    let start = cursor.pos;
    cursor.pos += length;
    cursor.mark(start, MarkKind::Comment);
}

/// Steps over a sign that separates words but is no blank.
pub(crate) fn separator_sign(cursor: &mut Cursor<'_>) {
    let start = cursor.pos;
    cursor.pos += 1;
    if !matches!(cursor.byte(start), b' ' | b'\t' | b'\r') {
        cursor.mark(start, MarkKind::Operator);
    }
}
