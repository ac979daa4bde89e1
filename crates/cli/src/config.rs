//! The configuration file: what is written, and what it means.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use weighlock_engine::{Config, Durability, Preset, Times};

use crate::client::Failure;
use crate::text;

/// The file as it is written. Everything may be left out.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    base: Option<PathBuf>,
    listen: Option<String>,
    preset: Option<Preset>,
    limits: RawLimits,
    environment: RawEnvironment,
    output: RawOutput,
    store: RawStore,
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
    parse(&written, state_dir, base).map_err(|what| {
        Failure::new(
            format!("{}: {what}", file.display()),
            "docs/config.toml has every setting with its default",
        )
    })
}

fn parse(written: &str, state_dir: &Path, base: PathBuf) -> Result<Settings, String> {
    let raw: Raw = toml::from_str(written).map_err(|error| error.to_string())?;
    let mut engine = Config::new(state_dir.to_owned(), raw.base.unwrap_or(base));
    engine.preset = raw.preset.unwrap_or(engine.preset);
    let preset = engine.preset.times();
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
    const MIB: u64 = 1024 * 1024;
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
        assert_eq!(settings.engine.preset, Preset::MultiUser);
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
