//! What a keeper knows about its run, on disk and on the wire.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
pub use weighlock_api::{StreamTotals, Totals};
use weighlock_confine::{Enforced, Exceeded, Exit, Size, Usage, started};

/// Name of the status file in a run's directory.
pub(crate) const FILE: &str = "status.jsonl";

/// The state of a run as its keeper knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The run's id.
    pub run: String,
    /// The keeper, so that it is recognised after a restart of the server.
    pub keeper: Keeper,
    /// What stands around it; unknown until the command was started.
    pub walls: Option<Enforced>,
    /// Its shell was told to say where it is.
    #[serde(default)]
    pub told: bool,
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

/// How a terminal is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalState {
    /// How large it is.
    pub size: Size,
    /// What is typed is not shown, line by line: a password, as a rule.
    pub hidden: bool,
    /// The key that ends the input of a program which reads lines.
    pub end_of_input: u8,
    /// Keys that it makes signals of, by which what is unread is dropped: to
    /// interrupt, to quit, to suspend.
    #[serde(default)]
    pub interrupts: [Option<u8>; 3],
    /// What is in its foreground, as the host sees it: a process group.
    pub foreground: Option<u32>,
    /// It, or its keeper, has input that nobody has read.
    #[serde(default)]
    pub unread: bool,
    /// How much output there was in all, with what was written just then.
    #[serde(default)]
    pub output: u64,
    /// Characters that it takes for keys, zero for none: to erase, to
    /// interrupt, to end a line and so on.
    #[serde(default)]
    pub keys: [u8; 15],
    /// It makes others of some characters that are typed.
    #[serde(default)]
    pub alters: bool,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// What the shell left behind as its exit status.
    pub exit: Exit,
    /// Who ended it.
    pub cause: Cause,
    /// Resources that it used.
    pub usage: Usage,
    /// From start to end.
    pub micros: u64,
    /// Wall-clock time of the end, in microseconds since 1970.
    pub unix_micros: i64,
    /// Exit codes of the last pipeline, where bash could tell.
    pub pipestatus: Option<Vec<i32>>,
    /// Processes still running when the shell ended.
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
    /// It used more than it may.
    Exceeded(Exceeded),
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

impl Status {
    /// Reads the last status that a keeper left in a run's directory. `None`
    /// when there is none, or it is just being written: then the keeper has
    /// not got as far as starting the command.
    pub fn load(dir: &Path) -> io::Result<Option<Self>> {
        let text = match std::fs::read_to_string(dir.join(FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // A line without its end was cut off by a crash.
        let whole = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        Ok(whole.rev().find_map(|line| serde_json::from_str(line).ok()))
    }
}

/// The file that a keeper leaves its status in: a line for each. Appending is
/// cheap, and a reader finds the last whole line whatever happens meanwhile.
pub(crate) struct StatusFile {
    file: File,
    length: u64,
}

impl StatusFile {
    pub(crate) fn create(dir: &Path) -> io::Result<Self> {
        let file = File::create_new(dir.join(FILE))?;
        Ok(Self { file, length: 0 })
    }

    pub(crate) fn append(&mut self, status: &Status) -> io::Result<()> {
        let mut line = serde_json::to_vec(status)?;
        line.push(b'\n');
        // Over whatever a full disk left of an earlier try.
        self.file.write_all_at(&line, self.length)?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Tells whether the file was taken away: the server has what is in it.
    pub(crate) fn is_gone(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().is_ok_and(|file| file.nlink() == 0)
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

    /// Ends this very process, if it still lives, and with it everything that
    /// its namespace holds.
    pub fn end(&self) {
        if self.is_alive() {
            weighlock_confine::kill(self.pid, self.started);
        }
    }

    /// Returns whether it belongs to an earlier boot of the machine.
    pub fn is_of_earlier_boot(&self) -> bool {
        boot().is_ok_and(|boot| boot != self.boot)
    }
}

/// Returns the id of this boot. It never changes, so a nursery reads it once
/// for all its keepers.
pub(crate) fn boot() -> io::Result<String> {
    static BOOT: OnceLock<String> = OnceLock::new();
    if let Some(boot) = BOOT.get() {
        return Ok(boot.clone());
    }
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(BOOT.get_or_init(|| boot.trim().to_owned()).clone())
}
