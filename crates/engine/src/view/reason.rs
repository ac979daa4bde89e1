//! Why a run was refused, or ended as it did, in words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_exec::{Cause, Exceeded, Exit, MANY_PROCESSES};
use weighlock_walls::format_bytes as size;

use super::Detail;

/// Who has stopped what nobody waited for any more.
pub(crate) const OURSELVES: &str = "weighlock";

/// Why something was refused or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Stable word.
    pub code: String,
    /// One sentence.
    pub text: String,
    /// The rule that decided, if one did.
    pub rule: Option<String>,
    /// Where that rule is from.
    #[serde(default)]
    pub layer: Option<String>,
    /// The part of the command that it is about, where it is about one.
    #[serde(default)]
    pub part: Option<String>,
    /// What can be done.
    pub remedy: Option<String>,
}

impl Reason {
    /// A reason that is about all of the command, and no rule's.
    pub(crate) fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            text: text.into(),
            rule: None,
            layer: None,
            part: None,
            remedy: None,
        }
    }

    /// The same, with what can be done.
    pub(crate) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

impl Detail {
    /// Says why its keeper has ended it; nothing where it has ended by itself.
    pub(super) fn why(
        &self,
        cause: Cause,
        processes: usize,
        stopped_by: Option<&str>,
    ) -> Option<Reason> {
        let ended = match processes {
            1 => "1 process was ended".to_owned(),
            MANY_PROCESSES.. => format!("{MANY_PROCESSES} processes or more were ended"),
            count => format!("{count} processes were ended"),
        };
        let reason = |code: &str, text: String, remedy: &str| {
            Some(Reason::new(code, text).with_remedy(remedy))
        };
        match cause {
            Cause::Own => None,
            Cause::Hard => reason(
                "time_limit",
                format!(
                    "Stopped after {} s (limit). {ended}.",
                    seconds(self.timeout_ms)
                ),
                "Unchanged, it will meet the same limit again: ask for a longer time limit, \
                 or run it in the background.",
            ),
            Cause::Idle => reason(
                "idle_limit",
                format!(
                    "Stopped after {} s without output (limit). {ended}.",
                    seconds(self.idle_ms.unwrap_or_default())
                ),
                "It may wait for input: give it what it asks for, or a longer idle limit.",
            ),
            Cause::Exceeded(what) => self.exceeded(what, &ended),
            Cause::Stopped if stopped_by == Some(OURSELVES) => reason(
                "left",
                format!("Stopped, since nobody waited for it any more. {ended}."),
                "Run it in the background if it should continue.",
            ),
            Cause::Stopped => reason(
                "stopped",
                match stopped_by {
                    Some(who) => format!("Stopped by {who}. {ended}."),
                    None => format!("Stopped. {ended}."),
                },
                "Run it again when it is wanted.",
            ),
            Cause::NotStarted(errno) => reason(
                "cannot_start",
                format!(
                    "Cannot start /bin/{}: {}. Nothing was run.",
                    self.shell,
                    std::io::Error::from_raw_os_error(errno)
                ),
                "Install the shell, or ask for another.",
            ),
        }
    }

    /// Explains signals that only walls send, whether they ended the shell or
    /// what it ran last.
    pub(super) fn fatal_signal(&self, exit: Exit) -> Option<Reason> {
        const TOO_LARGE: i32 = 25;
        const BAD_CALL: i32 = 31;
        let signal = match exit {
            Exit::Signal(signal) => signal,
            Exit::Code(code) => code - 128,
        };
        let limit = self.limits.as_ref().map_or(0, |limits| limits.file_bytes);
        let (code, text, remedy) = match signal {
            TOO_LARGE => (
                "file_limit",
                format!("A file reached the limit of {}.", size(limit)),
                "Write less into one file, or let a person raise `file_mib` of the sandbox.",
            ),
            BAD_CALL => (
                "foreign_calls",
                "It used system calls of another architecture, as 32-bit programs do.".into(),
                "Use a program for this machine's own architecture.",
            ),
            _ => return None,
        };
        Some(Reason::new(code, text).with_remedy(remedy))
    }

    fn exceeded(&self, what: Exceeded, ended: &str) -> Option<Reason> {
        let limits = self.limits.as_ref();
        let (code, limit, setting) = match what {
            Exceeded::Memory => (
                "memory_limit",
                limits.map(|limits| format!("memory limit {}", size(limits.memory_bytes))),
                "memory_mib",
            ),
            Exceeded::Processes => (
                "process_limit",
                limits.map(|limits| format!("limit of {} processes", limits.processes)),
                "processes",
            ),
            Exceeded::Disk => (
                "disk_limit",
                limits
                    .map(|limits| format!("limit of {} written to disk", size(limits.disk_bytes))),
                "disk_mib",
            ),
            Exceeded::Files => (
                "disk_files_limit",
                limits.map(|limits| format!("limit of {} files made on a copy", limits.disk_files)),
                "disk_files",
            ),
            Exceeded::FreeInodes => return Some(few_inodes(ended)),
        };
        let name = self.sandbox.as_ref().map_or("", |sandbox| &sandbox.name);
        Some(
            Reason::new(
                code,
                format!(
                    "{} reached. {ended}.",
                    limit.unwrap_or_else(|| code.replace('_', " "))
                ),
            )
            .with_remedy(format!(
                "Unchanged, it will meet the same limit again: use less, or let a person raise \
                 `{setting}` of sandbox `{name}`."
            )),
        )
    }
}

fn few_inodes(ended: &str) -> Reason {
    let text = format!(
        "So few inodes are left on the disk of the copy that they are kept for others. {ended}."
    );
    let remedy = "Decide about changes that wait, or let a person remove files there: `df -i` \
                  shows what is left.";
    Reason::new("few_inodes", text).with_remedy(remedy)
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}
