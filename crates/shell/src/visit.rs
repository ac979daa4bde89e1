//! Goes through a tree from the outside in.

use crate::{Command, CommandKind, List, Piece, Simple, Value, Word};

/// Sees every node of a tree. What is overridden goes on by itself, where it
/// should, with the node's `inside`.
pub trait Visit {
    /// Sees a list.
    fn list(&mut self, list: &List) {
        list.inside(self);
    }

    /// Sees a command.
    fn command(&mut self, command: &Command) {
        command.inside(self);
    }

    /// Sees a word, also one in an expression or an expansion.
    fn word(&mut self, word: &Word) {
        word.inside(self);
    }

    /// Sees a piece of a word.
    fn piece(&mut self, piece: &Piece) {
        piece.inside(self);
    }
}

impl List {
    /// Shows the commands in it.
    pub fn inside(&self, visitor: &mut (impl Visit + ?Sized)) {
        let stages = self.items.iter().flat_map(|item| &item.pipeline.stages);
        stages.for_each(|stage| visitor.command(stage));
    }
}

impl Command {
    /// Shows the words and lists in it, those of its redirections first.
    pub fn inside(&self, visitor: &mut (impl Visit + ?Sized)) {
        let targets = self.redirections.iter().map(|to| &to.target);
        targets.for_each(|word| visitor.word(word));
        match &self.kind {
            CommandKind::Simple(simple) => simple.inside(visitor),
            CommandKind::Group(body) | CommandKind::Subshell(body) => visitor.list(body),
            CommandKind::If {
                branches,
                otherwise,
            } => {
                for (condition, body) in branches {
                    visitor.list(condition);
                    visitor.list(body);
                }
                otherwise.iter().for_each(|body| visitor.list(body));
            }
            CommandKind::While { condition, body } => {
                visitor.list(condition);
                visitor.list(body);
            }
            CommandKind::For { words, body, .. } => {
                words.iter().flatten().for_each(|word| visitor.word(word));
                visitor.list(body);
            }
            CommandKind::Count { expressions, body } => {
                expressions.iter().for_each(|word| visitor.word(word));
                visitor.list(body);
            }
            CommandKind::Case { word, arms } => {
                visitor.word(word);
                for arm in arms {
                    arm.patterns.iter().for_each(|word| visitor.word(word));
                    visitor.list(&arm.body);
                }
            }
            CommandKind::Function { body, .. } | CommandKind::Coprocess { body, .. } => {
                visitor.command(body)
            }
            CommandKind::Test(words) => words.iter().for_each(|word| visitor.word(word)),
            CommandKind::Arithmetic(word) => visitor.word(word),
            CommandKind::Unknown => {}
        }
    }
}

impl Simple {
    fn inside(&self, visitor: &mut (impl Visit + ?Sized)) {
        for set in &self.assignments {
            set.index.iter().for_each(|word| visitor.word(word));
            match &set.value {
                Value::Scalar(word) => visitor.word(word),
                Value::Array(words) => words.iter().for_each(|word| visitor.word(word)),
            }
        }
        self.words.iter().for_each(|word| visitor.word(word));
    }
}

impl Word {
    /// Shows the pieces of it.
    pub fn inside(&self, visitor: &mut (impl Visit + ?Sized)) {
        self.pieces.iter().for_each(|piece| visitor.piece(piece));
    }
}

impl Piece {
    /// Shows the words and lists in it.
    pub fn inside(&self, visitor: &mut (impl Visit + ?Sized)) {
        match self {
            Piece::Parameter(parameter) => {
                let words = parameter.index.iter().chain(&parameter.operands);
                words.for_each(|word| visitor.word(word));
            }
            Piece::Command(substitution) => visitor.list(&substitution.body),
            Piece::Process { body, .. } => visitor.list(body),
            Piece::Arithmetic { expression, .. } => visitor.word(expression),
            Piece::Array(words) => words.iter().for_each(|word| visitor.word(word)),
            Piece::Text { .. } | Piece::Glob(_) | Piece::Tilde(_) | Piece::Unknown(_) => {}
        }
    }
}
