//! How a sandbox is guarded, as people say it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_confine::{Access, Network, Rung};
use weighlock_policy::Preset;
use weighlock_walls::{DEFAULT_HIDDEN, Review, Sandbox};

use super::change::bad;
use crate::error::{Error, brief};

/// How a sandbox is guarded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Guard {
    /// Access to the files there.
    pub files: Files,
    /// When a person is asked; if absent, `effects` where the kernel can show a
    /// copy of the directory, and `before` where it cannot.
    pub review: Option<Review>,
    /// What can be reached.
    #[schemars(with = "String", extend("enum" = ["off", "on"]))]
    pub network: Network,
    /// What else can be read; `~/` is the home directory.
    pub read: Vec<PathBuf>,
    /// What else can be written.
    pub write: Vec<PathBuf>,
    /// Paths that are always hidden. By default keys, cloud credentials and
    /// browser profiles.
    pub hidden: Vec<PathBuf>,
    /// Patterns of secret files, which commands cannot read unless a person or
    /// a rule allows it; added to the built-in list: `config/prod.yml`,
    /// `private/`. `!` makes an exception: `!.env.test`; `!**` empties the
    /// list.
    pub secret_files: Vec<String>,
    /// Variables of the server's environment that commands see here, beside
    /// those of the settings.
    pub pass: Vec<String>,
    /// Variables that are set here.
    pub set: BTreeMap<String, String>,
    /// Names of secret variables, whose values are never shown. Only `secrets`
    /// of the sandbox itself changes them.
    pub secrets: Vec<String>,
    /// What stays writable although other programs run it.
    pub unprotected: Vec<String>,
    /// Which OS user commands run as when the server is root.
    pub user: Option<String>,
    /// The weakest walls that will do.
    #[schemars(with = "String", extend("enum" = ["full", "shared-proc", "landlock"]))]
    pub minimum: Rung,
    /// What a run may use.
    pub limits: LimitsInfo,
    /// Policies that make the server's stricter here.
    #[schemars(with = "Vec<String>")]
    pub presets: Vec<Preset>,
    /// Rules that make the server's stricter here: the text of a rule file.
    pub rules: Option<String>,
    /// Who may use it, by name; everybody if absent.
    pub agents: Option<Vec<String>>,
}

/// Access to the files of a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// They are read.
    Read,
    /// Commands change a copy first, and `review` says how changes are applied.
    /// Without `review`, the same as `review: effects`.
    Effects,
    /// They are changed.
    #[default]
    Write,
}

/// What a run may use; absent is the server's default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsInfo {
    /// Memory of all its processes.
    pub memory_mib: Option<u64>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// Its share of the processors: 100 is the usual.
    pub cpu_weight: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// Size of one file.
    pub file_mib: Option<u64>,
    /// Written to disk in all.
    pub disk_mib: Option<u64>,
    /// Files made on a copy.
    pub disk_files: Option<u64>,
    /// The longest that a run may take.
    pub time_seconds: Option<u64>,
    /// Output that is kept of a run.
    pub output_mib: Option<u64>,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            files: Files::default(),
            review: None,
            network: Network::Off,
            read: vec![],
            write: vec![],
            hidden: DEFAULT_HIDDEN.iter().map(PathBuf::from).collect(),
            secret_files: vec![],
            pass: vec![],
            set: BTreeMap::new(),
            secrets: vec![],
            unprotected: vec![],
            user: None,
            minimum: Rung::Full,
            limits: LimitsInfo::default(),
            presets: vec![],
            rules: None,
            agents: None,
        }
    }
}

impl Guard {
    pub(crate) fn of(sandbox: &Sandbox) -> Self {
        const MIB: u64 = 1024 * 1024;
        let limits = &sandbox.limits;
        Self {
            files: match sandbox.files {
                Access::Read => Files::Read,
                Access::Write => Files::Write,
            },
            review: sandbox.review,
            network: sandbox.network,
            read: sandbox.read.clone(),
            write: sandbox.write.clone(),
            hidden: sandbox.hidden.clone(),
            secret_files: sandbox.secret_files.clone(),
            pass: sandbox.pass.clone(),
            set: sandbox.set.clone(),
            secrets: sandbox.secrets.keys().cloned().collect(),
            unprotected: sandbox.unprotected.clone(),
            user: sandbox.user.clone(),
            minimum: sandbox.minimum,
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
}

impl LimitsInfo {
    /// Overrides the defaults with the given limits.
    pub fn apply(&self, limits: &mut weighlock_confine::Limits) {
        const MIB: u64 = 1024 * 1024;
        let set = |to: &mut u64, said: Option<u64>, unit: u64| {
            if let Some(said) = said {
                *to = said.max(1).saturating_mul(unit);
            }
        };
        set(&mut limits.memory_bytes, self.memory_mib, MIB);
        set(&mut limits.processes, self.processes, 1);
        set(&mut limits.cpu_weight, self.cpu_weight, 1);
        set(&mut limits.open_files, self.open_files, 1);
        set(&mut limits.file_bytes, self.file_mib, MIB);
        set(&mut limits.disk_bytes, self.disk_mib, MIB);
        set(&mut limits.disk_files, self.disk_files, 1);
    }
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
