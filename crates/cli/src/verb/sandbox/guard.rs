//! How a sandbox is guarded, as it is said on the command line.

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use weighlock_api::SandboxPatch;

use crate::client::Failure;

/// What can be said; what is not said stays, or is the default.
#[derive(clap::Args)]
pub(super) struct GuardOptions {
    /// What may be done with the files there: read or write
    #[arg(long, value_name = "HOW", value_parser = ["read", "write"])]
    files: Option<String>,
    /// When a person is asked: about effects, before commands run, or none
    #[arg(long, value_name = "WHEN", value_parser = ["effects", "before", "none"])]
    review: Option<String>,
    /// The same as `--files read`
    #[arg(long, conflicts_with = "files")]
    read_only: bool,
    /// What can be reached: off or on
    #[arg(long, value_name = "HOW", value_parser = ["off", "on"])]
    network: Option<String>,
    /// Who may use it; may be given several times [default: everybody]
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,
    /// Everybody may use it
    #[arg(long, conflicts_with = "agents")]
    everybody: bool,
    /// Whose it is
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// What else can be read; `~/` is the home directory
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// What else can be written
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// What is hidden wherever it could be seen [default: keys, cloud
    /// credentials, browser profiles]
    #[arg(long, value_name = "PATH")]
    hidden: Vec<PathBuf>,
    /// A file that holds secrets, kept from commands that nobody has allowed;
    /// `!NAME` for an exception [default: .env files, keys, credentials]
    #[arg(long = "secret-file", value_name = "PATTERN")]
    secret_files: Vec<String>,
    /// A variable of the server's environment that commands see there
    #[arg(long, value_name = "NAME")]
    pass: Vec<String>,
    /// A variable that is set there
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// What stays writable although other programs run it
    #[arg(long, value_name = "NAME")]
    unprotected: Vec<String>,
    /// The OS user that commands run as when the server is root
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The weakest walls that will do: full, shared-proc or landlock
    #[arg(long, value_name = "WALLS", value_parser = ["full", "shared-proc", "landlock"])]
    minimum: Option<String>,
    /// A policy that makes the server's stricter there
    #[arg(long = "preset", value_name = "NAME")]
    presets: Vec<String>,
    /// A file of rules that make the server's stricter there
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Memory of all processes of a run
    #[arg(long, value_name = "MIB")]
    memory_mib: Option<u64>,
    /// Processes and threads of a run at once
    #[arg(long, value_name = "N")]
    processes: Option<u64>,
    /// The share of the processors: 100 is the usual
    #[arg(long, value_name = "N")]
    cpu_weight: Option<u64>,
    /// Open files of one process
    #[arg(long, value_name = "N")]
    open_files: Option<u64>,
    /// Size of one file
    #[arg(long, value_name = "MIB")]
    file_mib: Option<u64>,
    /// Written to disk in all
    #[arg(long, value_name = "MIB")]
    disk_mib: Option<u64>,
    /// Files made on a copy
    #[arg(long, value_name = "N")]
    disk_files: Option<u64>,
    /// The longest that a run may take
    #[arg(long, value_name = "SECONDS")]
    time_seconds: Option<u64>,
    /// Output that is kept of a run
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
