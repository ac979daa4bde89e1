//! What the figures were measured on, and beside whom.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// A name, and its value.
pub(crate) type Fact = (String, String);

/// Programs of others that were measured, with their versions.
static OTHERS: Mutex<Vec<Fact>> = Mutex::new(vec![]);

/// Returns names and values that belong above every table.
pub(crate) fn facts() -> Vec<Fact> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let files = std::env::temp_dir().display().to_string();
    let kind = said("stat", &["-f", "-c", "%T", &files]).unwrap_or_default();
    let facts = [
        ("weighlock", ours()),
        ("kernel", first("/proc/sys/kernel/osrelease", "")),
        ("cpu", first("/proc/cpuinfo", "model name")),
        ("cores", cores.to_string()),
        ("memory", first("/proc/meminfo", "MemTotal")),
        ("load", first("/proc/loadavg", "")),
        ("files", format!("{files} ({kind})")),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Notes that a program of somebody else is measured.
pub(crate) fn met(name: &str, version: &str) {
    let mut others = OTHERS.lock().expect("nobody panics here");
    let fact = (name.to_owned(), version.to_owned());
    if !others.contains(&fact) {
        others.push(fact);
    }
}

/// Returns all that were.
pub(crate) fn others() -> Vec<Fact> {
    OTHERS.lock().expect("nobody panics here").clone()
}

/// Runs a program; returns the first line that it says.
pub(crate) fn said(program: &str, args: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    let quiet = command
        .args(args)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let out = quiet.output().ok()?.stdout;
    let out = String::from_utf8_lossy(&out);
    Some(out.lines().next().unwrap_or_default().trim().to_owned())
}

/// Which of ours is measured.
fn ours() -> String {
    let here = ["-C", env!("CARGO_MANIFEST_DIR")];
    let commit = said(
        "git",
        &[&here[..], &["describe", "--always", "--dirty"]].concat(),
    );
    let version = env!("CARGO_PKG_VERSION");
    format!("{version} ({})", commit.unwrap_or_default())
}

/// Finds the first line with a name and returns what stands after its colon.
fn first(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or("unknown");
    let value = line.split_once(':').map_or(line, |(_, value)| value);
    value.trim().to_owned()
}
