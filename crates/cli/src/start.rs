//! Starting a server in the background.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::client::Failure;
use crate::paths::{Paths, default_base};

/// Starts a server in the background and waits until it is ready or gave up.
pub(crate) fn start(paths: &Paths) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(
            format!(
                "cannot start the server in {}: {error}; nothing was done",
                paths.state_dir.display()
            ),
            "start it by hand to see more: weighlock serve",
        )
    };
    std::fs::create_dir_all(&paths.state_dir).map_err(cannot)?;
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(log_path(paths))
        .map_err(cannot)?;
    let before = log.metadata().map_or(0, |log| log.len());
    let mut server = Command::new("/proc/self/exe")
        .arg0("weighlock")
        .arg("serve")
        .arg("--state-dir")
        .arg(&paths.state_dir)
        .arg("--base")
        .arg(default_base()?)
        .arg("--detached")
        // A server is the user's own, whoever the token stands for.
        .env_remove(crate::client::TOKEN)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    let mut ready = String::new();
    if let Some(stdout) = server.stdout.take() {
        // The server closes it when it is ready or gives up.
        let _ = BufReader::new(stdout).read_line(&mut ready);
    }
    if ready.trim() == "ready" {
        return Ok(());
    }
    let said = std::fs::read(log_path(paths)).unwrap_or_default();
    let said =
        String::from_utf8_lossy(said.get(before as usize..).unwrap_or_default()).into_owned();
    // Somebody else's server is as good as ours.
    if said.contains("another server uses") {
        return Ok(());
    }
    let (_, last) = said
        .rsplit_once("error: ")
        .unwrap_or(("", "it said nothing"));
    let default = "start it by hand to see more: weighlock serve";
    let (what, hint) = last.split_once("\nhint: ").unwrap_or((last, default));
    let what = what.trim();
    Err(Failure::new(
        format!("the server does not start: {what}; nothing was done"),
        hint.trim(),
    ))
}

pub(crate) fn log_path(paths: &Paths) -> std::path::PathBuf {
    paths.state_dir.join("server.log")
}
