//! What the words of a text are, for highlighting.

use serde::{Deserialize, Serialize};
use weighlock_shell::{
    Command, Dialect, Kind, List, Mark, Piece, Redirect, Span, Value, Word, parse,
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
                Mark::Operator => TokenKind::Operator,
                Mark::Keyword => TokenKind::Keyword,
                Mark::Comment => TokenKind::Comment,
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

    fn list(&mut self, list: &List) {
        for item in &list.items {
            item.pipeline
                .stages
                .iter()
                .for_each(|stage| self.command(stage));
        }
    }

    fn word(&mut self, word: &Word, kind: TokenKind) {
        self.add(word.span, kind);
        self.inside(word);
    }

    fn inside(&mut self, word: &Word) {
        for piece in &word.pieces {
            match piece {
                Piece::Parameter(parameter) => {
                    self.add(parameter.span, TokenKind::Expansion);
                    parameter.operands.iter().for_each(|word| self.inside(word));
                }
                Piece::Command(substitution) => {
                    self.add(substitution.span, TokenKind::Expansion);
                    self.list(&substitution.body);
                }
                Piece::Process { body, span, .. } => {
                    self.add(*span, TokenKind::Expansion);
                    self.list(body);
                }
                Piece::Arithmetic { expression, .. } => self.inside(expression),
                Piece::Array(words) => words.iter().for_each(|word| self.inside(word)),
                _ => {}
            }
        }
    }

    fn words(&mut self, words: &[Word]) {
        words
            .iter()
            .for_each(|word| self.word(word, TokenKind::Argument));
    }

    fn command(&mut self, command: &Command) {
        for redirection in &command.redirections {
            let kind = match redirection.op {
                Redirect::HereDocument | Redirect::HereString => TokenKind::Text,
                _ => TokenKind::File,
            };
            self.word(&redirection.target, kind);
        }
        match &command.kind {
            Kind::Simple(simple) => {
                for set in &simple.assignments {
                    self.add(set.span, TokenKind::Assignment);
                    match &set.value {
                        Value::Scalar(word) => self.inside(word),
                        Value::Array(words) => words.iter().for_each(|word| self.inside(word)),
                    }
                }
                for (at, word) in simple.words.iter().enumerate() {
                    let dash = word.literal().is_some_and(|text| text.starts_with('-'));
                    self.word(
                        word,
                        match (at, dash) {
                            (0, _) => TokenKind::Program,
                            (_, true) => TokenKind::Option,
                            _ => TokenKind::Argument,
                        },
                    );
                }
            }
            Kind::Group(list) | Kind::Subshell(list) => self.list(list),
            Kind::If {
                branches,
                otherwise,
            } => {
                for (condition, body) in branches {
                    self.list(condition);
                    self.list(body);
                }
                otherwise.iter().for_each(|list| self.list(list));
            }
            Kind::While { condition, body } => {
                self.list(condition);
                self.list(body);
            }
            Kind::For { words, body, .. } => {
                self.words(words.as_deref().unwrap_or_default());
                self.list(body);
            }
            Kind::Count { expressions, body } => {
                expressions.iter().for_each(|word| self.inside(word));
                self.list(body);
            }
            Kind::Case { word, arms } => {
                self.word(word, TokenKind::Argument);
                for arm in arms {
                    self.words(&arm.patterns);
                    self.list(&arm.body);
                }
            }
            Kind::Function { body, .. } | Kind::Coprocess { body, .. } => self.command(body),
            Kind::Test(words) => self.words(words),
            Kind::Arithmetic(word) => self.inside(word),
            Kind::Unknown => {}
        }
    }
}
