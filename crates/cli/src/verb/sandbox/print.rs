//! Sandboxes as people read them.

use weighlock_api::{Checks, Files, Guard, LimitsInfo, Review, SandboxInfo};

use crate::text::{columns, one_line, safe, size};

const MIB: u64 = 1024 * 1024;

/// Prints one row for each.
pub(super) fn table(sandboxes: &[SandboxInfo]) {
    if sandboxes.is_empty() {
        println!("No sandbox yet. Without one, agents cannot run anything.");
        return;
    }
    let head = [
        "Name",
        "Directory",
        "Files",
        "Network",
        "Memory",
        "Agents",
        "",
    ];
    let head = head.map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(head)
        .chain(sandboxes.iter().map(row))
        .collect();
    columns(&rows).iter().for_each(|line| println!("{line}"));
}

fn row(info: &SandboxInfo) -> Vec<String> {
    let guard = &info.guard;
    vec![
        one_line(&info.label, 30),
        one_line(&info.path, 60),
        files(guard).into(),
        guard.network.word().into(),
        memory(&guard.limits),
        agents(guard),
        if info.is_active { "" } else { "off" }.into(),
    ]
}

/// Prints everything about one.
pub(super) fn whole(info: &SandboxInfo) {
    let guard = &info.guard;
    let paths = |paths: &[std::path::PathBuf]| {
        let paths: Vec<String> = paths
            .iter()
            .map(|path| safe(&path.to_string_lossy()))
            .collect();
        Some(paths.join(", ")).filter(|paths| !paths.is_empty())
    };
    let state = if info.is_active {
        "active"
    } else {
        "off: takes no new runs"
    };
    let presets: Vec<&str> = guard.presets.iter().map(|preset| preset.name()).collect();
    let rows = [
        (
            "sandbox",
            Some(format!(
                "{}  ({})",
                safe(&info.label),
                safe(&info.sandbox_id)
            )),
        ),
        ("directory", Some(safe(&info.path))),
        ("state", Some(state.to_owned())),
        ("owner", info.owner_principal_id.as_deref().map(safe)),
        ("from", Some(safe(&info.source))),
        ("note", info.warning.as_deref().map(safe)),
        ("files", Some(files(guard).to_owned())),
        ("review", Some(review(guard).to_owned())),
        ("network", Some(guard.network.word().to_owned())),
        ("reads", paths(&guard.read)),
        ("writes", paths(&guard.write)),
        ("hidden", paths(&guard.hidden)),
        ("secret files", Some(safe(&guard.secret_files.join(", ")))),
        ("passes", Some(safe(&guard.pass.join(", ")))),
        ("sets", Some(set(guard))),
        ("secrets", Some(safe(&guard.secrets.join(", ")))),
        ("unprotected", Some(safe(&guard.unprotected.join(", ")))),
        ("runs as", guard.user.as_deref().map(safe)),
        ("minimum", Some(guard.minimum.word().to_owned())),
        ("limits", Some(limits(&guard.limits))),
        ("presets", Some(presets.join(", "))),
        ("rules", guard.rules.as_deref().map(safe)),
        ("agents", Some(agents(guard))),
    ];
    for (name, value) in rows {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            println!("{name:<12} {}", value.replace('\n', "\n             "));
        }
    }
}

/// Prints what protects it.
pub(super) fn protection(checks: &Checks) {
    println!("What protects this:");
    checks.checks.iter().for_each(crate::verb::doctor::print);
}

fn set(guard: &Guard) -> String {
    let set = guard.set.iter();
    let set: Vec<String> = set
        .map(|(name, value)| safe(&format!("{name}={value}")))
        .collect();
    set.join("\n")
}

fn files(guard: &Guard) -> &'static str {
    match guard.files {
        Files::Read => "read only",
        Files::Effects => "on a copy",
        Files::Write => "write here",
    }
}

fn review(guard: &Guard) -> &'static str {
    match guard.review {
        None => "",
        Some(Review::Effects) => "a person is asked about effects",
        Some(Review::Before) => "a person is asked before commands run",
        Some(Review::None) => "changes are applied unasked, within the floors",
    }
}

fn memory(limits: &LimitsInfo) -> String {
    let memory = limits.memory_mib.map(|mib| size(mib.saturating_mul(MIB)));
    memory.unwrap_or_else(|| "default".into())
}

fn limits(limits: &LimitsInfo) -> String {
    let memory = limits.memory_mib.map(|mib| size(mib.saturating_mul(MIB)));
    let processes = limits.processes.map(|count| format!("{count} processes"));
    let weight = limits
        .cpu_weight
        .map(|weight| format!("CPU weight {weight}"));
    let files = limits.open_files.map(|count| format!("{count} open files"));
    let file = limits
        .file_mib
        .map(|mib| format!("files of {}", size(mib.saturating_mul(MIB))));
    let disk = limits
        .disk_mib
        .map(|mib| format!("{} to disk", size(mib.saturating_mul(MIB))));
    let made = { limits.disk_files }.map(|count| format!("{count} files on a copy"));
    let said: Vec<String> = [memory, processes, weight, files, file, disk, made]
        .into_iter()
        .flatten()
        .collect();
    match said.is_empty() {
        true => "default".into(),
        false => said.join(" · "),
    }
}

fn agents(guard: &Guard) -> String {
    match &guard.agents {
        None => "all".into(),
        Some(names) if names.is_empty() => "none".into(),
        Some(names) => safe(&names.join(", ")),
    }
}
