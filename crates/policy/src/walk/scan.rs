//! Looks through a tree for a few things that must be known beforehand.

use std::cell::RefCell;
use std::collections::HashSet;

use weighlock_shell::{Command, CommandKind, List, Operation, Piece, Simple, Value, Visit, Word};

use super::count;

/// Commands whose words name variables that they set.
const SETTERS: &[&str] = &[
    "read",
    "mapfile",
    "readarray",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "getopts",
    "printf",
    "let",
    "wait",
    "coproc",
];

/// Returns the name at each place that sets a variable, and whether it can
/// only become a number there. Too many are fine; a missing one is not.
pub(super) fn assignments(list: &List, redefined: &HashSet<String>) -> Vec<(String, bool)> {
    let names = RefCell::new(vec![]);
    let found = |name: &str, number| names.borrow_mut().push((name.to_owned(), number));
    let command = |command: &Command| match &command.kind {
        CommandKind::Simple(simple) => {
            for set in &simple.assignments {
                found(&set.name, is_number(&set.value, redefined));
            }
            if sets_by_name(&simple.words) {
                let words = simple.words[1..].iter();
                words.for_each(|word| name_in(word, |name| found(name, false)));
            }
        }
        CommandKind::For { name, .. } => found(name, false),
        CommandKind::Arithmetic(word) => calculated(word, found),
        CommandKind::Count { expressions, .. } => {
            expressions.iter().for_each(|word| calculated(word, found));
        }
        CommandKind::Coprocess { name, .. } => found(name.as_deref().unwrap_or("COPROC"), false),
        _ => {}
    };
    let piece = |piece: &Piece| match piece {
        Piece::Parameter(parameter) if parameter.operation == Operation::Assign => {
            found(&parameter.name, false);
        }
        Piece::Arithmetic { expression, .. } => calculated(expression, found),
        _ => {}
    };
    NodeVisitor { command, piece }.list(list);
    names.into_inner()
}

/// Returns the names of the functions that are defined somewhere.
pub(super) fn functions(list: &List) -> Vec<String> {
    let mut names = vec![];
    let command = |command: &Command| {
        if let CommandKind::Function { name, .. } = &command.kind {
            names.push(name.clone());
        }
    };
    let piece = |_: &Piece| {};
    NodeVisitor { command, piece }.list(list);
    names
}

/// Returns what is between the brackets of an array's element, `[…]=value`.
/// Where they end is hard to tell when there are more of them, so it is taken
/// to be at the last place that it can be.
pub(super) fn index(element: &Word) -> Option<Word> {
    let plain = |piece: &Piece| match piece {
        Piece::Glob(text) => Piece::Text {
            text: text.clone(),
            quoted: false,
        },
        other => other.clone(),
    };
    let mut pieces: Vec<Piece> = element.pieces.iter().map(plain).collect();
    let first = match pieces.first_mut()? {
        Piece::Text { text, .. } => text,
        _ => return None,
    };
    *first = first.strip_prefix('[')?.to_owned();
    let (at, end) = pieces.iter().enumerate().rev().find_map(|(at, piece)| {
        let Piece::Text { text, .. } = piece else {
            return None;
        };
        let after = match pieces.get(at + 1) {
            Some(Piece::Text { text, .. }) => text.as_str(),
            _ => "",
        };
        let both = format!("{text}{after}");
        let end = both.rfind("]=").max(both.rfind("]+="))?;
        (end < text.len()).then_some((at, end))
    })?;
    pieces.truncate(at + 1);
    if let Piece::Text { text, .. } = &mut pieces[at] {
        text.truncate(end);
    }
    Some(Word {
        pieces,
        span: element.span,
    })
}

/// Returns whether text is run in this shell that may set anything.
pub(super) fn is_wild(list: &List) -> bool {
    has_word(list, |word| {
        matches!(word, "eval" | "source" | "." | "trap")
    })
}

/// Returns whether the positional parameters are changed.
pub(super) fn shifts(list: &List) -> bool {
    has_word(list, |word| matches!(word, "shift" | "set" | "getopts"))
}

fn has_word(list: &List, wanted: fn(&str) -> bool) -> bool {
    let mut found = false;
    each_simple(|simple| {
        let mut words = simple.words.iter();
        found |= words.any(|word| match word.pieces.as_slice() {
            [Piece::Text { text, .. }] => wanted(text),
            _ => word.literal().is_some_and(|text| wanted(&text)),
        });
    })
    .list(list);
    found
}

fn calculated(expression: &Word, found: impl Fn(&str, bool)) {
    if has_assignment(expression) {
        identifiers(expression, |name| found(name, true));
    }
}

/// Returns whether what is assigned is a number, whatever happens.
fn is_number(value: &Value, redefined: &HashSet<String>) -> bool {
    let Value::Scalar(word) = value else {
        return false;
    };
    match word.pieces.as_slice() {
        [Piece::Arithmetic { .. }] => true,
        [Piece::Command(inner)] => count::only_numbers(&inner.body, redefined),
        [Piece::Text { text, .. }] => {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
        }
        _ => false,
    }
}

