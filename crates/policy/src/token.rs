//! What the words of a text are, for highlighting.

use serde::{Deserialize, Serialize};
use weighlock_shell::{
    Command, CommandKind, Dialect, MarkKind, Piece, Redirect, Simple, Span, Visit, Word, parse,
};

/// A piece of a command's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Where it is.
    pub span: Span,
    /// What it is.
    pub kind: TokenKind,
}

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// The program that runs.
    Program,
    /// An argument that begins with a dash.
    Option,
    /// Another argument.
    Argument,
    /// `NAME=value`
    Assignment,
    /// `$x`, `$(…)` and what else is expanded.
    Expansion,
    /// Where a redirection goes.
    File,
    /// The text of a here-document or here-string.
    Text,
    /// `|`, `&&`, `>`…
    Operator,
    /// `if`, `done`…
    Keyword,
    /// `# …`
    Comment,
    /// Not understood.
    Unknown,
}

/// Returns the tokens of a text in their order. One may lie inside another: an
/// expansion inside a word, a command inside an expansion.
pub fn tokens(text: &str) -> Vec<Token> {
    let script = parse(text, Dialect::Bash);
    let mut found = Tokens(vec![]);
    for (span, mark) in &script.marks {
        found.add(
            *span,
            match mark {
                MarkKind::Operator => TokenKind::Operator,
                MarkKind::Keyword => TokenKind::Keyword,
                MarkKind::Comment => TokenKind::Comment,
            },
        );
    }
    for unknown in &script.unknowns {
        found.add(unknown.span, TokenKind::Unknown);
    }
    found.list(&script.body);
    let mut tokens = found.0;
    tokens.sort_by_key(|token| (token.span.start, std::cmp::Reverse(token.span.end)));
    tokens.dedup();
    tokens
}

struct Tokens(Vec<Token>);

impl Tokens {
    fn add(&mut self, span: Span, kind: TokenKind) {
        if span.start < span.end {
            self.0.push(Token { span, kind });
        }
    }

    fn arguments<'w>(&mut self, words: impl IntoIterator<Item = &'w Word>) {
        let words = words.into_iter();
        words.for_each(|word| self.add(word.span, TokenKind::Argument));
    }

    fn simple(&mut self, simple: &Simple) {
        for set in &simple.assignments {
            self.add(set.span, TokenKind::Assignment);
        }
        for (at, word) in simple.words.iter().enumerate() {
            let dash = word.literal().is_some_and(|text| text.starts_with('-'));
            let kind = match (at, dash) {
                (0, _) => TokenKind::Program,
                (_, true) => TokenKind::Option,
                _ => TokenKind::Argument,
            };
            self.add(word.span, kind);
        }
    }
}

impl Visit for Tokens {
    fn command(&mut self, command: &Command) {
        for redirection in &command.redirections {
            let kind = match redirection.op {
                Redirect::HereDocument | Redirect::HereString => TokenKind::Text,
                _ => TokenKind::File,
            };
            self.add(redirection.target.span, kind);
        }
        match &command.kind {
            CommandKind::Simple(simple) => self.simple(simple),
            CommandKind::For { words, .. } => self.arguments(words.iter().flatten()),
            CommandKind::Case { word, arms } => {
                let patterns = arms.iter().flat_map(|arm| &arm.patterns);
                self.arguments(patterns.chain([word]));
            }
            CommandKind::Test(words) => self.arguments(words),
            _ => {}
        }
        command.inside(self);
    }

    fn piece(&mut self, piece: &Piece) {
        match piece {
            Piece::Parameter(parameter) => self.add(parameter.span, TokenKind::Expansion),
            Piece::Command(command) => self.add(command.span, TokenKind::Expansion),
            Piece::Process { span, .. } => self.add(*span, TokenKind::Expansion),
            _ => {}
        }
        piece.inside(self);
    }
}
