//! How a sandbox is guarded, as it is said on the command line.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use weighlock_engine::SandboxPatch;

use crate::client::Failure;

/// What can be said; what is not said stays, or is the default.
#[derive(clap::Args)]
pub(super) struct GuardOptions {
    /// Access to the files there: read or write
    #[arg(long, value_name = "HOW", value_parser = ["read", "write"])]
    files: Option<String>,
    /// When a person is asked: effects (about changes), before (a command
    /// runs), or none
    #[arg(long, value_name = "WHEN", value_parser = ["effects", "before", "none"])]
    review: Option<String>,
    /// The same as `--files read`
    #[arg(long, conflicts_with = "files")]
    read_only: bool,
    /// Network access: off or on
    #[arg(long, value_name = "HOW", value_parser = ["off", "on"])]
    network: Option<String>,
    /// Who may use it; may be given several times [default: everybody]
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,
    /// Everybody may use it
    #[arg(long, conflicts_with = "agents")]
    everybody: bool,
    /// Its owner
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Another path that commands may read; `~/` is the home directory
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// Another path that commands may write
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// A path that is always hidden [default: keys, cloud credentials, browser
    /// profiles]
    #[arg(long, value_name = "PATH")]
    hidden: Vec<PathBuf>,
    /// A secret file, hidden from commands that are not approved; `!NAME` for
    /// an exception [default: .env files, keys, credentials]
    #[arg(long = "secret-file", value_name = "PATTERN")]
    secret_files: Vec<String>,
    /// A variable that is passed through from the server's environment
    #[arg(long, value_name = "NAME")]
    pass: Vec<String>,
    /// A variable to set for commands there
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// A path that stays writable although other programs execute it
    #[arg(long, value_name = "NAME")]
    unprotected: Vec<String>,
    /// The OS user that commands run as when the server is root
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The weakest isolation to accept: full, shared-proc or landlock
    #[arg(long, value_name = "WALLS", value_parser = ["full", "shared-proc", "landlock"])]
    minimum: Option<String>,
    /// A preset that makes the server's policy stricter there
    #[arg(long = "preset", value_name = "NAME")]
    presets: Vec<String>,
    /// A rule file that makes the server's policy stricter there
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Memory limit for all processes of a run
    #[arg(long, value_name = "MIB")]
    memory_mib: Option<u64>,
    /// Processes and threads of a run at once
    #[arg(long, value_name = "N")]
    processes: Option<u64>,
    /// CPU weight [default: 100]
    #[arg(long, value_name = "N")]
    cpu_weight: Option<u64>,
    /// Open files of one process
    #[arg(long, value_name = "N")]
    open_files: Option<u64>,
    /// Size of one file
    #[arg(long, value_name = "MIB")]
    file_mib: Option<u64>,
    /// Total bytes that a run may write to disk
    #[arg(long, value_name = "MIB")]
    disk_mib: Option<u64>,
    /// Files that a run may create on a copy
    #[arg(long, value_name = "N")]
    disk_files: Option<u64>,
    /// Maximum duration of a run
    #[arg(long, value_name = "SECONDS")]
    time_seconds: Option<u64>,
    /// Output to keep per run
    #[arg(long, value_name = "MIB")]
    output_mib: Option<u64>,
}

/// Reads a variable with its value.
fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl GuardOptions {
    pub(super) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// Returns only what was said.
    pub(super) fn guard(&self) -> Result<Map<String, Value>, Failure> {
        let rules = self.rules.as_ref().map(std::fs::read_to_string).transpose();
        let rules = rules.map_err(|error| {
            Failure::new(
                format!("cannot read the rules: {error}; nothing was changed"),
                "",
            )
        })?;
        let mut guard = Map::new();
        let mut say = |name: &str, value: Value| {
            if !is_nothing(&value) {
                guard.insert(name.to_owned(), value);
            }
        };
        say(
            "files",
            json!(self.read_only.then_some("read").or(self.files.as_deref())),
        );
        say("review", json!(self.review));
        say("network", json!(self.network));
        say("agents", json!(self.agents));
        say("read", json!(self.read));
        say("write", json!(self.write));
        say("hidden", json!(self.hidden));
        say("secret_files", json!(self.secret_files));
        say("pass", json!(self.pass));
        let set = self.set.iter().cloned();
        say(
            "set",
            Value::Object(set.map(|(name, value)| (name, value.into())).collect()),
        );
        say("unprotected", json!(self.unprotected));
        say("user", json!(self.user));
        say("minimum", json!(self.minimum));
        say("presets", json!(self.presets));
        say("rules", json!(rules));
        say("limits", Value::Object(self.limits()));
        if self.everybody {
            guard.insert("agents".into(), Value::Null);
        }
        Ok(guard)
    }

    fn limits(&self) -> Map<String, Value> {
        let limits = [
            ("memory_mib", self.memory_mib),
            ("processes", self.processes),
            ("cpu_weight", self.cpu_weight),
            ("open_files", self.open_files),
            ("file_mib", self.file_mib),
            ("disk_mib", self.disk_mib),
            ("disk_files", self.disk_files),
            ("time_seconds", self.time_seconds),
            ("output_mib", self.output_mib),
        ];
        let said = { limits.into_iter() }.filter_map(|(name, limit)| Some((name, limit?)));
        said.map(|(name, limit)| (name.to_owned(), json!(limit)))
            .collect()
    }

    /// Returns what is to change.
    pub(super) fn patch(&self, label: Option<String>) -> Result<SandboxPatch, Failure> {
        let guard = self.guard()?;
        Ok(SandboxPatch {
            label,
            is_active: None,
            owner_principal_id: self.owner.clone(),
            guard: Some(guard).filter(|guard| !guard.is_empty()),
            ..SandboxPatch::default()
        })
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        value => value.is_null(),
    }
}
