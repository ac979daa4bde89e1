//! The walls alone, beside other ways to build some.

mod others;
mod ours;
mod rounds;

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use rustix::process::geteuid;

pub(crate) use rounds::{VERB, serve};

use crate::table::{Goal, Row, Samples, Unit, not_measured};
use crate::{Effort, Result, programs};

/// Measurements by name, as they come back from the process that made them.
type Found = HashMap<String, Vec<f64>>;

/// Nobody, everywhere.
const USER: &str = "65534";

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    // Whatever comes of it shows when it is measured, or not.
    let _ = programs::install("bwrap", "--version", "bubblewrap");
    let program = std::env::current_exe()?;
    let rounds = (effort.runs / 2).max(25).to_string();
    let mut rows = rows("", &run(Command::new(&program).args([VERB, &rounds]))?);
    if geteuid().is_root() {
        // Where this program is, not everybody may look.
        let dir = tempfile::Builder::new().prefix("wlbench").tempdir()?;
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755))?;
        let copy = dir.path().join("bench");
        std::fs::copy(&program, &copy)?;
        let mut user = Command::new("setpriv");
        user.args(["--reuid", USER, "--regid", USER, "--clear-groups"])
            .arg(copy)
            .args([VERB, &rounds]);
        match run(&mut user) {
            Ok(found) => rows.extend(self::rows(", as an ordinary user", &found)),
            Err(error) => not_measured("walls, as an ordinary user", error),
        }
    }
    Ok(rows)
}

/// Has a process of one thread measure: whoever builds walls forks.
fn run(command: &mut Command) -> Result<Found> {
    let said = command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let said = said.output()?;
    if !said.status.success() {
        return Err(format!("{command:?} did not succeed: {}", said.status).into());
    }
    Ok(serde_json::from_slice(&said.stdout)?)
}

fn rows(who: &str, found: &Found) -> Vec<Row> {
    let samples = |name: &str| found.get(name).map(|times| Samples::of(times));
    let (Some(spawn), Some(shell)) = (samples(rounds::SPAWN), samples(rounds::SHELL)) else {
        return vec![];
    };
    let row = |name: &str| {
        let Some(times) = samples(name) else {
            not_measured(&format!("{name}{who}"), "it did not succeed");
            return None;
        };
        let row = Row::new(format!("{name}{who}"), Unit::Millis, &times);
        Some(match name {
            rounds::WALLS => row.against("bare true", &spawn).promise(Goal::AtMost(2.0)),
            rounds::WALLED_SHELL => row.against("sh -c true", &shell),
            _ => row.against("bare true", &spawn),
        })
    };
    rounds::NAMES.iter().filter_map(|name| row(name)).collect()
}
