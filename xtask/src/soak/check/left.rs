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

/// What a home has where no command writes to it: what the server puts there, and
/// what shells of terminals leave.
const IN_HOMES: [&str; 2] = [".bash_history", ".gitconfig"];

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

/// Control groups carry the namespace that they were made in. Where none can be
/// made, there is nothing to look for, which is no proof of anything.
pub(crate) fn check_cgroups(rows: &[Value], ledger: &Ledger) {
    let layers = rows
        .iter()
        .flat_map(|row| row["sandbox"]["layers"].as_array().into_iter().flatten());
    let made = layers
        .filter_map(|layer| layer["how"].as_str())
        .any(|how| how.starts_with("cgroup"));
    if !made {
        println!("SKIPPED: no run had a control group here, so none can be left.");
    }
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

/// Files of tasks, homes and recordings belong to somebody who is on record.
pub(crate) fn check_files(world: &World, rows: &[Value], ledger: &Ledger) {
    let state = world.state();
    for session in names(&state.join("tasks")) {
        let dir = state.join("tasks").join(&session);
        for name in names(&dir) {
            let task = name.trim_start_matches("bash-").trim_end_matches(".log");
            let of = |row: &&Value| {
                row["short_id"].as_str() == Some(&*format!("r_{task}"))
                    && row["session_id"] == *session
            };
            if rows.iter().any(|row| of(&row)) {
                continue;
            }
            // Made before its run could be recorded; age removes it.
            let bytes = fs::metadata(dir.join(&name)).map_or(0, |file| file.len());
            match bytes {
                0 => ledger.count("files of tasks that never came to be"),
                _ => ledger.fault(format!("tasks/{session}/{name} is nobody's: {bytes} bytes")),
            }
        }
    }
    // Whoever was refused or cut off may have left one, and nobody else.
    let nobodys = ledger.counted("files of tasks that never came to be");
    let refused = ledger.counted("answers: storage full")
        + ledger.counted("calls that the server's death cut off")
        + ledger.counted("clients that vanished");
    if nobodys > refused {
        ledger.fault(format!(
            "{nobodys} files of tasks are nobody's, and {refused} were refused"
        ));
    }
    for sandbox in names(&state.join("homes")) {
        let dir = state.join("homes").join(&sandbox);
        if !["default", "copies"].contains(&sandbox.as_str()) {
            ledger.fault(format!("homes/{sandbox} is of no sandbox"));
        }
        for user in names(&dir) {
            let mut has = names(&dir.join(&user));
            has.retain(|name| !IN_HOMES.contains(&name.as_str()));
            if !has.is_empty() {
                ledger.fault(format!("homes/{sandbox}/{user} has {has:?}"));
            }
        }
    }
    for name in names(&state.join("recordings")) {
        let run = name.split('.').next().unwrap_or_default();
        let known = rows.iter().any(|row| row["command_id"] == *run);
        if !known {
            ledger.fault(format!("recordings/{name} is of no run on record"));
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
