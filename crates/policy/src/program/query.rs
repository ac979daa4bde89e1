//! Queries of programs that are refused otherwise.
//!
//! A refusal cannot be approved, so `apt-get -s install x` is a question. It is
//! never more than that: how a program understands the rest of its words is not
//! known here.

use super::{Reading, Use};
use crate::argument::Arg;
use crate::effect::{Effect, Effects};
use crate::knowledge::{OperandRole, Program};
use crate::part::Given;

/// Options that may stand beside one that makes a query of a command.
const BESIDE: &[&str] = &[
    "-y",
    "--yes",
    "--assume-yes",
    "-q",
    "-qq",
    "--quiet",
    "-v",
    "--verbose",
    "-u",
    "-f",
    "--color",
    "-Y",
    "--ask",
    "-a",
    "--no-install-recommends",
    "--noconfirm",
    "--autoremove",
    "--purge",
    "-R",
    "-r",
];

/// Returns whether a command line that is refused otherwise is a query, by its
/// words alone.
pub(super) fn only_asks(program: &Program, reading: &Reading, args: &[Arg]) -> bool {
    let tagged = |tag| reading.tags.contains(&tag);
    let power = tagged("power");
    let privilege = reading.effects.has(Effect::Privilege);
    if !(power || privilege || tagged("install") || tagged("disk") || changes_system(reading)) {
        return false;
    }
    let words: Option<Vec<&str>> = args.iter().map(|arg| arg.text.as_deref()).collect();
    let Some(words) = words else { return false };
    match words.as_slice() {
        ["--help" | "--version"] => true,
        // To stop the machine, `-h` means to halt.
        ["-h" | "-V"] => !power,
        [sub, "--help"] if !program.subs.is_empty() && !sub.starts_with('-') => !privilege,
        _ => (program.asks.iter()).any(|query| is_query(query, &words, reading)),
    }
}

/// Returns whether the command writes to a place, which may be a device.
fn changes_system(reading: &Reading) -> bool {
    let writes = |used: &Use| matches!(used.role, OperandRole::Edit | OperandRole::Out);
    reading.uses.iter().any(writes)
}

fn is_query(query: &str, words: &[&str], reading: &Reading) -> bool {
    if let Some(option) = query.strip_prefix("* ") {
        return is_given(option, reading) || is_written(option, words);
    }
    let more = query.strip_suffix(" *");
    let mut wanted = more.unwrap_or(query).split(' ');
    let mut words = words.iter();
    wanted.all(|want| words.next().is_some_and(|word| is_word(want, word)))
        && (more.is_some() || words.len() == 0)
}

/// Returns whether a word is what a step of a query says: `a|b` is either, and
/// `?` any that is no option.
fn is_word(want: &str, word: &str) -> bool {
    match want {
        "?" => !word.starts_with('-'),
        _ => want.split('|').any(|want| want == word),
    }
}

/// Returns whether the program knows all of its options here, and this is one of
/// them. Others that run something or name settings could do more.
fn is_given(option: &str, reading: &Reading) -> bool {
    let plain = |used: &Use| {
        matches!(
            used.role,
            OperandRole::Text
                | OperandRole::Number
                | OperandRole::Any
                | OperandRole::File
                | OperandRole::List
                | OperandRole::Edit
        )
    };
    let given = |found: &Given| found.names.contains(&option);
    reading.unknown.is_none()
        && reading.risky.is_empty()
        && reading.options.iter().any(given)
        && reading.uses.iter().all(plain)
}

/// Returns whether an option is among the words, with nothing unusual beside it.
fn is_written(option: &str, words: &[&str]) -> bool {
    let known = |word: &&str| !word.starts_with('-') || *word == option || BESIDE.contains(word);
    words.contains(&option) && words.iter().all(known)
}

impl Reading {
    /// Takes back what it does, and leaves a question.
    pub(super) fn only_asks(&mut self) {
        self.effects = Effects::default();
        self.tags.clear();
        self.uses.clear();
        self.risky.clear();
        self.does = "shows something, or what would happen";
        self.unknown = Some("it is only said to show something".into());
    }
}
