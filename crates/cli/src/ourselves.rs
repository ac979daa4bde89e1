//! Whether we were started by a command that weighlock runs: what is run does
//! not decide what may run.

use serde_json::json;

use crate::client::{Client, Failure, block_on, escape};
use crate::paths::Paths;

/// What every command finds in its environment.
const RUN: &str = "WEIGHLOCK_RUN";

/// Refuses to decide anything from inside a run.
pub(crate) fn may_decide() -> Result<(), Failure> {
    let Some(how) = inside() else {
        return Ok(());
    };
    Err(Failure::new(
        format!(
            "approving and administering is refused inside a weighlock run ({how}); nothing was done"
        ),
        "approve outside the run, in your own terminal",
    ))
}

/// Refuses to answer a question from inside a run, and has it written down by
/// a server that can be reached from there. Behind walls there is none: then
/// the run, with what it said, is what is on record.
pub(crate) fn may_answer(id: Option<&str>, paths: &Paths) -> Result<(), Failure> {
    let refused = may_decide();
    if refused.is_err() {
        let _ = block_on(async {
            let Some(mut server) = Client::try_open(paths).await? else {
                return Ok(());
            };
            let path = format!("/approvals/{}/decision", escape(id.unwrap_or("any")));
            server.tell(&path, &json!({})).await
        });
    }
    refused
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
