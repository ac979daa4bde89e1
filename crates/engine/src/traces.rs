//! Where the time of a run goes, for whoever collects traces.
//!
//! A run is a trace, named by its id, and each stage of its journey a span
//! below it. What a span needs follows from the run's id, so none is kept in
//! memory until others are there. Spans go into a short queue; whoever is slow
//! to take them misses some, and no run waits.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use weighlock_store::Recorded;

use crate::engine::Engine;
use crate::id;
use crate::live::lock;
use crate::view::Run;

/// Spans that wait to be told: some hundred runs.
const QUEUE: usize = 2048;

/// How spans are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traces {
    /// They are made at all.
    pub on: bool,
    /// They hold the text of commands.
    pub commands: bool,
}

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

/// Spans on their way.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    queue: Option<mpsc::Sender<Span>>,
    taken: Mutex<Option<mpsc::Receiver<Span>>>,
    lost: AtomicU64,
}

impl Spans {
    pub(crate) fn new(on: bool) -> Self {
        let (give, take) = mpsc::channel(QUEUE);
        Self {
            queue: on.then_some(give),
            taken: Mutex::new(on.then_some(take)),
            lost: AtomicU64::new(0),
        }
    }
}

impl Engine {
    /// Returns the queue of spans, once, where the settings want any.
    pub fn spans(&self) -> Option<mpsc::Receiver<Span>> {
        lock(&self.spans.taken).take()
    }

    /// Counts spans that nobody took.
    pub fn lose_spans(&self, count: u64) {
        self.spans.lost.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns how many spans nobody took.
    pub fn lost_spans(&self) -> u64 {
        self.spans.lost.load(Ordering::Relaxed)
    }

    /// Tells a stage of a run that has just ended.
    pub(crate) fn trace(&self, run: &str, name: &'static str, since: i64) {
        if self.spans.queue.is_some() {
            self.tell_span(stage(run, name, (since, self.clock.micros()), vec![]));
        }
    }

    /// Tells how long it took to judge a request, once there is a run.
    pub(crate) fn trace_judged(&self, run: &Run, since: i64, until: i64) {
        if self.spans.queue.is_some() {
            let known = vec![("state", json!(run.state))];
            self.tell_span(stage(&run.command_id, "judge", (since, until), known));
        }
    }

    fn tell_span(&self, span: Span) {
        let told = { self.spans.queue.as_ref() }.is_none_or(|queue| queue.try_send(span).is_ok());
        if !told {
            self.lose_spans(1);
        }
    }

    /// Begins to make spans of what the audit tells, if the settings say so.
    pub(crate) fn begin_tracing(self: &Arc<Self>) {
        if self.spans.queue.is_none() {
            return;
        }
        let mut events = self.store.events();
        let engine = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                let heard = events.recv().await;
                let Some(engine) = engine.upgrade() else {
                    return;
                };
                match heard {
                    Ok(entry) => {
                        let commands = engine.config.traces.commands;
                        let spans = spans_of(&entry, commands);
                        spans.into_iter().for_each(|span| engine.tell_span(span));
                    }
                    Err(RecvError::Lagged(missed)) => engine.lose_spans(missed),
                    Err(RecvError::Closed) => return,
                }
            }
        });
    }
}

/// Makes the spans that end with an entry of the audit.
fn spans_of(entry: &Recorded, commands: bool) -> Vec<Span> {
    let Some(run) = entry.run.as_deref() else {
        return vec![];
    };
    let asked = id::millis(run) as i64 * 1000;
    let told = |name: &'static str| {
        let value = &entry.detail[name];
        (!value.is_null()).then(|| (name, value.clone()))
    };
    let how = entry.kind.split_once('.').map_or("", |(_, how)| how);
    match entry.kind.as_str() {
        "run.ended" => {
            let took = entry.detail["duration_ms"].as_f64().unwrap_or(0.0);
            let began = entry.time - (took * 1000.0) as i64;
            let known = ["state", "exit_code", "signal", "walls", "bytes"];
            let known: Vec<_> = known.into_iter().filter_map(told).collect();
            let failed = entry.detail["state"] != "succeeded";
            let execute = stage(run, "execute", (began, entry.time), known.clone());
            vec![
                Span { failed, ..execute },
                Span {
                    failed,
                    ..root(run, (asked, entry.time), entry, known)
                },
            ]
        }
        "run.started" => {
            let mut known = vec![("verdict", entry.detail["verdict"].clone())];
            known.extend(told("command").filter(|_| commands));
            // Without a length: how long the start took is a span of its own.
            vec![stage(run, "permit", (entry.time, entry.time), known)]
        }
        "run.approved" => vec![stage(
            run,
            "ask",
            (asked, entry.time),
            vec![("answer", json!(how))],
        )],
        "run.rejected" | "run.expired" | "run.withdrawn" => vec![
            stage(
                run,
                "ask",
                (asked, entry.time),
                vec![("answer", json!(how))],
            ),
            root(run, (asked, entry.time), entry, vec![("state", json!(how))]),
        ],
        "run.blocked" => vec![root(
            run,
            (asked, entry.time),
            entry,
            vec![("state", json!(how))],
        )],
        _ => vec![],
    }
}

fn root(
    run: &str,
    times: (i64, i64),
    entry: &Recorded,
    mut attributes: Vec<(&'static str, Value)>,
) -> Span {
    attributes.push(("run", json!(run)));
    attributes.extend(
        entry
            .sandbox
            .as_ref()
            .map(|sandbox| ("sandbox", json!(sandbox))),
    );
    attributes.extend(
        entry
            .owner
            .as_ref()
            .map(|owner| ("requested_by", json!(owner))),
    );
    Span {
        id: hash(run, "run", 8),
        parent: None,
        ..stage(run, "run", times, attributes)
    }
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
