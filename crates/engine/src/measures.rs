//! Counters and histograms for metrics.
//!
//! Nearly all of it follows from the audit, which tells every entry once it is
//! certain: counting is done behind everybody's back, and no run pays for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weighlock_store::{Histogram, Recorded, State, Store};

use crate::error::Error;
use crate::events::hear;
use crate::mutex::lock;

/// Entries that are read in one go where counting has fallen behind.
const BATCH: usize = 1000;

/// Counted since the server began.
#[derive(Debug, Default)]
pub struct Measures {
    /// From the permit to the beginning of the command: walls and record.
    pub start: Histogram,
    /// How long runs took.
    pub duration: Histogram,
    /// How many, by what they are and how they came out. Both come from short
    /// lists in this program, never from what somebody wrote.
    counts: Mutex<BTreeMap<(Counted, &'static str), u64>>,
    /// The newest entry that was counted.
    seen: AtomicU64,
    /// When a backup was last made, in microseconds since 1970; 0 for never.
    backup: AtomicI64,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// Runs that began, by verdict.
    Started,
    /// Runs that ended, by state.
    Ended,
    /// Questions that were asked.
    Asked,
    /// Questions that were closed, by how.
    Decided,
    /// Changes, by what became of them.
    Changes,
}

/// How things are just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gauges {
    /// Runs under way, each with a keeper.
    pub running: usize,
    /// Terminals among them.
    pub terminals: usize,
    /// Questions that wait.
    pub questions: u64,
    /// How long the oldest of them has waited.
    pub oldest_question: Duration,
    /// Runs that are held because work is paused.
    pub held: u64,
    /// Runs whose changes nobody has decided about.
    pub undecided: u64,
    /// Bytes of output on disk.
    pub output_bytes: u64,
    /// Bytes that are free where everything is kept.
    pub free_bytes: u64,
    /// Entries of the audit.
    pub entries: u64,
    /// When a backup was last made, in seconds since 1970.
    pub backup: Option<i64>,
}

impl Measures {
    /// Returns the counts of something by outcome, zeros included: a counter
    /// that exists from the start, and not from its first increment, can be
    /// seen to grow.
    pub fn counts(&self, what: Counted) -> Vec<(&'static str, u64)> {
        let words = what.words().iter().map(|how| ((what, *how), 0));
        let mut all: BTreeMap<_, u64> = words.collect();
        let counts = lock(&self.counts);
        let of = counts.iter().filter(|((counted, _), _)| *counted == what);
        all.extend(of.map(|(key, count)| (*key, *count)));
        all.into_iter()
            .map(|((_, how), count)| (how, count))
            .collect()
    }

    /// Returns when a backup was last made, in seconds since 1970.
    pub(crate) fn last_backup(&self) -> Option<i64> {
        let last = self.backup.load(Ordering::Relaxed);
        (last > 0).then_some(last / 1_000_000)
    }

    /// Begins to count the entries of the audit. `last_backup` is in
    /// microseconds since 1970.
    pub(crate) fn begin(
        self: &Arc<Self>,
        store: &Arc<Store>,
        last_backup: Option<i64>,
    ) -> Result<(), Error> {
        // From before the rest, so that nothing is missed.
        let entries = store.events();
        self.seen.store(store.newest_seq()?, Ordering::Relaxed);
        self.backup
            .store(last_backup.unwrap_or(0), Ordering::Relaxed);
        let store = Arc::clone(store);
        hear(entries, self, move |measures, heard| match heard {
            Ok(entry) => measures.count(entry),
            Err(_) => measures.catch_up(&store),
        });
        Ok(())
    }

    /// Counts from the audit what came too fast.
    fn catch_up(&self, store: &Store) {
        loop {
            let seen = self.seen.load(Ordering::Relaxed);
            let missed = store.recorded_after(seen, BATCH).unwrap_or_default();
            missed.iter().for_each(|entry| self.count(entry));
            if missed.len() < BATCH {
                return;
            }
        }
    }

    /// Counts a run that is settled. One that is still to be decided about
    /// comes again.
    fn ended(&self, entry: &Recorded) {
        if let Some(state) = settled(entry) {
            self.add(Counted::Ended, one_of(&STATES, state));
        }
    }

    fn add(&self, what: Counted, how: &'static str) {
        *lock(&self.counts).entry((what, how)).or_default() += 1;
    }

