//! Whether we were started by a command that weighlock runs: what is run does
//! not decide what may run.

use crate::client::Failure;

/// What every command finds in its environment.
const RUN: &str = "WEIGHLOCK_RUN";

/// Refuses to decide anything from inside a run.
pub(crate) fn may_decide() -> Result<(), Failure> {
    let Some(how) = inside() else {
        return Ok(());
    };
    Err(Failure::new(
        format!("nothing is decided inside a run of weighlock ({how}); nothing was done"),
        "a person decides in a terminal of their own",
    ))
}

/// Returns by what we know that we are inside a run. The environment alone
/// could be emptied.
fn inside() -> Option<String> {
    if let Some(run) = std::env::var_os(RUN) {
        return Some(format!("{RUN}={}", run.to_string_lossy()));
    }
    ancestors()
        .find(|&pid| is_keeper(pid))
        .map(|pid| format!("process {pid} is a keeper"))
}

/// The processes that we descend from, the nearest first.
pub(crate) fn ancestors() -> impl Iterator<Item = u32> {
    let parent = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
        fields.nth(1)?.parse().ok().filter(|&pid| pid > 0)
    };
    std::iter::successors(parent(std::process::id()), move |&pid| parent(pid))
}

/// Keepers and what they start walls with are copies of the nursery, and keep
/// its command line.
fn is_keeper(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|&byte| byte == 0).nth(1) == Some(crate::NURSERY.as_bytes())
}
