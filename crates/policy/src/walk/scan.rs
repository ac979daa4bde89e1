//! Looks through a tree for a few things that must be known beforehand.

use std::cell::RefCell;

use weighlock_shell::{Command, Kind, List, Operation, Piece, Value, Word};

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
pub(super) fn assignments(list: &List) -> Vec<(String, bool)> {
    let names = RefCell::new(vec![]);
    let found = |name: &str, number| names.borrow_mut().push((name.to_owned(), number));
    let command = &mut |command: &Command| match &command.kind {
        Kind::Simple(simple) => {
            for set in &simple.assignments {
                found(&set.name, is_number(&set.value));
            }
            if sets_by_name(&simple.words) {
                let words = simple.words[1..].iter();
                words.for_each(|word| name_in(word, |name| found(name, false)));
            }
        }
        Kind::For { name, .. } => found(name, false),
        Kind::Arithmetic(word) => calculated(word, found),
        Kind::Count { expressions, .. } => {
            expressions.iter().for_each(|word| calculated(word, found));
        }
        Kind::Coprocess { name, .. } => found(name.as_deref().unwrap_or("COPROC"), false),
        _ => {}
    };
    let piece = &mut |piece: &Piece| match piece {
        Piece::Parameter(parameter) if parameter.operation == Operation::Assign => {
            found(&parameter.name, false);
        }
        Piece::Arithmetic { expression, .. } => calculated(expression, found),
        _ => {}
    };
    each_command(list, command, piece);
    names.into_inner()
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
    let mut look = |command: &Command| {
        if let Kind::Simple(simple) = &command.kind {
            let mut words = simple.words.iter();
            found |= words.any(|word| match word.pieces.as_slice() {
                [Piece::Text { text, .. }] => wanted(text),
                _ => word.literal().is_some_and(|text| wanted(&text)),
            });
        }
    };
    each_command(list, &mut look, &mut |_| {});
    found
}

fn calculated(expression: &Word, found: impl Fn(&str, bool)) {
    if has_assignment(expression) {
        identifiers(expression, |name| found(name, true));
    }
}

