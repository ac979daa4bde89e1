//! Runs that are under way: what they show, who types at them, and who waits
//! for their end.
//!
//! [`Lives`] has all of them, and every part of the engine that does something
//! with a run finds it there.

mod keyboard;
mod show;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use weighlock_exec::{Job, Mark, Size};
use weighlock_marks::Nonce;
use weighlock_walls::GuardedDir;

pub use self::keyboard::{ControlView, Sent, Typed};
pub(crate) use self::keyboard::{
    Held, Holder, INTERRUPT, Keyboard, MOST, Turn, WARNING, is_signal,
};
pub(crate) use self::show::{Fed, Picture, Shown, end_of, last_picture};
use crate::mutex::lock;
use crate::shares::Place;
use crate::view::Run;
use crate::view::opened_size;

/// Keys that end a line.
const LINE_ENDS: [u8; 2] = *b"\r\n";

/// How long what is typed may wait for a program that does not read.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// Whether a key may be one that interrupts: neither a character nor one that
/// every line or arrow has.
fn is_rare(byte: u8) -> bool {
    byte < b' ' && !b"\r\n\t\x1b".contains(&byte)
}

/// One run under way.
pub(crate) struct Live {
    pub(crate) job: Job,
    /// Bytes of output it may keep.
    pub(crate) reserved: u64,
    /// Its output counts among that of runs that have ended.
    pub(crate) counted: AtomicBool,
    /// What is protected in the directory that it may write; not known of one
    /// that was found.
    pub(crate) guarded: Option<GuardedDir>,
    /// Runs whose copies it sees.
    pub(crate) below: Vec<String>,
    /// What its terminal shows, if it has one.
    pub(crate) shown: Option<Arc<Shown>>,
    /// Who types at it.
    pub(crate) keyboard: Keyboard,
    /// How much output there was when somebody last typed the end of a line.
    pub(crate) entered: AtomicU64,
    /// Something that nobody has judged may be on the line of its shell, or
    /// change what keys mean there.
    pub(crate) unknown: AtomicBool,
    /// Held from looking who reads what is typed until it is typed.
    pub(crate) typing: tokio::sync::Mutex<()>,
    /// Held while a command is typed at its shell, up to its end.
    pub(crate) at_prompt: tokio::sync::Mutex<()>,
    /// Commands that were typed at its shell, until their end is recorded.
    /// Others that are for it wait for their turn.
    pub(crate) typed: Mutex<HashSet<String>>,
    /// The run as it began, if it is a terminal.
    pub(crate) terminal: Option<Run>,
    /// Its place among those that may run at once.
    _place: Place,
    /// The run's end, once it is known.
    pub(crate) end: watch::Sender<Option<Run>>,
    /// Nothing of it is left, and all of it is recorded.
    pub(crate) over: watch::Sender<bool>,
    /// Who asked it to stop, first.
    pub(crate) stopped_by: Mutex<Option<String>>,
}

impl Live {
    pub(crate) fn new(
        job: Job,
        reserved: u64,
        place: Place,
        guarded: Option<GuardedDir>,
        below: Vec<String>,
    ) -> Self {
        Self {
            job,
            reserved,
            counted: AtomicBool::new(false),
            guarded,
            below,
            shown: None,
            keyboard: Keyboard::default(),
            entered: AtomicU64::new(0),
            unknown: AtomicBool::new(false),
            typing: tokio::sync::Mutex::default(),
            at_prompt: tokio::sync::Mutex::default(),
            typed: Mutex::default(),
            terminal: None,
            _place: place,
            end: watch::Sender::new(None),
            over: watch::Sender::new(false),
            stopped_by: Mutex::default(),
        }
    }

    /// The same, with a terminal, if it has one; and the secret by which its
    /// shell tells where it is.
    pub(crate) fn with_terminal(self, of: &Run, nonce: Option<Nonce>) -> Self {
        let Some(terminal) = &of.detail.terminal else {
            return self;
        };
        let nonce = nonce.filter(|_| self.job.status().told);
        Self {
            shown: Some(Arc::new(Shown::new(opened_size(terminal), nonce))),
            terminal: Some(of.clone()),
            ..self
        }
    }

    /// Types at its terminal.
    pub(crate) async fn type_keys(&self, bytes: &[u8]) -> std::io::Result<()> {
        if bytes.iter().any(|byte| LINE_ENDS.contains(byte)) {
            let seen = self.job.status().output.bytes();
            self.entered.fetch_max(seen, Ordering::Relaxed);
        }
        let mut rest = bytes;
        while let Some(at) = self.interrupt_in(rest).await {
            // What is not read by then goes with it.
            let _ = self.feed(&rest[..at]).await;
            self.job.interrupt(rest[at]).await?;
            rest = &rest[at + 1..];
        }
        self.feed(rest).await
    }

