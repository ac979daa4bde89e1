//! The configuration of an engine.

use std::path::PathBuf;
use std::time::Duration;

pub use weighlock_api::OnClose;
use weighlock_policy::{Preset, Settings, Times};
use weighlock_store::Durability;
use weighlock_walls::{PASSED_VARIABLES, Review, Sandbox, TOOLCHAIN_VARIABLES};

/// Everything that can be set, in the order a command meets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where everything is kept.
    pub state_dir: PathBuf,
    /// Commands run in this directory or below it.
    pub base: PathBuf,
    /// How commands are guarded. The default one is there in any case.
    pub sandboxes: Vec<Sandbox>,
    /// Patterns of files that hold secrets in every sandbox, added to the
    /// built-in list.
    pub secret_files: Vec<String>,
    /// Where further sandboxes may be made; below the base directory if empty.
    pub roots: Vec<PathBuf>,
    /// How people are asked.
    pub approvals: Approvals,
    /// What happens to a session's runs when it is closed.
    pub on_close: OnClose,
    /// What commands never see, beside the state directory.
    pub hidden: Vec<PathBuf>,
    /// The file that all this was read from, for backups.
    pub settings_file: Option<PathBuf>,
    /// The policies that commands are judged by; the strictest wins. The first
    /// says how long a command may take and how its output is cut.
    pub presets: Vec<Preset>,
    /// What the older tools' policies let people set.
    pub settings: Settings,
    /// Where further rules are.
    pub policy: PolicyFiles,
    /// Time limits, where they differ from the preset's.
    pub times: Option<Times>,
    /// How many commands may run at once.
    pub max_running: usize,
    /// Variables of the server's environment that commands see.
    pub env_allow: Vec<String>,
    /// Whether the login shell is asked for its PATH.
    pub login_path: bool,
    /// How long a terminal may be open.
    pub terminal_age: Duration,
    /// How long the keyboard of a terminal is somebody's who does not use it.
    pub keyboard: KeyboardTimes,
    /// How long what a shell leaves running may go on when it is kept.
    pub keep: Duration,
    /// Bytes of output kept of one run.
    pub output_per_run: u64,
    /// Bytes of output kept of all runs together.
    pub output_total: u64,
    /// How long output is kept.
    pub output_age: Duration,
    /// How long the record is kept: commands, questions and the audit.
    pub record_age: Duration,
    /// Bytes of the record that one principal may fill in an hour.
    pub record_quota: u64,
    /// What to do with changes.
    pub effects: Effects,
    /// When webhooks get messages.
    pub notify: weighlock_notify::Config,
    /// What a crash may cost.
    pub durability: Durability,
    /// Whether the engine counts what happens, for metrics.
    pub metrics: bool,
    /// Which spans the engine makes of runs.
    pub traces: Traces,
}

/// When people are asked about changes, and how long those are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effects {
    /// When a person is asked, in sandboxes that do not say.
    pub review: Option<Review>,
    /// Bytes of before-images of all runs together; past that, the oldest
    /// cannot be undone any more.
    pub undo_bytes: u64,
    /// How long applied changes can be undone.
    pub undo_age: Duration,
    /// How long changes wait on a copy once nobody is asked about them.
    pub draft_age: Duration,
}

impl Default for Effects {
    fn default() -> Self {
        const DAY: u64 = 24 * 3600;
        Self {
            review: None,
            undo_bytes: 4 << 30,
            undo_age: Duration::from_secs(30 * DAY),
            draft_age: Duration::from_secs(7 * DAY),
        }
    }
}

/// How people are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approvals {
    /// How long a question waits; nobody's answer is a no.
    pub expire: Duration,
    /// Requesters may not approve their own requests.
    pub four_eyes: bool,
    /// A command of high risk needs two people.
    pub two_for_high_risk: bool,
    /// How many commands of one requester may wait at once.
    pub max_pending: u64,
}

impl Default for Approvals {
    fn default() -> Self {
        Self {
            expire: Duration::from_secs(300),
            four_eyes: false,
            two_for_high_risk: false,
            // More than any person reads; one agent does not crowd others out.
            max_pending: 1000,
        }
    }
}

/// Where rules come from, beside the presets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyFiles {
    /// A rule file for everybody on this server.
    pub rules: Option<PathBuf>,
    /// The rule file need not be there; without it there are no such rules.
    pub optional: bool,
    /// A directory with `defaults.yaml` and `experts/NAME/config.yaml`.
    pub agents: Option<PathBuf>,
}

/// How long a keyboard is somebody's who does not use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyboardTimes {
    /// Without a key for so long, it is given back.
    pub idle: Duration,
    /// How long a client that lost its connection may come back.
    pub lost: Duration,
}

impl Default for KeyboardTimes {
    fn default() -> Self {
        Self {
            // Long enough to look something up.
            idle: Duration::from_secs(5 * 60),
            // Long enough to load a page again.
            lost: Duration::from_secs(30),
        }
    }
}

/// Which spans are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traces {
    /// They are made at all.
    pub on: bool,
    /// They hold the text of commands.
    pub commands: bool,
}

impl Config {
    /// The defaults, for a state directory and a base directory.
    pub fn new(state_dir: PathBuf, base: PathBuf) -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            state_dir,
            base,
            sandboxes: vec![Sandbox::built_in()],
            secret_files: vec![],
            roots: vec![],
            approvals: Approvals::default(),
            on_close: OnClose::default(),
            hidden: vec![],
            settings_file: None,
            presets: vec![Preset::default()],
            settings: Settings::default(),
            policy: PolicyFiles::default(),
            times: None,
            // Each takes three small processes and a few descriptors.
            max_running: 1000,
            env_allow: PASSED_VARIABLES
                .iter()
                .chain(TOOLCHAIN_VARIABLES)
                .map(|&name| name.into())
                .collect(),
            login_path: true,
            terminal_age: Duration::from_secs(24 * 3600),
            keyboard: KeyboardTimes::default(),
            keep: Duration::from_secs(3600),
            output_per_run: 64 * MIB,
            output_total: 4096 * MIB,
            output_age: Duration::from_secs(30 * 24 * 3600),
            // A year, and a month for whoever looks at it after the year.
            record_age: Duration::from_secs(400 * 24 * 3600),
            record_quota: 256 * MIB,
            effects: Effects::default(),
            notify: weighlock_notify::Config::default(),
            durability: Durability::default(),
            metrics: false,
            traces: Traces::default(),
        }
    }

    /// Returns the policy whose manners apply.
    pub fn manners(&self) -> Preset {
        self.presets.first().copied().unwrap_or_default()
    }

    pub(crate) fn times(&self) -> Times {
        self.times.unwrap_or_else(|| self.manners().times())
    }
}
