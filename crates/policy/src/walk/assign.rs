//! Variables being set.

use weighlock_shell::{Assignment, Piece, Span, Value, Word};

use super::{Variable, Walk};
use crate::argument::Arg;
use crate::effect::Effect;
use crate::part::{Part, PartKind};
use crate::variables;

/// Variables that the shell sets by itself now and then.
const SELF_SET: &[&str] = &[
    "_",
    "REPLY",
    "MAPFILE",
    "OPTARG",
    "OPTIND",
    "DIRSTACK",
    "PIPESTATUS",
    "LINENO",
    "SECONDS",
    "RANDOM",
    "SRANDOM",
    "PWD",
    "OLDPWD",
    "FUNCNAME",
    "COPROC",
    "COPROC_PID",
    "GROUPS",
    "UID",
    "EUID",
    "PPID",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "HISTCMD",
    "SHLVL",
    "COLUMNS",
    "LINES",
];

impl Walk<'_> {
    /// Takes an assignment of the shell's own.
    pub(super) fn assign(&mut self, assignment: &Assignment) {
        let download = self.inside_assignment(assignment);
        let value = match (&assignment.value, &assignment.index) {
            (Value::Scalar(word), None) if !assignment.append => Some(self.joined(word)),
            _ => None,
        };
        self.set(&assignment.name, value, download);
        if let Value::Scalar(word) = &assignment.value {
            let guess = self.plain_text(word);
            let numeric = is_arithmetic(word);
            let variable = self.variables.entry(assignment.name.clone()).or_default();
            variable
                .guesses
                .extend(guess.or_else(|| numeric.then(|| "0".into())));
        }
        if let Value::Array(words) = &assignment.value {
            let texts: Option<Vec<String>> =
                words.iter().map(|word| self.plain_text(word)).collect();
            let variable = self.variables.entry(assignment.name.clone()).or_default();
            variable.guesses.extend(texts.map(|texts| texts.join(" ")));
        }
        let text = word_text(&assignment.value);
        let before = self.parts.len();
        self.loud(&assignment.name, text.as_deref(), assignment.span);
        if self.parts.len() == before {
            let part = self.sets(&assignment.name, assignment.span);
            self.push(part);
        }
    }

    /// Says so when a variable is set that changes what later commands do.
    pub(super) fn loud(&mut self, name: &str, value: Option<&str>, span: Span) {
        if variables::is_loud(name) && !variables::is_quiet(name, value) {
            let mut part = self.sets(name, span);
            part.effects.add(Effect::Shell);
            part.unknown = Some(format!("{name} changes what later commands do"));
            self.push(part);
            let value = value.map(|value| Arg::known(value, span));
            value.iter().for_each(|value| self.perhaps_run(value, span));
        }
    }

    fn sets(&self, name: &str, span: Span) -> Part {
        let mut part = self.part(PartKind::Assignment, span);
        part.program = name.to_owned();
        part.does = format!("sets {name}");
        part
    }

    /// Walks through what runs in an assignment.
    pub(super) fn inside_assignment(&mut self, assignment: &Assignment) -> bool {
        if let Some(index) = &assignment.index {
            self.arithmetic(index);
        }
        match &assignment.value {
            Value::Scalar(word) => self.substitutions(word),
            Value::Array(words) => {
                self.indexes(words);
                let mut any = false;
                for word in words {
                    any |= self.substitutions(word);
                }
                any
            }
        }
    }

    fn set(&mut self, name: &str, value: Option<Arg>, download: bool) {
        let certain = self.state.certain;
        let variable = self.variables.entry(name.to_owned()).or_default();
        variable.download |= download;
        let stays = certain && variable.sites <= 1 && !self.wild && !SELF_SET.contains(&name);
        variable.value = value.filter(|_| stays);
    }

    /// Something sets a variable to what is not known.
    pub(super) fn assign_unknown(&mut self, name: &str) {
        self.loud(name, None, Span::default());
        let variable: &mut Variable = self.variables.entry(name.to_owned()).or_default();
        variable.sites += 2;
        variable.value = None;
        variable.number = false;
    }
}

fn is_arithmetic(word: &Word) -> bool {
    matches!(word.pieces.as_slice(), [Piece::Arithmetic { .. }])
}

fn word_text(value: &Value) -> Option<String> {
    match value {
        Value::Scalar(word) => word.literal(),
        Value::Array(_) => None,
    }
}