    /// Types what the terminal itself answers a program, which may not read it.
    pub(crate) async fn answer(&self, bytes: &[u8]) {
        let _typing = self.typing.lock().await;
        // Whoever asked is gone, or was in the background.
        let fed = self.shown.as_ref().map(|shown| *shown.fed.borrow());
        if fed.is_some_and(|fed| self.is_new(&fed)) {
            return;
        }
        // It may be gone before it reads, and its shell takes it.
        self.unknown.store(true, Ordering::Relaxed);
        let _ = self.job.offer(bytes).await;
    }

    /// Signals what is in the foreground of its terminal, before or after a
    /// line is typed there, but not meanwhile.
    pub(crate) async fn signal(&self, number: i32) -> std::io::Result<()> {
        let _typing = self.typing.lock().await;
        self.job.signal(number).await
    }

    /// Gives its terminal another size, which is a signal, too.
    pub(crate) async fn resize(&self, size: Size) -> std::io::Result<()> {
        let _typing = self.typing.lock().await;
        self.job.resize(size).await
    }

    /// Finds a key that interrupts what runs: it must not wait until that
    /// reads.
    async fn interrupt_in(&self, bytes: &[u8]) -> Option<usize> {
        // The terminal is not asked about ordinary keys.
        if !bytes.iter().any(|&byte| is_rare(byte)) {
            return None;
        }
        let interrupts = self.job.terminal().await?.interrupts;
        let mut bytes = bytes.iter();
        bytes.position(|&byte| is_rare(byte) && interrupts.contains(&Some(byte)))
    }

    async fn feed(&self, bytes: &[u8]) -> std::io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        // Who did not read for that long is not waited for again.
        if self.job.is_stuck() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        let fed = tokio::time::timeout(TAKEN_WITHIN, self.job.feed(bytes)).await;
        // What is on its way stays there, and comes before what follows.
        fed.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
    }

    /// Waits until nothing of it is left.
    pub(crate) async fn is_over(&self) {
        let mut over = self.over.subscribe();
        let _ = over.wait_for(|&over| over).await;
    }

    pub(crate) fn stopper(&self) -> Option<String> {
        lock(&self.stopped_by).clone()
    }
}

/// All runs under way, by id.
#[derive(Default)]
pub(crate) struct Lives(Mutex<HashMap<String, Arc<Live>>>);

impl Lives {
    pub(crate) fn get(&self, id: &str) -> Option<Arc<Live>> {
        lock(&self.0).get(id).cloned()
    }

    pub(crate) fn insert(&self, id: &str, live: Arc<Live>) {
        lock(&self.0).insert(id.to_owned(), live);
    }

    pub(crate) fn remove(&self, id: &str) {
        lock(&self.0).remove(id);
    }

    /// Returns the terminals among them that somebody wants.
    pub(crate) fn terminals(&self, wanted: impl Fn(&Run) -> bool) -> Vec<Run> {
        let lives = lock(&self.0);
        let terminals = lives.values().filter_map(|live| live.terminal.as_ref());
        terminals.filter(|run| wanted(run)).cloned().collect()
    }

    /// Returns the runs under way.
    pub(crate) fn ids(&self) -> Vec<String> {
        lock(&self.0).keys().cloned().collect()
    }

    /// Returns the runs whose copies one under way sees.
    pub(crate) fn below(&self, id: &str) -> Vec<String> {
        let lives = lock(&self.0);
        lives.get(id).map_or(vec![], |live| live.below.clone())
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.0).len()
    }

    /// Bytes of output that the runs under way may still come to need.
    pub(crate) fn reserved(&self) -> u64 {
        lock(&self.0).values().map(|live| live.reserved).sum()
    }

    /// Bytes of output that the runs under way have on disk.
    pub(crate) fn used(&self) -> u64 {
        let lives = lock(&self.0);
        let used = |live: &Arc<Live>| live.job.status().output.bytes().min(live.reserved);
        let uncounted = |live: &&Arc<Live>| !live.counted.load(Ordering::Relaxed);
        lives.values().filter(uncounted).map(used).sum()
    }
}

/// Leaves a mark for those who look at the recording.
pub(crate) async fn mark(live: &Live, kind: &str, text: String) {
    let kind = kind.to_owned();
    // One that is over has no keeper to write it down.
    let _ = live.job.note(Mark { kind, text }).await;
}
