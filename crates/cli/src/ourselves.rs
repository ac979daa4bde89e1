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
    weighlock_engine::ancestors(std::process::id())
        .find(|&pid| is_keeper(pid))
        .map(|pid| format!("process {pid} is a keeper"))
}

/// Keepers and what they start walls with are copies of the nursery, and keep
/// its command line.
fn is_keeper(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|&byte| byte == 0).nth(1) == Some(crate::NURSERY.as_bytes())
}
