//! A place apart: with mounts and processes of its own, so that the disk can
//! be filled, and whatever is left at the end is seen, and ends with it.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::Result;

/// Set for ourselves inside.
const INSIDE: &str = "WEIGHLOCK_SOAK_INSIDE";

/// The shell stays as the first process there, which buries what nobody else
/// does.
const FIRST: &str = "\"$0\" \"$@\"; exit $?";

/// Tells whether we are there already.
pub(super) fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Starts ourselves again there, and does not return if it can; says why not
/// otherwise. Root needs no user namespace, in which it could become no one
/// else.
pub(super) fn enter(words: &[String]) -> Result<String> {
    let mut why = String::new();
    for flags in ["-mpf", "-rmpf"] {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args([flags, "--mount-proc", "--kill-child"]);
            command
        };
        let tried = unshare().arg("true").stdin(Stdio::null()).output()?;
        if !tried.status.success() {
            why = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
            continue;
        }
        let own = std::env::current_exe()?;
        let failed = unshare()
            .args(["sh", "-c", FIRST])
            .arg(own)
            .arg("soak")
            .args(words)
            .env(INSIDE, "1")
            .exec();
        return Err(failed.into());
    }
    Ok(why)
}
