//! Prints a tree as compact text, so that a case is one line.

use std::fmt::Write;

use weighlock_shell::*;

/// Prints a script: unknowns as `??`, then what other shells read differently.
pub(crate) fn script(script: &Script) -> String {
    list(&script.body)
}

pub(crate) fn list(list: &List) -> String {
    let mut out = String::new();
    for (place, item) in list.items.iter().enumerate() {
        out += match item.joint {
            Joint::Sequence if place == 0 => "",
            Joint::Sequence => "; ",
            Joint::And => " && ",
            Joint::Or => " || ",
        };
        out += &pipeline(&item.pipeline);
        if item.background {
            out += " &";
        }
    }
    out
}

fn pipeline(pipeline: &Pipeline) -> String {
    let stages: Vec<String> = pipeline.stages.iter().map(command).collect();
    let negated = if pipeline.negated { "! " } else { "" };
    let timed = if pipeline.timed { "time " } else { "" };
    format!("{negated}{timed}{}", stages.join(" | "))
}

fn command(command: &Command) -> String {
    let mut out = kind(&command.kind);
    for redirection in &command.redirections {
        if !out.is_empty() {
            out += " ";
        }
        out += &redirect(redirection);
    }
    out
}

fn kind(kind: &CommandKind) -> String {
    match kind {
        CommandKind::Simple(simple) => simple_text(simple),
        CommandKind::Group(body) => format!("{{ {} }}", list(body)),
        CommandKind::Subshell(body) => format!("( {} )", list(body)),
        CommandKind::If {
            branches,
            otherwise,
        } => {
            let mut out = String::new();
            for (condition, body) in branches {
                let _ = write!(out, "if {} then {} ", list(condition), list(body));
            }
            if let Some(body) = otherwise {
                let _ = write!(out, "else {} ", list(body));
            }
            out + "fi"
        }
        CommandKind::While { condition, body } => {
            format!("while {} do {} done", list(condition), list(body))
        }
        CommandKind::For { name, words, body } => {
            let words = words.as_ref().map_or("@".into(), |all| words_text(all));
            format!("for {name} in {words} do {} done", list(body))
        }
        CommandKind::Count { expressions, body } => {
            format!("for (({})) do {} done", words_text(expressions), list(body))
        }
        CommandKind::Case {
            word: subject,
            arms,
        } => {
            let mut out = format!("case {} in", word(subject));
            for arm in arms {
                let patterns: Vec<String> = arm.patterns.iter().map(word).collect();
                let _ = write!(out, " {}) {};;", patterns.join("|"), list(&arm.body));
            }
            out + " esac"
        }
        CommandKind::Function { name, body } => format!("{name}() {}", command(body)),
        CommandKind::Test(words) => format!("[[ {} ]]", words_text(words)),
        CommandKind::Arithmetic(expression) => format!("(( {} ))", word(expression)),
        CommandKind::Coprocess { name, body } => {
            format!(
                "coproc {} {}",
                name.as_deref().unwrap_or("-"),
                command(body)
            )
        }
        CommandKind::Unknown => "??".into(),
    }
}

fn simple_text(simple: &Simple) -> String {
    let mut parts: Vec<String> = simple.assignments.iter().map(assignment).collect();
    parts.extend(simple.words.iter().map(word));
    parts.join(" ")
}

fn assignment(assignment: &Assignment) -> String {
    let index = assignment
        .index
        .as_ref()
        .map_or(String::new(), |i| format!("[{}]", word(i)));
    let sign = if assignment.append { "+=" } else { "=" };
    let value = match &assignment.value {
        Value::Scalar(value) => word(value),
        Value::Array(words) => format!("[{}]", words_text(words)),
    };
    format!("{{{}{index}{sign}{value}}}", assignment.name)
}

fn words_text(words: &[Word]) -> String {
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

pub(crate) fn word(word: &Word) -> String {
    word.pieces.iter().map(piece).collect()
}

fn piece(piece: &Piece) -> String {
    match piece {
        Piece::Text {
            text,
            quoted: false,
        } => text.clone(),
        Piece::Text { text, quoted: true } => format!("'{text}'"),
        Piece::Glob(text) => format!("glob<{text}>"),
        Piece::Tilde(text) => format!("tilde<{text}>"),
        Piece::Parameter(parameter) => parameter_text(parameter),
        Piece::Command(command) => quote(format!("$({})", list(&command.body)), command.quoted),
        Piece::Process { input, body, .. } => {
            format!("{}({})", if *input { '<' } else { '>' }, list(body))
        }
        Piece::Arithmetic { expression, quoted } => {
            quote(format!("$(({}))", word(expression)), *quoted)
        }
        Piece::Array(words) => format!("[{}]", words_text(words)),
        Piece::Unknown(_) => "??".into(),
    }
}

fn quote(text: String, quoted: bool) -> String {
    if quoted { format!("\"{text}\"") } else { text }
}

fn parameter_text(parameter: &Parameter) -> String {
    let index = parameter
        .index
        .as_ref()
        .map_or(String::new(), |i| format!("[{}]", word(i)));
    let operation = match parameter.operation {
        Operation::Plain => String::new(),
        other => format!(" {other:?}").to_lowercase(),
    };
    let operands: String = parameter
        .operands
        .iter()
        .map(|o| format!(" {}", word(o)))
        .collect();
    let text = format!("${{{}{index}{operation}{operands}}}", parameter.name);
    quote(text, parameter.quoted)
}

fn redirect(redirection: &Redirection) -> String {
    let fd = match &redirection.fd {
        Some(Fd::Number(number)) => number.to_string(),
        Some(Fd::Variable(name)) => format!("{{{name}}}"),
        None => String::new(),
    };
    let sign = match redirection.op {
        Redirect::Read => "<",
        Redirect::Write => ">",
        Redirect::Clobber => ">|",
        Redirect::Append => ">>",
        Redirect::ReadWrite => "<>",
        Redirect::DuplicateInput => "<&",
        Redirect::DuplicateOutput => ">&",
        Redirect::WriteBoth => "&>",
        Redirect::AppendBoth => "&>>",
        Redirect::HereDocument => "<<",
        Redirect::HereString => "<<<",
    };
    format!("{fd}{sign}{}", word(&redirection.target))
}
