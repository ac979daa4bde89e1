//! The configuration file: what is written, and what it means.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use weighlock_engine::{
    Access, Config, DEFAULT_SANDBOX, Durability, Network, Preset, Rung, Sandbox,
    Settings as PolicySettings, Times,
};

use crate::client::Failure;
use crate::text;

/// The file as it is written. Everything may be left out.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    base: Option<PathBuf>,
    listen: Option<String>,
    preset: Option<Presets>,
    policy: RawPolicy,
    sandbox: BTreeMap<String, RawSandbox>,
    limits: RawLimits,
    environment: RawEnvironment,
    output: RawOutput,
    store: RawStore,
}

/// One preset, or several.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(try_from = "OneOrMore")]
struct Presets(Vec<Preset>);

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
            read.map_err(|_: ValueError| format!("`{name}` is no preset; there are {}", known()))
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
struct RawPolicy {
    rules: Option<PathBuf>,
    agents: Option<PathBuf>,
    allowed_commands: Option<String>,
    user_allowed_commands: Option<Vec<String>>,
    blocked_commands: Option<Vec<String>>,
    require_description: Option<bool>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawSandbox {
    directory: Option<PathBuf>,
    files: Option<Access>,
    network: Option<Network>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    unprotected: Vec<String>,
    user: Option<String>,
    rules: Option<PathBuf>,
    minimum: Option<Rung>,
    memory_mib: Option<u64>,
    processes: Option<u64>,
    cpu_weight: Option<u64>,
    open_files: Option<u64>,
    file_mib: Option<u64>,
    disk_mib: Option<u64>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawLimits {
    timeout_default: Option<Time>,
    timeout_max: Option<Time>,
    running_max: Option<usize>,
    keep: Option<Time>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawEnvironment {
    allow: Option<Vec<String>>,
    login_path: Option<bool>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawOutput {
    per_run_mib: Option<u64>,
    total_mib: Option<u64>,
    age: Option<Time>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawStore {
    durability: Option<RawDurability>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawDurability {
    Process,
    Power,
}

/// A time such as `"2m"`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
struct Time(std::time::Duration);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        let time = text::parse_patience(&written)?;
        if time.is_zero() {
            return Err("a time of zero makes no sense here".into());
        }
        Ok(Self(time))
    }
}

/// What the server is told: the engine's part, and the doors'.
#[derive(Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) engine: Config,
    /// Where TCP listens, if anywhere was said.
    pub(crate) listen: Option<String>,
}

/// Reads the file, if there is one.
pub(crate) fn load(file: &Path, state_dir: &Path, base: PathBuf) -> Result<Settings, Failure> {
    let written = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(Failure::new(
                format!("cannot read {}: {error}", file.display()),
                "mend or remove it; the server does not start without knowing its settings",
            ));
        }
    };
    let mut settings = parse(&written, state_dir, base).map_err(|what| {
        Failure::new(
            format!("{}: {what}", file.display()),
            "docs/config.toml has every setting with its default",
        )
    })?;
    // Without a word about it, the rules beside the settings count.
    if settings.engine.policy.rules.is_none() {
        settings.engine.policy.rules = Some(file.with_file_name("rules.toml"));
        settings.engine.policy.optional = true;
    }
    if let Ok(allowed) = std::env::var(ALLOWED_COMMANDS) {
        settings.engine.settings.allowed_commands = allowed;
    }
    Ok(settings)
}

/// What the older tool of preset `multi-user` was set by.
const ALLOWED_COMMANDS: &str = "TERMINAL_ALLOWED_COMMANDS";

fn parse(written: &str, state_dir: &Path, base: PathBuf) -> Result<Settings, String> {
    let raw: Raw = toml::from_str(written).map_err(|error| error.to_string())?;
    let said = raw.base.map(in_home).transpose()?;
    let mut engine = Config::new(state_dir.to_owned(), said.unwrap_or(base));
    if let Some(Presets(presets)) = raw.preset {
        engine.presets = presets;
    }
    raw.policy.apply(&mut engine)?;
    let preset = engine.manners().times();
    let times = Times {
        default: raw
            .limits
            .timeout_default
            .map_or(preset.default, |time| time.0),
        max: raw.limits.timeout_max.map_or(preset.max, |time| time.0),
    };
    if times.default > times.max {
        return Err("limits: timeout_default is above timeout_max".into());
    }
    engine.times = (times != preset).then_some(times);
    let set = |to: &mut _, time: Option<Time>| {
        if let Some(Time(time)) = time {
            *to = time;
        }
    };
    set(&mut engine.keep, raw.limits.keep);
    set(&mut engine.output_age, raw.output.age);
    engine.max_running = raw.limits.running_max.unwrap_or(engine.max_running);
    engine.env_allow = raw.environment.allow.unwrap_or(engine.env_allow);
    engine.login_path = raw.environment.login_path.unwrap_or(engine.login_path);
    for (name, raw) in raw.sandbox {
        let sandbox = raw.sandbox(name)?;
        engine.sandboxes.retain(|known| known.name != sandbox.name);
        engine.sandboxes.push(sandbox);
    }
    if let Some(mib) = raw.output.per_run_mib {
        engine.output_per_run = mib.max(1).saturating_mul(MIB);
    }
    if let Some(mib) = raw.output.total_mib {
        engine.output_total = mib.max(1).saturating_mul(MIB);
    }
    engine.durability = match raw.store.durability {
        Some(RawDurability::Power) => Durability::Power,
        Some(RawDurability::Process) => Durability::Process,
        None => engine.durability,
    };
    Ok(Settings {
        engine,
        listen: raw.listen,
    })
}

const MIB: u64 = 1024 * 1024;

impl RawPolicy {
    fn apply(self, engine: &mut Config) -> Result<(), String> {
        engine.policy.rules = self.rules.map(in_home).transpose()?;
        engine.policy.agents = self.agents.map(in_home).transpose()?;
        let defaults = PolicySettings::default();
        engine.settings = PolicySettings {
            blacklist: None,
            allowed_commands: self.allowed_commands.unwrap_or(defaults.allowed_commands),
            user_allowed_commands: self
                .user_allowed_commands
                .unwrap_or(defaults.user_allowed_commands),
            blocked_commands: self.blocked_commands.or(defaults.blocked_commands),
            require_description: self
                .require_description
                .unwrap_or(defaults.require_description),
        };
        Ok(())
    }
}

impl RawSandbox {
    fn sandbox(self, name: String) -> Result<Sandbox, String> {
        let wrong = |what: &str| Err(format!("sandbox.{name}: {what}"));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return wrong("a name has letters, digits, `-` and `_`, and at most 64 of them");
        }
        match (&self.directory, name == DEFAULT_SANDBOX) {
            (Some(_), true) => return wrong("its directory is `base`"),
            (None, false) => return wrong("`directory` is missing"),
            _ => {}
        }
        let paths = self.read.iter().chain(&self.write).chain(&self.directory);
        if let Some(path) = { paths }.find(|path| !is_whole(path)) {
            return wrong(&format!("`{}` is not a whole path", path.display()));
        }
        let mut sandbox = Sandbox::new(name);
        let limits = &mut sandbox.limits;
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
        Ok(Sandbox {
            directory: self.directory.map(in_home).transpose()?,
            files: self.files.unwrap_or(sandbox.files),
            network: self.network.unwrap_or(sandbox.network),
            read: self.read,
            write: self.write,
            unprotected: self.unprotected,
            user: self.user,
            rules: self.rules.map(in_home).transpose()?,
            minimum: self.minimum.unwrap_or(sandbox.minimum),
            ..sandbox
        })
    }
}

