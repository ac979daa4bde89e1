//! What clients did and were told, to be held against the record afterwards.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

use super::client::Said;

/// Everything that clients know.
#[derive(Default)]
pub(super) struct Ledger {
    orders: Mutex<Vec<Order>>,
    decisions: Mutex<Vec<Decision>>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    faults: Mutex<Vec<String>>,
}

/// A command that somebody asked for. It appends its mark to a file.
#[derive(Clone)]
pub(super) struct Order {
    pub(super) mark: String,
    pub(super) kind: Kind,
    /// How it ends if nothing comes between.
    pub(super) exit: i64,
    pub(super) told: Told,
}

/// What kind of command it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// It runs at once.
    Plain,
    /// The same, through the door for agents, which may ask again.
    Agent,
    /// It is typed at a shell.
    Typed,
    /// A person is asked first.
    Asked,
    /// It runs on a copy; a person is asked about what it changed there.
    Copied,
    /// The same, and nobody is asked.
    Applied,
}

/// What its requester was told.
#[derive(Clone)]
pub(super) enum Told {
    /// Nothing: it or the server was gone.
    Nothing,
    /// That it is not run.
    Refused(u16),
    /// Its record, as it was then.
    Run(Value),
}

/// What somebody decided, and whether that was taken.
#[derive(Clone)]
pub(super) struct Decision {
    pub(super) mark: String,
    pub(super) yes: bool,
    /// None where nobody knows.
    pub(super) taken: Option<bool>,
}

impl Ledger {
    pub(super) fn order(&self, order: Order) {
        lock(&self.orders).push(order);
    }

    pub(super) fn orders(&self) -> Vec<Order> {
        lock(&self.orders).clone()
    }

    pub(super) fn decide(&self, mark: &str, yes: bool, said: &Said) {
        self.look(said);
        lock(&self.decisions).push(Decision {
            mark: mark.to_owned(),
            yes,
            taken: said.status().map(|status| status == 200),
        });
    }

    pub(super) fn decisions(&self, mark: &str) -> Vec<Decision> {
        let decisions = lock(&self.decisions);
        let of = decisions.iter().filter(|one| one.mark == mark);
        of.cloned().collect()
    }

    /// Counts something that was survived.
    pub(super) fn count(&self, what: &'static str) {
        *lock(&self.counts).entry(what).or_default() += 1;
    }

    /// How often that was.
    pub(super) fn counted(&self, what: &str) -> u64 {
        lock(&self.counts).get(what).copied().unwrap_or(0)
    }

    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = lock(&self.counts);
        counts.iter().map(|(what, count)| (*what, *count)).collect()
    }

    /// Remembers something that must not be.
    pub(super) fn fault(&self, what: String) {
        lock(&self.faults).push(what);
    }

    pub(super) fn faults(&self) -> Vec<String> {
        lock(&self.faults).clone()
    }

    /// Looks whether an answer is one that a client may get.
    pub(super) fn look(&self, said: &Said) {
        match said {
            Said::Silent => self.fault("a call did not return".into()),
            // What is full or busy is said; anything else of that kind is a bug.
            Said::Answer(status, body) if *status >= 500 && ![503, 507].contains(status) => {
                self.fault(format!("answered {status}: {body}"));
            }
            Said::Answer(507, _) => self.count("answers: storage full"),
            Said::Answer(..) => {}
            Said::Gone => self.count("calls that the server's death cut off"),
        }
    }

    /// What a requester was told by an answer.
    pub(super) fn told(&self, said: Said) -> Told {
        self.look(&said);
        match said {
            Said::Answer(200 | 202, run) => Told::Run(run),
            Said::Answer(status, _) => Told::Refused(status),
            Said::Gone | Said::Silent => Told::Nothing,
        }
    }
}

/// Whoever panicked with the lock left whole values behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|lock| lock.into_inner())
}
