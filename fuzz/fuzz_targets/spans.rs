//! Every place in a tree is a place in its text.

use weighlock_shell::{Command, CommandKind, Fd, List, Piece, Script, Span, Value, Word};

/// Panics when a span is outside of the text or cuts a character.
pub fn check(script: &Script, text: &str) {
    let at = |span: Span| {
        assert!(
            text.get(span.start..span.end).is_some(),
            "{span:?} is no place in {text:?}"
        );
    };
    script.marks.iter().for_each(|(span, _)| at(*span));
    script.bashisms.iter().for_each(|span| at(*span));
    script.unknowns.iter().for_each(|unknown| at(unknown.span));
    list(&script.body, &at);
}

fn list(all: &List, at: &dyn Fn(Span)) {
    for item in &all.items {
        at(item.pipeline.span);
        assert!(!item.pipeline.stages.is_empty(), "a pipeline of nothing");
        item.pipeline
            .stages
            .iter()
            .for_each(|stage| command(stage, at));
    }
}

fn command(command: &Command, at: &dyn Fn(Span)) {
    at(command.span);
    for redirection in &command.redirections {
        at(redirection.span);
        word(&redirection.target, at);
        if let Some(Fd::Variable(name)) = &redirection.fd {
            assert!(!name.is_empty(), "a descriptor without a name");
        }
    }
    kind(&command.kind, at);
}

fn kind(kind: &CommandKind, at: &dyn Fn(Span)) {
    match kind {
        CommandKind::Simple(simple) => {
            for assignment in &simple.assignments {
                at(assignment.span);
                assignment.index.iter().for_each(|index| word(index, at));
                match &assignment.value {
                    Value::Scalar(value) => word(value, at),
                    Value::Array(values) => words(values, at),
                }
            }
            words(&simple.words, at);
        }
        CommandKind::Group(body) | CommandKind::Subshell(body) => list(body, at),
        CommandKind::If {
            branches,
            otherwise,
        } => {
            for (condition, body) in branches {
                list(condition, at);
                list(body, at);
            }
            otherwise.iter().for_each(|body| list(body, at));
        }
        CommandKind::While { condition, body } => {
            list(condition, at);
            list(body, at);
        }
        CommandKind::For {
            words: values,
            body,
            ..
        } => {
            values.iter().for_each(|values| words(values, at));
            list(body, at);
        }
        CommandKind::Count { expressions, body } => {
            words(expressions, at);
            list(body, at);
        }
        CommandKind::Case {
            word: subject,
            arms,
        } => {
            word(subject, at);
            for arm in arms {
                words(&arm.patterns, at);
                list(&arm.body, at);
            }
        }
        CommandKind::Function { body, .. } | CommandKind::Coprocess { body, .. } => {
            self::command(body, at)
        }
        CommandKind::Test(all) => words(all, at),
        CommandKind::Arithmetic(expression) => word(expression, at),
        CommandKind::Unknown => {}
    }
}

fn words(all: &[Word], at: &dyn Fn(Span)) {
    all.iter().for_each(|one| word(one, at));
}

fn word(word: &Word, at: &dyn Fn(Span)) {
    at(word.span);
    word.pieces.iter().for_each(|one| piece(one, at));
}

fn piece(piece: &Piece, at: &dyn Fn(Span)) {
    match piece {
        Piece::Text { .. } | Piece::Glob(_) | Piece::Tilde(_) => {}
        Piece::Parameter(parameter) => {
            at(parameter.span);
            parameter.index.iter().for_each(|index| word(index, at));
            words(&parameter.operands, at);
        }
        Piece::Command(substitution) => {
            at(substitution.span);
            list(&substitution.body, at);
        }
        Piece::Process { body, span, .. } => {
            at(*span);
            list(body, at);
        }
        Piece::Arithmetic { expression, .. } => word(expression, at),
        Piece::Array(elements) => words(elements, at),
        Piece::Unknown(span) => at(*span),
    }
}
