//! What the figures were measured on.

use std::fs;

/// Returns names and values that belong above every table.
pub(crate) fn facts() -> Vec<(&'static str, String)> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    vec![
        ("kernel", first("/proc/sys/kernel/osrelease", "")),
        ("cpu", first("/proc/cpuinfo", "model name")),
        ("cores", cores.to_string()),
        ("memory", first("/proc/meminfo", "MemTotal")),
        ("load", first("/proc/loadavg", "")),
        ("files", std::env::temp_dir().display().to_string()),
    ]
}

/// Finds the first line with a name and returns what stands after its colon.
fn first(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or("unknown");
    let value = line.split_once(':').map_or(line, |(_, value)| value);
    value.trim().to_owned()
}
