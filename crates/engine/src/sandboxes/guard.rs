//! How a sandbox is guarded, as people say it.

pub use weighlock_api::{Files, Guard, LimitsInfo};
use weighlock_api::{NetworkAccess, WallLevel};
use weighlock_confine::{Access, Network, Rung};
use weighlock_walls::Sandbox;

use super::change::bad;
use crate::error::{Error, brief};

/// Describes how a sandbox is guarded.
pub(crate) fn guard_of(sandbox: &Sandbox) -> Guard {
    const MIB: u64 = 1024 * 1024;
    let limits = &sandbox.limits;
    Guard {
        files: match sandbox.files {
            Access::Read => Files::Read,
            Access::Write => Files::Write,
        },
        review: sandbox.review,
        network: match sandbox.network {
            Network::Off => NetworkAccess::Off,
            Network::On => NetworkAccess::On,
        },
        read: sandbox.read.clone(),
        write: sandbox.write.clone(),
        hidden: sandbox.hidden.clone(),
        secret_files: sandbox.secret_files.clone(),
        pass: sandbox.pass.clone(),
        set: sandbox.set.clone(),
        secrets: sandbox.secrets.keys().cloned().collect(),
        unprotected: sandbox.unprotected.clone(),
        user: sandbox.user.clone(),
        minimum: match sandbox.minimum {
            Rung::Landlock => WallLevel::Landlock,
            Rung::SharedProc => WallLevel::SharedProc,
            Rung::Full => WallLevel::Full,
        },
        limits: LimitsInfo {
            memory_mib: Some(limits.memory_bytes / MIB),
            processes: Some(limits.processes),
            cpu_weight: Some(limits.cpu_weight),
            open_files: Some(limits.open_files),
            file_mib: Some(limits.file_bytes / MIB),
            disk_mib: Some(limits.disk_bytes / MIB),
            disk_files: Some(limits.disk_files),
            time_seconds: sandbox.time.map(|time| time.as_secs()),
            output_mib: sandbox.output_bytes.map(|bytes| bytes / MIB),
        },
        presets: sandbox.presets.clone(),
        rules: sandbox.rule_text.clone(),
        agents: sandbox.agents.clone(),
    }
}

/// Returns what commands of a sandbox can reach.
pub(super) fn network_of(network: NetworkAccess) -> Network {
    match network {
        NetworkAccess::Off => Network::Off,
        NetworkAccess::On => Network::On,
    }
}

/// Returns the weakest walls that a sandbox accepts.
pub(super) fn minimum_of(minimum: WallLevel) -> Rung {
    match minimum {
        WallLevel::Landlock => Rung::Landlock,
        WallLevel::SharedProc => Rung::SharedProc,
        WallLevel::Full => Rung::Full,
    }
}

/// Overrides the defaults with the given limits.
pub fn apply_limits(info: &LimitsInfo, limits: &mut weighlock_confine::Limits) {
    const MIB: u64 = 1024 * 1024;
    let set = |to: &mut u64, said: Option<u64>, unit: u64| {
        if let Some(said) = said {
            *to = said.max(1).saturating_mul(unit);
        }
    };
    set(&mut limits.memory_bytes, info.memory_mib, MIB);
    set(&mut limits.processes, info.processes, 1);
    set(&mut limits.cpu_weight, info.cpu_weight, 1);
    set(&mut limits.open_files, info.open_files, 1);
    set(&mut limits.file_bytes, info.file_mib, MIB);
    set(&mut limits.disk_bytes, info.disk_mib, MIB);
    set(&mut limits.disk_files, info.disk_files, 1);
}

/// Puts a change over what there is.
pub(super) fn merged(
    guard: &Guard,
    change: serde_json::Map<String, serde_json::Value>,
) -> Result<Guard, Error> {
    let mut now = serde_json::to_value(guard).expect("a guard is plain data");
    merge(&mut now, change);
    serde_json::from_value(now).map_err(|error| bad(brief(&error.to_string())))
}

/// JSON Merge Patch (RFC 7396).
fn merge(into: &mut serde_json::Value, change: serde_json::Map<String, serde_json::Value>) {
    let serde_json::Value::Object(into) = into else {
        return;
    };
    for (name, value) in change {
        match (into.get_mut(&name), value) {
            (_, serde_json::Value::Null) => {
                into.remove(&name);
            }
            (Some(there @ serde_json::Value::Object(_)), serde_json::Value::Object(inner)) => {
                merge(there, inner);
            }
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}
