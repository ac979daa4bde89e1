//! What a keeper knows about its run, on disk and on the wire.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weighlock_confine::{Containment, Exit, Usage, started};

/// Name of the status file in a run's directory.
const FILE: &str = "status.json";

/// The state of a run as its keeper knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The run's id.
    pub run: String,
    /// The keeper, so that it is recognised after a restart of the server.
    pub keeper: Keeper,
    /// What ends the tree; unknown until the command was started.
    pub containment: Option<Containment>,
    /// Output so far.
    pub output: Totals,
    /// How the command ended, once it has.
    pub end: Option<End>,
    /// Nothing of the run is left and nothing here will change any more.
    pub closed: bool,
}

/// One process, told apart from a later one with the same pid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeper {
    /// Its pid.
    pub pid: u32,
    /// Its start time in clock ticks since boot.
    pub started: u64,
    /// The boot it belongs to.
    pub boot: String,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// What the shell left behind as its exit status.
    pub exit: Exit,
    /// Who ended it.
    pub cause: Cause,
    /// What it used.
    pub usage: Usage,
    /// From start to end.
    pub micros: u64,
    /// Wall-clock time of the end, in microseconds since 1970.
    pub unix_micros: i64,
    /// Exit codes of the last pipeline, where bash could tell.
    pub pipestatus: Option<Vec<i32>>,
    /// What was still running when the shell had ended.
    pub left: Vec<Leftover>,
    /// How many processes there were when the run was made to end.
    pub ended_processes: usize,
}

/// Who ended a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It ended by itself.
    Own,
    /// The hard limit.
    Hard,
    /// The idle limit.
    Idle,
    /// Somebody asked for it.
    Stopped,
    /// It never began: the shell could not be started (errno).
    NotStarted(i32),
}

/// A process that outlived its shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// As the host sees it.
    pub pid: u32,
    /// Its command line.
    pub command: String,
    /// What became of it.
    pub fate: Fate,
}

/// What becomes of a process that outlived its shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It was ended.
    Ended,
    /// It goes on under the keeper.
    Kept,
}

/// How much output there was, whether kept or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Standard output.
    pub stdout: StreamTotals,
    /// Standard error.
    pub stderr: StreamTotals,
    /// Bytes that could not be stored because writing failed.
    pub lost_bytes: u64,
    /// Why, the first time.
    pub lost_because: Option<String>,
}

/// How much came out of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamTotals {
    /// Bytes.
    pub bytes: u64,
    /// Newlines.
    pub lines: u64,
    /// Characters, each invalid sequence counted as one.
    pub chars: u64,
    /// It has NUL bytes near its beginning.
    pub binary: bool,
}

impl Totals {
    /// Bytes of both streams.
    pub fn bytes(&self) -> u64 {
        self.stdout.bytes + self.stderr.bytes
    }

    /// Newlines of both streams.
    pub fn lines(&self) -> u64 {
        self.stdout.lines + self.stderr.lines
    }
}

impl Status {
    /// Reads the status that a keeper left in a run's directory. `None` when
    /// there is none, or only a torn one: then the keeper did not get as far
    /// as starting the command.
    pub fn load(dir: &Path) -> io::Result<Option<Self>> {
        match std::fs::read(dir.join(FILE)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the status so that a reader sees the old one or the new one.
    pub(crate) fn save(&self, dir: &Path) -> io::Result<()> {
        let new = dir.join("status.new");
        std::fs::write(&new, serde_json::to_vec(self)?)?;
        std::fs::rename(new, dir.join(FILE))
    }

    /// Writes the first status; there is none to tear yet.
    pub(crate) fn create(&self, dir: &Path) -> io::Result<()> {
        std::fs::write(dir.join(FILE), serde_json::to_vec(self)?)
    }

    /// Takes the status file away once the store has it.
    pub fn remove(dir: &Path) -> io::Result<()> {
        std::fs::remove_file(dir.join(FILE))
    }
}

impl Keeper {
    pub(crate) fn this() -> io::Result<Self> {
        let pid = std::process::id();
        Ok(Self {
            pid,
            started: started(pid).ok_or(io::ErrorKind::NotFound)?,
            boot: boot()?,
        })
    }

    /// Returns whether this very process still lives.
    pub fn is_alive(&self) -> bool {
        started(self.pid) == Some(self.started) && boot().is_ok_and(|boot| boot == self.boot)
    }

    /// Returns whether it belongs to an earlier boot of the machine.
    pub fn is_of_earlier_boot(&self) -> bool {
        boot().is_ok_and(|boot| boot != self.boot)
    }
}

fn boot() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}
