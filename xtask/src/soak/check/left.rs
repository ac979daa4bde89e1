//! What is left when all is over: nothing that nobody needs.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::soak::ledger::Ledger;
use crate::soak::world::{World, cmdline, processes};

/// What has ended is gone by then.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// What a state directory has at its top when no server runs.
const TOP: [&str; 10] = [
    "audit.head",
    "homes",
    "layers",
    "lock",
    "recordings",
    "runs",
    // Of a server that a client has started.
    "server.log",
    "tasks",
    "undo",
    "weighlock.db",
];

/// Mounts, as they are now.
pub(crate) fn mounts() -> BTreeSet<String> {
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    all.lines().map(str::to_owned).collect()
}

/// Descriptors that a process has.
pub(crate) fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Resident memory of a process that is its own, in KiB.
pub(crate) fn memory(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let private = rollup.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        let counts = ["Private_Clean", "Private_Dirty"].contains(&name);
        counts.then(|| value.trim().trim_end_matches(" kB").parse::<u64>().ok())?
    });
    private.sum()
}

/// No process is there but the first and ourselves.
pub(crate) fn check_processes(ledger: &Ledger) {
    let others = || -> Vec<u32> {
        let own = std::process::id();
        processes().filter(|&pid| pid != 1 && pid != own).collect()
    };
    let until = Instant::now() + GONE_WITHIN;
    while !others().is_empty() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    for pid in others() {
        let line = cmdline(pid);
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        ledger.fault(format!("process {pid} is left: {line}"));
    }
}

pub(crate) fn check_mounts(before: &BTreeSet<String>, ledger: &Ledger) {
    for mount in mounts().difference(before) {
        ledger.fault(format!("a mount is left: {mount}"));
    }
}

/// Control groups carry the namespace that they were made in.
pub(crate) fn check_cgroups(ledger: &Ledger) {
    let own = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let own = own.to_string_lossy();
    let own: String = own.chars().filter(char::is_ascii_digit).collect();
    let mut todo = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("weighlock") && name.contains(&own) {
                ledger.fault(format!(
                    "a control group is left: {}",
                    entry.path().display()
                ));
            }
            todo.push(entry.path());
        }
    }
}

/// Every file of the state belongs to something on record.
pub(crate) fn check_state(world: &World, rows: &[Value], ledger: &Ledger) {
    let rows: HashMap<&str, &Value> = rows
        .iter()
        .filter_map(|row| Some((row["command_id"].as_str()?, row)))
        .collect();
    let state = world.state();
    for name in names(&state) {
        let known = TOP.contains(&name.as_str()) || name.starts_with("weighlock.db-");
        if !known {
            ledger.fault(format!("state/{name} is left"));
        }
    }
    for day in names(&state.join("runs")) {
        for run in names(&state.join("runs").join(&day)) {
            let kept = { rows.get(run.as_str()) }.map(|row| row["output"]["kept_bytes"].as_u64());
            let dir = state.join("runs").join(&day).join(&run);
            if kept.flatten().unwrap_or(0) == 0 && !is_terminal(&dir) {
                let has = names(&dir);
                ledger.fault(format!("runs/{day}/{run} is left without output: {has:?}"));
            }
        }
    }
    for run in names(&state.join("layers")) {
        let held = rows.get(run.as_str()).map(|row| &row["changes"]["state"]);
        if held.is_none_or(|state| state != "held") {
            ledger.fault(format!(
                "layers/{run} is left, and its changes are {held:?}"
            ));
        }
    }
    for run in names(&state.join("undo")) {
        let row = rows.get(run.as_str());
        if row.is_none() {
            ledger.fault(format!("undo/{run} is left, and nobody knows it"));
        }
    }
}

/// What a terminal showed is told by its diary, too.
fn is_terminal(dir: &Path) -> bool {
    names(dir).iter().any(|name| name.contains("diary"))
}

fn names(dir: &Path) -> Vec<String> {
    let all = fs::read_dir(dir).into_iter().flatten().flatten();
    all.map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}
