//! Why a run was refused, or ended as it did, in words.

use weighlock_api::{Detail, Reason};
use weighlock_exec::{Cause, Exceeded, Exit, MANY_PROCESSES};
use weighlock_walls::format_bytes as size;

/// Who has stopped what nobody waited for any more.
pub(crate) const OURSELVES: &str = "weighlock";

/// Says why its keeper has ended it; nothing where it has ended by itself.
pub(super) fn why(
    detail: &Detail,
    cause: Cause,
    processes: usize,
    stopped_by: Option<&str>,
) -> Option<Reason> {
    let ended = match processes {
        1 => "1 process was ended".to_owned(),
        MANY_PROCESSES.. => format!("{MANY_PROCESSES} processes or more were ended"),
        count => format!("{count} processes were ended"),
    };
    let reason =
        |code: &str, text: String, remedy: &str| Some(Reason::new(code, text).with_remedy(remedy));
    match cause {
        Cause::Own => None,
        Cause::Hard => reason(
            "time_limit",
            format!(
                "Stopped after {} s (limit). {ended}.",
                seconds(detail.timeout_ms)
            ),
            "Unchanged, it will meet the same limit again: ask for a longer time limit, \
             or run it in the background.",
        ),
        Cause::Idle => reason(
            "idle_limit",
            format!(
                "Stopped after {} s without output (limit). {ended}.",
                seconds(detail.idle_ms.unwrap_or_default())
            ),
            "It may wait for input: give it what it asks for, or a longer idle limit.",
        ),
        Cause::Exceeded(what) => exceeded(detail, what, &ended),
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
                detail.shell,
                std::io::Error::from_raw_os_error(errno)
            ),
            "Install the shell, or ask for another.",
        ),
    }
}

/// Explains signals that only walls send, whether they ended the shell or
/// what it ran last.
pub(super) fn fatal_signal(detail: &Detail, exit: Exit) -> Option<Reason> {
    const TOO_LARGE: i32 = 25;
    const BAD_CALL: i32 = 31;
    let signal = match exit {
        Exit::Signal(signal) => signal,
        Exit::Code(code) => code - 128,
    };
    let limit = detail.limits.as_ref().map_or(0, |limits| limits.file_bytes);
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

fn exceeded(detail: &Detail, what: Exceeded, ended: &str) -> Option<Reason> {
    let limits = detail.limits.as_ref();
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
            limits.map(|limits| format!("limit of {} written to disk", size(limits.disk_bytes))),
            "disk_mib",
        ),
        Exceeded::Files => (
            "disk_files_limit",
            limits.map(|limits| format!("limit of {} files made on a copy", limits.disk_files)),
            "disk_files",
        ),
        Exceeded::FreeInodes => return Some(few_inodes(ended)),
    };
    let name = detail.sandbox.as_ref().map_or("", |sandbox| &sandbox.name);
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