fn sets_by_name(words: &[Word]) -> bool {
    words.first().and_then(Word::literal).is_some_and(|name| {
        SETTERS.contains(&name.as_str()) || name == "command" || name == "builtin"
    })
}

pub(super) fn has_assignment(expression: &Word) -> bool {
    let texts = expression.pieces.iter().filter_map(|piece| match piece {
        Piece::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text: String = texts.collect();
    let bytes = text.as_bytes();
    let assigns = |at: usize| {
        bytes[at] == b'='
            && bytes.get(at + 1) != Some(&b'=')
            && !(at > 0 && matches!(bytes[at - 1], b'=' | b'!'))
    };
    text.contains("++") || text.contains("--") || (0..bytes.len()).any(assigns)
}

/// Calls for each name in an arithmetic expression.
pub(super) fn identifiers(word: &Word, mut found: impl FnMut(&str)) {
    for piece in &word.pieces {
        if let Piece::Text { text, .. } = piece {
            for name in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
                if name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                    found(name);
                }
            }
        }
    }
}

fn name_in(word: &Word, found: impl Fn(&str)) {
    if let Some(Piece::Text { text, .. }) = word.pieces.first() {
        let name = text.split(['=', '[', '+']).next().unwrap_or(text);
        if name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            found(name);
        }
    }
}

/// Commands that change the directory of the shell they are in, or may.
const MOVERS: &[&str] = &["cd", "pushd", "popd", "eval", "source", "."];

/// Calls for each variable that is in words, however deep.
pub(super) fn parameters(words: &[Word], found: &mut dyn FnMut(&str)) {
    let piece = |piece: &Piece| {
        if let Piece::Parameter(parameter) = piece {
            found(&parameter.name);
        }
    };
    let mut each = NodeVisitor {
        command: |_: &Command| {},
        piece,
    };
    words.iter().for_each(|word| each.word(word));
}

/// Returns whether a command may change the directory of the shell it is in.
pub(super) fn moves(command: &Command) -> bool {
    let mut moves = false;
    each_simple(|simple| {
        let dynamic = { simple.words.first() }.is_some_and(|word| word.literal().is_none());
        let mut first = simple.words.iter().take(3).filter_map(Word::literal);
        moves |= dynamic || first.any(|text| MOVERS.contains(&text.as_str()));
    })
    .command(command);
    moves
}

/// Returns whether a loop without end starts more and more in the background.
pub(super) fn floods(condition: &List, body: &List) -> bool {
    let endless = |item: &weighlock_shell::Item| match item.pipeline.stages.as_slice() {
        [
            Command {
                kind: CommandKind::Simple(simple),
                ..
            },
        ] => matches!(
            simple.words.as_slice(),
            [word] if matches!(word.literal().as_deref(), Some("true" | ":" | "1"))
        ),
        _ => false,
    };
    matches!(condition.items.as_slice(), [only] if endless(only))
        && !body.items.is_empty()
        && body.items.iter().all(|item| item.background)
}

/// Returns whether a function starts itself in a pipe or in the background.
pub(super) fn breeds(name: &str, body: &Command) -> bool {
    let mut breeding = Breeding { name, found: false };
    body.inside(&mut breeding);
    breeding.found
}

struct Breeding<'n> {
    name: &'n str,
    found: bool,
}

impl Breeding<'_> {
    fn calls(&self, command: &Command) -> usize {
        let mut count = 0;
        each_simple(|simple| {
            let mut words = simple.words.iter().map(Word::literal);
            count += usize::from(words.any(|word| word.as_deref() == Some(self.name)));
        })
        .command(command);
        count
    }
}

impl Visit for Breeding<'_> {
    fn list(&mut self, list: &List) {
        for item in &list.items {
            let stages = &item.pipeline.stages;
            let own: usize = stages.iter().map(|stage| self.calls(stage)).sum();
            self.found |= own > 1 && stages.len() > 1 || own > 0 && item.background;
        }
        list.inside(self);
    }

    /// What is in there runs once, for its output.
    fn word(&mut self, _: &Word) {}
}

/// Calls for every command and every piece of a word, however deep.
struct NodeVisitor<C, P> {
    command: C,
    piece: P,
}

impl<C: FnMut(&Command), P: FnMut(&Piece)> Visit for NodeVisitor<C, P> {
    fn command(&mut self, command: &Command) {
        (self.command)(command);
        command.inside(self);
    }

    fn piece(&mut self, piece: &Piece) {
        (self.piece)(piece);
        piece.inside(self);
    }
}

fn each_simple(mut found: impl FnMut(&Simple)) -> impl Visit {
    NodeVisitor {
        command: move |command: &Command| {
            if let CommandKind::Simple(simple) = &command.kind {
                found(simple);
            }
        },
        piece: |_: &Piece| {},
    }
}
