//! Queries of programs that are refused otherwise.
//!
//! A refusal cannot be approved, so `apt-get -s install x` is a question. It is
//! never more than that: how a program understands the rest of its words is not
//! known here.

use super::Reading;
use crate::argument::Arg;
use crate::effect::{Effect, Effects};
use crate::knowledge::Program;

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
    if !(power || privilege || tagged("install") || tagged("disk")) {
        return false;
    }
    let words: Option<Vec<&str>> = args.iter().map(|arg| arg.text.as_deref()).collect();
    let Some(words) = words else { return false };
    match words.as_slice() {
        ["--help" | "--version"] => true,
        // To stop the machine, `-h` means to halt.
        ["-h" | "-V"] => !power,
        [sub, "--help"] if !program.subs.is_empty() && !sub.starts_with('-') => !privilege,
        _ => program.asks.iter().any(|query| is_query(query, &words)),
    }
}

fn is_query(query: &str, words: &[&str]) -> bool {
    if let Some(option) = query.strip_prefix("* ") {
        let known =
            |word: &&str| !word.starts_with('-') || *word == option || BESIDE.contains(word);
        return words.contains(&option) && words.iter().all(known);
    }
    let more = query.strip_suffix(" *");
    let mut wanted = more.unwrap_or(query).split(' ');
    let mut words = words.iter();
    wanted.all(|want| words.next() == Some(&want)) && (more.is_some() || words.len() == 0)
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
