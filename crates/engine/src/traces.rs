//! Traces: how much time each stage of a run takes.
//!
//! A run is a trace, named by its id, and each stage of its journey is a span
//! below it. A span follows from the run's id, so none waits in memory for
//! others; only the times of stages are kept, so that the run's own span covers
//! them. Spans go into a short queue; a slow collector misses some, and no run
//! waits.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use weighlock_store::{Recorded, State};

use crate::core::Core;
use crate::events::hear;
use crate::id;
use crate::measures::settled;
use crate::mutex::lock;

/// Spans that wait to be told: some hundred runs.
const QUEUE: usize = 2048;

/// How long the span of a settled run waits: stages that end with the run are
/// reported a moment later.
const ROOT_AFTER: Duration = Duration::from_secs(1);

/// Runs whose stages are remembered: more than wait for an answer, as a rule.
/// Of older ones the span may begin too late.
const REMEMBERED: usize = 4096;

/// One stage of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// 16 bytes in hexadecimal, the same for all of a run.
    pub trace: String,
    /// 8 bytes in hexadecimal.
    pub id: String,
    /// The span that it is a part of.
    pub parent: Option<String>,
    /// What was done.
    pub name: &'static str,
    /// Microseconds since 1970.
    pub start: i64,
    /// See `start`.
    pub end: i64,
    /// It did not come to a good end.
    pub failed: bool,
    /// What is known of it.
    pub attributes: Vec<(&'static str, Value)>,
}

/// Makes spans of runs, and queues them for a trace collector; see
/// [`Engine::tracer`](crate::Engine::tracer).
pub struct Tracer {
    core: Arc<Core>,
    queue: Option<mpsc::Sender<Span>>,
    taken: Mutex<Option<mpsc::Receiver<Span>>>,
    lost: AtomicU64,
    extents: Mutex<Extents>,
}

/// From when to when the stages of a run were, as far as they are known.
#[derive(Debug, Default)]
struct Extents(BTreeMap<String, (i64, i64)>);

impl Tracer {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        let (give, take) = mpsc::channel(QUEUE);
        let is_on = core.config.traces.on;
        Self {
            core,
            queue: is_on.then_some(give),
            taken: Mutex::new(is_on.then_some(take)),
            lost: AtomicU64::new(0),
            extents: Mutex::default(),
        }
    }
}

impl Extents {
    /// Remembers when a stage of a run was.
    fn remember(&mut self, run: &str, stage: &Span) {
        let extent = self.0.entry(run.to_owned());
        let extent = extent.or_insert((stage.start, stage.end));
        *extent = (extent.0.min(stage.start), extent.1.max(stage.end));
        if self.0.len() > REMEMBERED {
            self.0.pop_first();
        }
    }

    /// Makes the span of a run cover its stages.
    fn cover(&mut self, run: &str, root: Span) -> Span {
        let Some((start, end)) = self.0.remove(run) else {
            return root;
        };
        Span {
            start: root.start.min(start),
            end: root.end.max(end),
            ..root
        }
    }
}

impl Tracer {
    /// Returns the queue of spans, once, where the settings want any.
    pub fn take_spans(&self) -> Option<mpsc::Receiver<Span>> {
        lock(&self.taken).take()
    }

    /// Counts spans that nobody took.
    pub fn count_lost(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns how many spans nobody took.
    pub fn lost_spans(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Makes a span of a run's stage that has just ended.
    pub(crate) fn trace_stage(&self, run: &str, name: &'static str, since: i64) {
        if self.queue.is_some() {
            let times = (since, self.core.clock.micros());
            self.send_stage(run, stage(run, name, times, vec![]));
        }
    }

    /// Makes a span of how long it took to judge a request, once there is a
    /// run.
    pub(crate) fn trace_judging(&self, run: &str, state: State, times: (i64, i64)) {
        if self.queue.is_some() {
            let known = vec![("state", json!(state))];
            self.send_stage(run, stage(run, "judge", times, known));
        }
    }

    /// Begins to make spans of the audit's entries, if the settings say so.
    pub(crate) fn begin(self: &Arc<Self>) {
        if self.queue.is_none() {
            return;
        }
        hear(
            self.core.store.events(),
            self,
            |tracer, heard| match heard {
                Ok(entry) => tracer.trace_entry(entry),
                Err(missed) => tracer.count_lost(missed),
            },
        );
    }

    fn trace_entry(self: &Arc<Self>, entry: &Recorded) {
        let Some(run) = entry.run.as_deref() else {
            return;
        };
        if let Some(stage) = stage_of(entry, run, self.core.config.traces.commands) {
            self.send_stage(run, stage);
        }
        if let Some(root) = root_of(entry, run) {
            self.send_root_soon(run.to_owned(), root);
        }
    }

    fn send_stage(&self, run: &str, stage: Span) {
        lock(&self.extents).remember(run, &stage);
        self.send(stage);
    }

    fn send_root_soon(self: &Arc<Self>, run: String, root: Span) {
        let tracer = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(ROOT_AFTER).await;
            if let Some(tracer) = tracer.upgrade() {
                let root = lock(&tracer.extents).cover(&run, root);
                tracer.send(root);
            }
        });
    }

