//! The configuration file: what is written, and what it means.

mod raw;

use std::path::{Path, PathBuf};

use weighlock_api::LimitsInfo;

use weighlock_engine::{
    Config, DEFAULT_SANDBOX, Durability, Sandbox, SecretFiles, Settings as PolicySettings, Times,
    Traces, is_complete_path, is_sandbox_name,
};

use crate::client::Failure;
use raw::{Presets, RawApprovals, RawConfig, RawDurability, RawDuration, RawPolicy, RawSandbox};

/// The server's settings: those of the engine and those of its listeners.
#[derive(Debug, PartialEq)]
pub(crate) struct ServerSettings {
    pub(crate) engine: Config,
    /// Where TCP listens, if anywhere was said.
    pub(crate) listen: Option<String>,
    /// Names by which a proxy reaches it.
    pub(crate) hosts: Vec<String>,
    /// The base address of links to the pages, in notifications.
    pub(crate) address: Option<String>,
    /// Where trace spans are sent.
    pub(crate) traces: Option<String>,
    /// Certificates that are trusted beside the system's.
    pub(crate) ca_file: Option<PathBuf>,
}

/// Reads the file, if there is one.
pub(crate) fn load(
    file: &Path,
    state_dir: &Path,
    base: PathBuf,
) -> Result<ServerSettings, Failure> {
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

fn parse(written: &str, state_dir: &Path, base: PathBuf) -> Result<ServerSettings, String> {
    let raw: RawConfig = toml::from_str(written).map_err(|error| error.to_string())?;
    let said = raw.base.map(in_home).transpose()?;
    let mut engine = Config::new(state_dir.to_owned(), said.unwrap_or(base));
    if let Some(Presets(presets)) = raw.preset {
        engine.presets = presets;
    }
    engine.roots = { raw.roots.into_iter() }
        .map(root)
        .collect::<Result<_, _>>()?;
    engine.secret_files = patterns(raw.secret_files)?;
    raw.policy.apply(&mut engine)?;
    raw.approvals.apply(&mut engine);
    engine.on_close = raw.sessions.on_close.unwrap_or(engine.on_close);
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
    let set = |to: &mut _, time: Option<RawDuration>| {
        if let Some(RawDuration(time)) = time {
            *to = time;
        }
    };
    set(&mut engine.terminal_age, raw.terminals.max_age);
    set(&mut engine.keyboard.idle, raw.terminals.keyboard_idle);
    set(&mut engine.keyboard.lost, raw.terminals.keyboard_lost);
    set(&mut engine.keep, raw.limits.keep);
    set(&mut engine.output_age, raw.output.age);
    set(&mut engine.record_age, raw.store.age);
    set(&mut engine.notify.collapse, raw.notify.collapse);
    set(&mut engine.notify.retry, raw.notify.retry);
    set(&mut engine.notify.give_up, raw.notify.give_up);
    set(&mut engine.effects.undo_age, raw.effects.undo_age);
    set(&mut engine.effects.draft_age, raw.effects.draft_age);
    engine.effects.review = raw.effects.review;
    if let Some(mib) = raw.effects.undo_mib {
        engine.effects.undo_bytes = mib.saturating_mul(MIB);
    }
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
    if let Some(mib) = raw.store.quota_mib {
        engine.record_quota = mib.max(1).saturating_mul(MIB);
    }
    engine.durability = match raw.store.durability {
        Some(RawDurability::Power) => Durability::Power,
        Some(RawDurability::Process) => Durability::Process,
        None => engine.durability,
    };
    engine.metrics = raw.metrics.on;
    engine.traces = Traces {
        on: raw.traces.endpoint.is_some(),
        commands: raw.traces.commands,
    };
    Ok(ServerSettings {
        engine,
        listen: raw.listen,
        hosts: raw.hosts,
        address: { raw.notify.address }
            .map(|address| link_base("notify", address))
            .transpose()?,
        traces: { raw.traces.endpoint }
            .map(|address| link_base("traces", address))
            .transpose()?,
        ca_file: raw.notify.ca_file.map(in_home).transpose()?,
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

impl RawApprovals {
    fn apply(self, engine: &mut Config) {
        let approvals = &mut engine.approvals;
        approvals.expire = self.expire.map_or(approvals.expire, |time| time.0);
        approvals.four_eyes = self.four_eyes.unwrap_or(approvals.four_eyes);
        approvals.two_for_high_risk =
            { self.two_for_high_risk }.unwrap_or(approvals.two_for_high_risk);
        approvals.max_pending = self.max_pending.unwrap_or(approvals.max_pending).max(1);
    }
}

impl RawSandbox {
    fn sandbox(self, name: String) -> Result<Sandbox, String> {
        let wrong = |what: &str| Err(format!("sandbox.{name}: {what}"));
        if !is_sandbox_name(&name) {
            return wrong("a name has letters, digits, `-` and `_`, and at most 64 of them");
        }
        match (&self.directory, name == DEFAULT_SANDBOX) {
            (Some(_), true) => return wrong("its directory is `base`"),
            (None, false) => return wrong("`directory` is missing"),
            _ => {}
        }
        let paths = self.read.iter().chain(&self.write).chain(&self.directory);
        if let Some(path) = { paths }.find(|path| !is_complete_path(path)) {
            return wrong(&format!("`{}` is not a whole path", path.display()));
        }
        let mut sandbox = Sandbox::new(name);
        weighlock_engine::apply_limits(&self.limits(), &mut sandbox.limits);
        Ok(Sandbox {
            directory: self.directory.map(in_home).transpose()?,
            files: self.files.unwrap_or(sandbox.files),
            review: self.review,
            network: self.network.unwrap_or(sandbox.network),
            read: self.read,
            write: self.write,
            unprotected: self.unprotected,
            secret_files: patterns(self.secret_files)
                .map_err(|why| format!("sandbox.{}: {why}", sandbox.name))?,
            user: self.user,
            rules: self.rules.map(in_home).transpose()?,
            minimum: self.minimum.unwrap_or(sandbox.minimum),
            ..sandbox
        })
    }

    fn limits(&self) -> LimitsInfo {
        LimitsInfo {
            memory_mib: self.memory_mib,
            processes: self.processes,
            cpu_weight: self.cpu_weight,
            open_files: self.open_files,
            file_mib: self.file_mib,
            disk_mib: self.disk_mib,
            disk_files: self.disk_files,
            ..LimitsInfo::default()
        }
    }
}

/// An address of HTTP that something is added to.
fn link_base(of: &str, address: String) -> Result<String, String> {
    let plain = address.bytes().all(|byte| byte.is_ascii_graphic());
    let rest = { address.strip_prefix("https://") }.or_else(|| address.strip_prefix("http://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    match authority.filter(|_| plain) {
        // Not repeated: it would be in the log, as it would be later.
        Some(authority) if authority.contains('@') => Err(format!(
            "{of}: the address holds a name or a password before its host, which would be told to \
             whoever reads the log"
        )),
        Some(authority) if !authority.is_empty() && !authority.starts_with(':') => {
            Ok(address.trim_end_matches('/').to_owned())
        }
        _ => Err(format!(
            "{of}: `{address}` is not an address such as https://host"
        )),
    }
}

/// Refuses patterns of secret files that cannot be read.
fn patterns(written: Vec<String>) -> Result<Vec<String>, String> {
    SecretFiles::new(written.iter().map(String::as_str))
        .map_err(|why| format!("secret_files: {why}"))?;
    Ok(written)
}

/// A directory below which sandboxes may be made.
fn root(path: PathBuf) -> Result<PathBuf, String> {
    match is_complete_path(&path) {
        true => in_home(path),
        false => Err(format!("roots: `{}` is not a whole path", path.display())),
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

#[cfg(test)]
mod tests {
    use weighlock_api::OnClose;
    use weighlock_engine::Preset;

    use super::*;

    fn read(written: &str) -> Result<ServerSettings, String> {
        parse(written, Path::new("/state"), "/base".into())
    }

    #[test]
    fn the_documented_defaults_are_the_defaults() {
        let written = include_str!("../../../../docs/config.toml");
        assert!(written.lines().any(|line| line.starts_with("# base =")));
        for pattern in weighlock_engine::SECRET_FILES {
            let listed = |line: &str| line.split_whitespace().any(|word| word == *pattern);
            assert!(written.lines().any(listed), "{pattern}");
        }
        let documented = read(written).unwrap();
        let mut defaults = read("").unwrap().engine;
        // But for where it says that a sandbox comes from: it is written down.
        defaults.sandboxes[0].source = weighlock_engine::SandboxSource::Settings;
        assert_eq!(documented.engine, defaults);
        assert_eq!(documented.hosts, read("").unwrap().hosts);
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
    fn how_people_are_asked_can_be_set() {
        let written =
            "roots = [\"/srv\"]\nhosts = [\"agents.example\"]\n[approvals]\nexpire = \"1h\"
                       four_eyes = true\n[sessions]\non_close = \"keep\"";
        let settings = read(written).unwrap();
        assert_eq!(settings.engine.roots, [PathBuf::from("/srv")]);
        assert_eq!(settings.hosts, ["agents.example"]);
        assert_eq!(settings.engine.approvals.expire.as_secs(), 3600);
        assert!(settings.engine.approvals.four_eyes);
        assert_eq!(settings.engine.on_close, OnClose::Keep);
        assert!(read("roots = [\"srv\"]").is_err());
    }

    #[test]
    fn how_people_are_told_can_be_set() {
        let written = "[notify]\naddress = \"https://agents.example/\"\nca_file = \"/etc/ca.pem\"
                       collapse = \"1m\"";
        let settings = read(written).unwrap();
        assert_eq!(settings.address.as_deref(), Some("https://agents.example"));
        assert_eq!(settings.ca_file, Some("/etc/ca.pem".into()));
        assert_eq!(settings.engine.notify.collapse.as_secs(), 60);
        assert!(read("[notify]\naddress = \"agents.example\"").is_err());
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
