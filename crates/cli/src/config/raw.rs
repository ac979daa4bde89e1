//! The configuration file as it is written.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use weighlock_api::{OnClose, Review};
use weighlock_engine::{Access, Network, Preset, Rung};

use crate::text;

/// The file as it is written. Everything may be left out.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawConfig {
    pub(super) base: Option<PathBuf>,
    pub(super) roots: Vec<PathBuf>,
    pub(super) secret_files: Vec<String>,
    pub(super) listen: Option<String>,
    pub(super) hosts: Vec<String>,
    pub(super) preset: Option<Presets>,
    pub(super) policy: RawPolicy,
    pub(super) approvals: RawApprovals,
    pub(super) sessions: RawSessions,
    pub(super) terminals: RawTerminals,
    pub(super) sandbox: BTreeMap<String, RawSandbox>,
    pub(super) effects: RawEffects,
    pub(super) limits: RawLimits,
    pub(super) environment: RawEnvironment,
    pub(super) output: RawOutput,
    pub(super) notify: RawNotify,
    pub(super) store: RawStore,
    pub(super) metrics: RawMetrics,
    pub(super) traces: RawTraces,
}

/// One preset, or several.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(try_from = "OneOrMore")]
pub(super) struct Presets(pub(super) Vec<Preset>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl TryFrom<OneOrMore> for Presets {
    type Error = String;

    fn try_from(written: OneOrMore) -> Result<Self, String> {
        let names = match written {
            OneOrMore::One(name) => vec![name],
            OneOrMore::More(names) => names,
        };
        if names.is_empty() {
            return Err("name at least one preset".into());
        }
        let known = || Preset::ALL.map(Preset::name).join(", ");
        let preset = |name: String| {
            let read = Preset::deserialize(name.as_str().into_deserializer());
            read.map_err(|_: ValueError| format!("`{name}` is not a preset; there are {}", known()))
        };
        names
            .into_iter()
            .map(preset)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawPolicy {
    pub(super) rules: Option<PathBuf>,
    pub(super) agents: Option<PathBuf>,
    pub(super) allowed_commands: Option<String>,
    pub(super) user_allowed_commands: Option<Vec<String>>,
    pub(super) blocked_commands: Option<Vec<String>>,
    pub(super) require_description: Option<bool>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawApprovals {
    pub(super) expire: Option<RawDuration>,
    pub(super) four_eyes: Option<bool>,
    pub(super) two_for_high_risk: Option<bool>,
    pub(super) max_pending: Option<u64>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawSessions {
    pub(super) on_close: Option<OnClose>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawTerminals {
    pub(super) max_age: Option<RawDuration>,
    pub(super) keyboard_idle: Option<RawDuration>,
    pub(super) keyboard_lost: Option<RawDuration>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawSandbox {
    pub(super) directory: Option<PathBuf>,
    pub(super) files: Option<Access>,
    pub(super) review: Option<Review>,
    pub(super) network: Option<Network>,
    pub(super) read: Vec<PathBuf>,
    pub(super) write: Vec<PathBuf>,
    pub(super) unprotected: Vec<String>,
    pub(super) secret_files: Vec<String>,
    pub(super) user: Option<String>,
    pub(super) rules: Option<PathBuf>,
    pub(super) minimum: Option<Rung>,
    pub(super) memory_mib: Option<u64>,
    pub(super) processes: Option<u64>,
    pub(super) cpu_weight: Option<u64>,
    pub(super) open_files: Option<u64>,
    pub(super) file_mib: Option<u64>,
    pub(super) disk_mib: Option<u64>,
    pub(super) disk_files: Option<u64>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawEffects {
    pub(super) review: Option<Review>,
    pub(super) undo_mib: Option<u64>,
    pub(super) undo_age: Option<RawDuration>,
    pub(super) draft_age: Option<RawDuration>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLimits {
    pub(super) timeout_default: Option<RawDuration>,
    pub(super) timeout_max: Option<RawDuration>,
    pub(super) running_max: Option<usize>,
    pub(super) keep: Option<RawDuration>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawEnvironment {
    pub(super) allow: Option<Vec<String>>,
    pub(super) login_path: Option<bool>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawOutput {
    pub(super) per_run_mib: Option<u64>,
    pub(super) total_mib: Option<u64>,
    pub(super) age: Option<RawDuration>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawNotify {
    pub(super) address: Option<String>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) collapse: Option<RawDuration>,
    pub(super) retry: Option<RawDuration>,
    pub(super) give_up: Option<RawDuration>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawStore {
    pub(super) durability: Option<RawDurability>,
    pub(super) age: Option<RawDuration>,
    pub(super) quota_mib: Option<u64>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawMetrics {
    pub(super) on: bool,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawTraces {
    pub(super) endpoint: Option<String>,
    pub(super) commands: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawDurability {
    Process,
    Power,
}

/// A time such as `"2m"`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct RawDuration(pub(super) std::time::Duration);

impl TryFrom<String> for RawDuration {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        let time = text::parse_patience(&written)?;
        if time.is_zero() {
            return Err("a time of zero makes no sense here".into());
        }
        Ok(Self(time))
    }
}
