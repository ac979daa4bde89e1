//! What clients do all the time, whatever happens to the server.

mod effects;
mod mcp;
mod questions;
mod runs;
mod terminals;
mod viewers;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::Client;
use super::dice::Dice;
use super::ledger::Ledger;
use super::world::{Crew, World};

/// All that a client needs.
pub(super) struct Stage<'a> {
    pub(super) world: &'a World,
    pub(super) crew: &'a Crew,
    pub(super) ledger: &'a Ledger,
    pub(super) until: Instant,
    pub(super) seed: u64,
}

/// One client at work.
struct Actor<'a> {
    stage: &'a Stage<'a>,
    dice: Dice,
    name: &'static str,
    next: AtomicU64,
}

/// Something a client does once.
type Act = fn(&mut Actor<'_>);

/// Everybody, by a name that their marks begin with.
const ALL: [(&str, Act); 9] = [
    ("run1", runs::act),
    ("run2", runs::act),
    ("ask1", questions::act),
    ("ask2", questions::act),
    ("eff1", effects::act),
    ("eff2", effects::act),
    ("term", terminals::act),
    ("view", viewers::act),
    ("mcp", mcp::act),
];

/// How many of them there are.
pub(super) const CLIENTS: usize = ALL.len();

impl<'a> Stage<'a> {
    /// Lets everybody work until it is time.
    pub(super) fn play(&'a self) {
        std::thread::scope(|scope| {
            for (number, (name, act)) in ALL.into_iter().enumerate() {
                scope.spawn(move || {
                    let mut actor = Actor {
                        stage: self,
                        dice: Dice::new(self.seed, number as u64 + 1),
                        name,
                        next: AtomicU64::new(0),
                    };
                    while Instant::now() < self.until {
                        act(&mut actor);
                        let pause = actor.dice.millis(5, 60);
                        std::thread::sleep(pause);
                    }
                });
            }
        });
    }
}

impl Actor<'_> {
    /// A mark that no other command has.
    fn mark(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{}-{number}", self.name)
    }

    fn ledger(&self) -> &Ledger {
        self.stage.ledger
    }

    fn crew(&self) -> &Crew {
        self.stage.crew
    }

    /// Waits a little, and no longer than there is time.
    fn pause(&mut self, from: u64, to: u64) {
        let pause = self.dice.millis(from, to);
        let left = self.stage.until.saturating_duration_since(Instant::now());
        std::thread::sleep(pause.min(left + Duration::from_millis(1)));
    }

    /// A question as a person sees it.
    fn card(&self, who: &Client, run: &Value) -> Option<Value> {
        let id = run["approval_id"].as_str()?;
        let said = who.get(&format!("/approvals/{id}"));
        self.ledger().look(&said);
        said.only(200)
    }
}
