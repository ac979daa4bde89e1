//! How much analysing one text may cost.
//!
//! Time and memory grow together here: nearly all that is kept was copied, and
//! nearly all time goes into copying. So there is one unit for both, roughly a
//! byte that is kept. The bounds are set so that any text which is accepted is
//! judged within 100 ms and 32 MiB; `bench policy` measures it, and the fuzz
//! target `cost` looks for texts that take more.

use std::cell::Cell;

use weighlock_shell::Span;

use super::run::is_dangerous;
use super::{Walk, rough};
use crate::argument::Arg;
use crate::part::PartKind;
use crate::{knowledge, paths};

/// For what is sure to be in the text: enough for seven thousand short commands,
/// or a script of 60 KB.
const CERTAIN: usize = 11 << 20;

/// For possible readings, so that they leave enough for what is certain:
/// functions that call functions could be tried without end.
const POSSIBLE: usize = 5 << 20;

/// For looking whether paths hold secrets: enough for forty thousand names, or
/// for five hundred patterns.
const LOOKS: usize = 2 << 20;

/// What looking at one command costs: the state around it is copied.
pub(super) const COMMAND: usize = 256;

/// What one part costs that is kept.
pub(super) const PART: usize = 768;

/// What one word costs, without its text.
pub(super) const WORD: usize = 192;

/// Commands that are still tried after the budget is spent, and their words.
const MAX_LAST: usize = 256;
const MAX_LAST_WORDS: usize = 64;

/// What may still be spent on one text.
#[derive(Debug)]
pub(super) struct Budget {
    certain: usize,
    possible: usize,
    /// For looking at paths, which changes nothing else; none once something
    /// could not be paid for.
    looks: Cell<Option<usize>>,
    /// Commands that are still tried when the rest is spent.
    last: usize,
    /// It was said that the text is too complex.
    said: bool,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            certain: CERTAIN,
            possible: POSSIBLE,
            looks: Cell::new(Some(LOOKS)),
            last: MAX_LAST,
            said: false,
        }
    }
}

impl Walk<'_> {
    /// Pays for work; returns whether it may be done. Once something cannot be
    /// paid for, nothing of its kind can be any more.
    pub(super) fn spend(&mut self, units: usize) -> bool {
        if self.budget.looks.get().is_none() {
            self.too_complex();
        }
        let left = match self.state.possible {
            true => &mut self.budget.possible,
            false => &mut self.budget.certain,
        };
        match left.checked_sub(units) {
            Some(rest) if *left > 0 => {
                *left = rest;
                true
            }
            _ => {
                *left = 0;
                self.too_complex();
                false
            }
        }
    }

    /// Pays for handling these words.
    pub(super) fn spend_on(&mut self, argv: &[Arg]) -> bool {
        let bytes: usize = argv.iter().map(|arg| 2 * arg.shape.len()).sum();
        self.spend(WORD * argv.len() + bytes)
    }

    /// Pays for looking whether a path holds secrets. If it cannot be paid for,
    /// the text is too complex, which is said with the part that the path is of.
    pub(super) fn look_at(&self, path: &str) -> bool {
        let left = self.budget.looks.get();
        let left = left.and_then(|left| left.checked_sub(paths::effort(path)));
        self.budget.looks.set(left);
        left.is_some()
    }

    /// Returns whether another possible reading may be tried.
    pub(super) fn guess(&mut self) -> bool {
        if self.budget.possible == 0 {
            self.too_complex();
        }
        self.budget.possible > 0
    }

    /// Returns whether nothing more can be paid for.
    pub(super) fn is_spent(&self) -> bool {
        match self.state.possible {
            true => self.budget.possible == 0,
            false => self.budget.certain == 0,
        }
    }

    /// Says, once, that the text cannot be analysed in full.
    pub(super) fn too_complex(&mut self) {
        if !std::mem::replace(&mut self.budget.said, true) {
            let saved = self.state.clone();
            self.state.possible = false;
            self.state.within = None;
            let mut part = self.part(PartKind::Unknown, Span::default());
            part.does = "cannot be analysed".into();
            part.unknown = Some("it is too complex to analyse".into());
            self.parts.push(part);
            self.state = saved;
        }
    }

    /// Looks through a text that was too complex for commands that are refused:
    /// whatever else is in the text does not make them milder.
    pub(super) fn last_look(&mut self, text: &str) {
        let possible = std::mem::replace(&mut self.state.possible, true);
        rough::commands(text, |words| {
            let name = words.first().map_or("", String::as_str);
            if self.budget.last == 0 || !(is_dangerous(name, true) || runs_others(name)) {
                return;
            }
            self.budget.last -= 1;
            // Each has its own share: a costly one does not hide the next.
            self.budget.possible = POSSIBLE / MAX_LAST;
            let argv = words.into_iter().take(MAX_LAST_WORDS);
            let argv = argv.map(|word| Arg::known(word, Span::default()));
            self.command(argv.collect(), Span::default());
        });
        self.budget.possible = 0;
        self.state.possible = possible;
    }

    /// Returns whether the text was found to be too complex.
    pub(super) fn is_too_complex(&self) -> bool {
        self.budget.said
    }
}

/// Returns whether a program runs other commands that are among its words.
fn runs_others(name: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    knowledge::program(base).is_some_and(|program| !program.runs.is_empty())
}