/// Returns whether what is assigned is a number, whatever happens.
fn is_number(value: &Value) -> bool {
    let Value::Scalar(word) = value else {
        return false;
    };
    match word.pieces.as_slice() {
        [Piece::Arithmetic { .. }] => true,
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

fn has_assignment(expression: &Word) -> bool {
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
    for word in words {
        each_piece(word, &mut |_| {}, &mut |piece| {
            if let Piece::Parameter(parameter) = piece {
                found(&parameter.name);
            }
        });
    }
}

/// Returns whether a command may change the directory of the shell it is in.
pub(super) fn moves(command: &Command) -> bool {
    let mut moves = false;
    each_in_command(
        command,
        &mut |command| {
            if let Kind::Simple(simple) = &command.kind {
                let dynamic = simple
                    .words
                    .first()
                    .is_some_and(|word| word.literal().is_none());
                let mut first = simple.words.iter().take(3).filter_map(Word::literal);
                moves |= dynamic || first.any(|text| MOVERS.contains(&text.as_str()));
            }
        },
        &mut |_| {},
    );
    moves
}

/// Returns whether a loop without end starts more and more in the background.
pub(super) fn floods(condition: &List, body: &List) -> bool {
    let endless = |item: &weighlock_shell::Item| match item.pipeline.stages.as_slice() {
        [
            Command {
                kind: Kind::Simple(simple),
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
    fn calls(command: &Command, name: &str) -> usize {
        let mut count = 0;
        each_in_command(
            command,
            &mut |command| {
                if let Kind::Simple(simple) = &command.kind
                    && simple
                        .words
                        .iter()
                        .any(|word| word.literal().as_deref() == Some(name))
                {
                    count += 1;
                }
            },
            &mut |_| {},
        );
        count
    }
    let mut breeds = false;
    each_list(body, &mut |list| {
        for item in &list.items {
            let own: usize = item
                .pipeline
                .stages
                .iter()
                .map(|stage| calls(stage, name))
                .sum();
            breeds |= own > 1 && item.pipeline.stages.len() > 1 || own > 0 && item.background;
        }
    });
    breeds
}

fn each_list(command: &Command, visit: &mut impl FnMut(&List)) {
    lists(command, &mut |list| {
        visit(list);
        for item in &list.items {
            for stage in &item.pipeline.stages {
                each_list(stage, visit);
            }
        }
    });
}

/// Visits the lists right inside a command.
fn lists(command: &Command, visit: &mut dyn FnMut(&List)) {
    match &command.kind {
        Kind::Group(list) | Kind::Subshell(list) => visit(list),
        Kind::If {
            branches,
            otherwise,
        } => {
            for (condition, body) in branches {
                visit(condition);
                visit(body);
            }
            otherwise.iter().for_each(visit);
        }
        Kind::While { condition, body } => {
            visit(condition);
            visit(body);
        }
        Kind::For { body, .. } | Kind::Count { body, .. } => visit(body),
        Kind::Case { arms, .. } => arms.iter().for_each(|arm| visit(&arm.body)),
        Kind::Function { body, .. } | Kind::Coprocess { body, .. } => lists(body, visit),
        Kind::Simple(_) | Kind::Test(_) | Kind::Arithmetic(_) | Kind::Unknown => {}
    }
}

/// Visits every command and every piece of a word in a list, however deep.
fn each_command(list: &List, visit: &mut dyn FnMut(&Command), piece: &mut dyn FnMut(&Piece)) {
    for item in &list.items {
        for stage in &item.pipeline.stages {
            each_in_command(stage, visit, piece);
        }
    }
}

fn each_in_command(
    command: &Command,
    visit: &mut dyn FnMut(&Command),
    piece: &mut dyn FnMut(&Piece),
) {
    visit(command);
    each_word(command, &mut |word| each_piece(word, visit, piece));
    match &command.kind {
        Kind::Function { body, .. } | Kind::Coprocess { body, .. } => {
            each_in_command(body, visit, piece);
        }
        _ => lists(command, &mut |list| each_command(list, visit, piece)),
    }
}

fn each_word(command: &Command, visit: &mut dyn FnMut(&Word)) {
    match &command.kind {
        Kind::Simple(simple) => {
            for assignment in &simple.assignments {
                assignment.index.iter().for_each(&mut *visit);
                match &assignment.value {
                    Value::Scalar(word) => visit(word),
                    Value::Array(words) => words.iter().for_each(&mut *visit),
                }
            }
            simple.words.iter().for_each(&mut *visit);
        }
        Kind::For { words, .. } => words.iter().flatten().for_each(&mut *visit),
        Kind::Count { expressions, .. } => expressions.iter().for_each(&mut *visit),
        Kind::Case { word, arms } => {
            visit(word);
            arms.iter()
                .flat_map(|arm| &arm.patterns)
                .for_each(&mut *visit);
        }
        Kind::Test(words) => words.iter().for_each(&mut *visit),
        Kind::Arithmetic(word) => visit(word),
        _ => {}
    }
    command
        .redirections
        .iter()
        .for_each(|redirection| visit(&redirection.target));
}

fn each_piece(word: &Word, visit: &mut dyn FnMut(&Command), found: &mut dyn FnMut(&Piece)) {
    for piece in &word.pieces {
        found(piece);
        match piece {
            Piece::Parameter(parameter) => {
                parameter
                    .index
                    .iter()
                    .chain(&parameter.operands)
                    .for_each(|word| each_piece(word, visit, found));
            }
            Piece::Command(substitution) => each_command(&substitution.body, visit, found),
            Piece::Process { body, .. } => each_command(body, visit, found),
            Piece::Arithmetic { expression, .. } => each_piece(expression, visit, found),
            Piece::Array(words) => words.iter().for_each(|word| each_piece(word, visit, found)),
            Piece::Text { .. } | Piece::Glob(_) | Piece::Tilde(_) | Piece::Unknown(_) => {}
        }
    }
}