    fn send(&self, span: Span) {
        let queue = self.queue.as_ref();
        let is_sent = queue.is_none_or(|queue| queue.try_send(span).is_ok());
        if !is_sent {
            self.count_lost(1);
        }
    }
}

/// Makes the stage that ends with an entry of the audit.
fn stage_of(entry: &Recorded, run: &str, commands: bool) -> Option<Span> {
    let how = entry.kind.strip_prefix("run.")?;
    match how {
        "ended" => {
            let took = entry.detail["duration_ms"].as_f64().unwrap_or(0.0);
            let began = entry.time - (took * 1000.0) as i64;
            let known = known(entry, &["state", "exit_code", "signal", "walls", "bytes"]);
            Some(Span {
                failed: entry.detail["state"] != "succeeded",
                ..stage(run, "execute", (began, entry.time), known)
            })
        }
        "started" => {
            let told: &[_] = if commands {
                &["verdict", "command"]
            } else {
                &["verdict"]
            };
            // Without a length: how long the start took is a span of its own.
            let times = (entry.time, entry.time);
            Some(stage(run, "permit", times, known(entry, told)))
        }
        "approved" | "rejected" | "expired" | "withdrawn" => {
            // About what a run changed, people are asked after it.
            let question = entry.detail["approval"].as_str().map_or(0, id::millis);
            let asked = question.max(id::millis(run)) as i64 * 1000;
            let answer = vec![("answer", json!(how))];
            Some(stage(run, "ask", (asked, entry.time), answer))
        }
        _ => None,
    }
}

/// Makes the span of a run, once that is settled: what was tried is not settled
/// by its end.
fn root_of(entry: &Recorded, run: &str) -> Option<Span> {
    let state = match entry.kind.as_str() {
        "run.ended" | "changes.applied" | "changes.not_applied" => settled(entry)?,
        "run.rejected" => "rejected",
        "run.expired" => "expired",
        "run.withdrawn" => "withdrawn",
        "run.blocked" => "blocked",
        _ => return None,
    };
    let mut told = vec![("state", json!(state)), ("run", json!(run))];
    told.extend(known(entry, &["exit_code", "signal", "walls", "bytes"]));
    let sandbox = entry.sandbox.as_ref();
    told.extend(sandbox.map(|sandbox| ("sandbox", json!(sandbox))));
    let owner = entry.owner.as_ref();
    told.extend(owner.map(|owner| ("requested_by", json!(owner))));
    let asked = id::millis(run) as i64 * 1000;
    Some(Span {
        id: hash(run, "run", 8),
        parent: None,
        failed: ["failed", "timed_out", "killed", "lost"].contains(&state),
        ..stage(run, "run", (asked, entry.time), told)
    })
}

/// What an entry says, of some things.
fn known(entry: &Recorded, names: &[&'static str]) -> Vec<(&'static str, Value)> {
    let told = names
        .iter()
        .map(|name| (*name, entry.detail[*name].clone()));
    told.filter(|(_, value)| !value.is_null()).collect()
}

fn stage(
    run: &str,
    name: &'static str,
    (start, end): (i64, i64),
    attributes: Vec<(&'static str, Value)>,
) -> Span {
    Span {
        trace: hash(run, "trace", 16),
        // A stage may come twice: what is tried is run for real later.
        id: hash(run, &format!("{name} {start}"), 8),
        parent: Some(hash(run, "run", 8)),
        name,
        start,
        end: end.max(start),
        failed: false,
        attributes,
    }
}

fn hash(run: &str, of: &str, bytes: usize) -> String {
    let digest = Sha256::digest(format!("{run} {of}"));
    digest[..bytes]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "r_0000000000000000000000";

    fn entry(kind: &str, detail: Value) -> Recorded {
        Recorded {
            seq: 1,
            time: 9_000_000,
            kind: kind.into(),
            actor: "coder".into(),
            run: Some(RUN.into()),
            sandbox: None,
            owner: None,
            detail,
        }
    }

    #[test]
    fn a_run_has_one_span_of_its_own_once_it_is_settled() {
        let tried = json!({ "state": "succeeded", "settled_as": "waiting" });
        assert_eq!(root_of(&entry("run.ended", tried.clone()), RUN), None);
        assert!(stage_of(&entry("run.ended", tried), RUN, false).is_some());
        let settled = |kind, detail| {
            let root = root_of(&entry(kind, detail), RUN).unwrap();
            root.attributes[0].1.as_str().unwrap().to_owned()
        };
        assert_eq!(settled("run.rejected", json!({})), "rejected");
        let applied = json!({ "settled_as": "succeeded" });
        assert_eq!(settled("changes.applied", applied), "succeeded");
        let by_policy = json!({ "by": "policy" });
        assert_eq!(root_of(&entry("changes.applied", by_policy), RUN), None);
    }

    #[test]
    fn the_span_of_a_run_covers_its_stages() {
        let mut extents = Extents::default();
        extents.remember(RUN, &stage(RUN, "judge", (5, 7), vec![]));
        extents.remember(RUN, &stage(RUN, "settle", (20, 30), vec![]));
        let root = extents.cover(RUN, stage(RUN, "run", (6, 25), vec![]));
        assert_eq!((root.start, root.end), (5, 30));
        let late = extents.cover(RUN, stage(RUN, "run", (6, 25), vec![]));
        assert_eq!((late.start, late.end), (6, 25), "nothing is kept");
    }
}