    /// Counts one entry of the audit.
    fn count(&self, entry: &Recorded) {
        if entry.seq <= self.seen.fetch_max(entry.seq, Ordering::Relaxed) {
            return;
        }
        let text = |name: &str| entry.detail[name].as_str().unwrap_or_default();
        match entry.kind.as_str() {
            "run.started" => self.add(Counted::Started, one_of(&VERDICTS, text("verdict"))),
            "run.ended" => {
                self.ended(entry);
                if let Some(took) = entry.detail["duration_ms"].as_f64() {
                    self.duration
                        .observe(Duration::from_secs_f64(took.max(0.0) / 1000.0));
                }
            }
            "approval.asked" => self.add(Counted::Asked, ""),
            "backup.made" => self.backup.store(entry.time, Ordering::Relaxed),
            kind => {
                let parted = kind.split_once('.').unwrap_or_default();
                match parted {
                    ("run", how) if REFUSED.contains(&how) => {
                        self.add(Counted::Ended, one_of(&STATES, how));
                    }
                    ("approval", how) if DECIDED.contains(&how) => {
                        self.add(Counted::Decided, one_of(&DECIDED, how));
                    }
                    ("changes", how) if CHANGES.contains(&how) => {
                        self.add(Counted::Changes, one_of(&CHANGES, how));
                        if settled(entry).is_some() {
                            self.ended(entry);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// In the entry of an end: what the run is settled as, where that is not how
/// it ended.
pub(crate) const SETTLED: &str = "settled_as";

const VERDICTS: [&str; 2] = ["auto", "ask"];
const STATES: [&str; 9] = [
    "succeeded",
    "failed",
    "timed_out",
    "killed",
    "lost",
    "blocked",
    "rejected",
    "expired",
    "withdrawn",
];
const REFUSED: [&str; 4] = ["blocked", "rejected", "expired", "withdrawn"];
const DECIDED: [&str; 5] = ["approved", "rejected", "expired", "withdrawn", "blocked"];
const CHANGES: [&str; 5] = ["held", "applied", "not_applied", "discarded", "undone"];

/// Returns how a run is settled with an entry that tells of an end, if it is:
/// what was tried on a copy may end well, and be rejected after that.
pub(crate) fn settled(entry: &Recorded) -> Option<&str> {
    let settled = entry.detail[SETTLED].as_str();
    let state = settled.or_else(|| entry.detail["state"].as_str())?;
    (state != State::Waiting.word()).then_some(state)
}

impl Counted {
    /// All words that there are for how it comes out.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Started => &VERDICTS,
            Self::Ended => &STATES,
            Self::Asked => &[""],
            Self::Decided => &DECIDED,
            Self::Changes => &CHANGES,
        }
    }
}

/// Returns a word that is ours.
fn one_of(words: &[&'static str], word: &str) -> &'static str {
    let mut words = words.iter().copied();
    words.find(|known| *known == word).unwrap_or("other")
}

/// Returns what is free for us on the disk of a directory.
pub(crate) fn free_bytes(dir: &std::path::Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(dir).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(seq: u64, kind: &str, detail: serde_json::Value) -> Recorded {
        Recorded {
            seq,
            time: 5_000_000,
            kind: kind.into(),
            actor: "coder".into(),
            run: None,
            sandbox: None,
            owner: None,
            detail,
        }
    }

    #[test]
    fn entries_are_counted_once_and_by_words_of_ours() {
        let measures = Measures::default();
        let all = [
            entry(
                1,
                "run.started",
                json!({ "verdict": "auto", "command": "rm -rf /" }),
            ),
            entry(
                2,
                "run.ended",
                json!({ "state": "succeeded", "duration_ms": 3.0 }),
            ),
            entry(3, "run.ended", json!({ "state": "a_new_word" })),
            entry(4, "run.blocked", json!({})),
            entry(5, "approval.asked", json!({})),
            entry(6, "approval.rejected", json!({})),
            entry(7, "changes.applied", json!({})),
            entry(8, "webhook.added", json!({})),
        ];
        for entry in all.iter().chain(&all) {
            measures.count(entry);
        }
        let some = |what| {
            let mut counts = measures.counts(what);
            counts.retain(|(_, count)| *count > 0);
            counts
        };
        assert_eq!(some(Counted::Started), [("auto", 1)]);
        let ended = [("blocked", 1), ("other", 1), ("succeeded", 1)];
        assert_eq!(some(Counted::Ended), ended);
        assert_eq!(some(Counted::Asked), [("", 1)]);
        assert_eq!(some(Counted::Decided), [("rejected", 1)]);
        assert_eq!(some(Counted::Changes), [("applied", 1)]);
        assert_eq!(measures.duration.read().1, 1);
    }

    #[test]
    fn what_there_was_none_of_is_told_as_none() {
        let measures = Measures::default();
        let ended = measures.counts(Counted::Ended);
        assert_eq!(ended.len(), STATES.len());
        assert!(ended.contains(&("lost", 0)), "{ended:?}");
        measures.count(&entry(1, "run.ended", json!({ "state": "lost" })));
        let ended = measures.counts(Counted::Ended);
        assert_eq!(ended.len(), STATES.len());
        assert!(ended.contains(&("lost", 1)), "{ended:?}");
    }

    #[test]
    fn what_was_tried_is_counted_when_it_is_settled() {
        let measures = Measures::default();
        let tried = json!({ "state": "succeeded", "settled_as": "waiting" });
        measures.count(&entry(1, "run.ended", tried));
        let some = || {
            let mut counts = measures.counts(Counted::Ended);
            counts.retain(|(_, count)| *count > 0);
            counts
        };
        assert_eq!(some(), []);
        measures.count(&entry(2, "run.rejected", json!({})));
        assert_eq!(some(), [("rejected", 1)]);
        let applied = json!({ "settled_as": "succeeded" });
        measures.count(&entry(3, "changes.applied", applied));
        measures.count(&entry(4, "changes.applied", json!({ "by": "policy" })));
        let failed = json!({ "state": "failed" });
        measures.count(&entry(5, "changes.not_applied", failed));
        let blocked = json!({ "state": "succeeded", "settled_as": "blocked" });
        measures.count(&entry(6, "run.ended", blocked));
        let all = [
            ("blocked", 1),
            ("failed", 1),
            ("rejected", 1),
            ("succeeded", 1),
        ];
        assert_eq!(some(), all);
    }
}