/// Puts the home directory for `~`.
fn in_home(path: PathBuf) -> Result<PathBuf, String> {
    let Ok(rest) = path.strip_prefix("~") else {
        return Ok(path);
    };
    match std::env::var_os("HOME") {
        Some(home) => Ok(Path::new(&home).join(rest)),
        None => Err(format!("{}: HOME is not set", path.display())),
    }
}

/// Absolute, or below the home directory; and without a way up.
fn is_whole(path: &Path) -> bool {
    let mut parts = path.components();
    (path.is_absolute() || path.starts_with("~")) && { parts }
        .all(|part| part != std::path::Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(written: &str) -> Result<Settings, String> {
        parse(written, Path::new("/state"), "/base".into())
    }

    #[test]
    fn the_documented_defaults_are_the_defaults() {
        let written = include_str!("../../../docs/config.toml");
        assert!(written.lines().any(|line| line.starts_with("# base =")));
        let documented = read(written).unwrap();
        assert_eq!(documented.engine, read("").unwrap().engine);
        assert_eq!(
            documented.listen.as_deref(),
            Some(crate::verb::serve::LISTEN)
        );
    }

    #[test]
    fn a_preset_brings_its_limits_and_they_can_be_changed() {
        let settings = read("preset = \"multi-user\"").unwrap();
        assert_eq!(settings.engine.presets, [Preset::MultiUser]);
        assert_eq!(settings.engine.times, None);
        let settings = read("preset = \"bash\"\n[limits]\ntimeout_max = \"1h\"").unwrap();
        let times = settings.engine.times.unwrap();
        assert_eq!((times.default.as_secs(), times.max.as_secs()), (120, 3600));
    }

    #[test]
    fn an_error_names_its_line() {
        for (written, part) in [
            ("preset = \"x\"", "line 1"),
            ("\n\nnonsense = 1", "line 3"),
            ("[limits]\ntimeout_max = \"0s\"", "line 2"),
            (
                "[limits]\ntimeout_default = \"1h\"\ntimeout_max = \"1m\"",
                "above",
            ),
        ] {
            let error = read(written).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
