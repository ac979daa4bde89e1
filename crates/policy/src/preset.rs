//! Ready sets of rules and manners: what may run, how long it may take and how
//! much of its output a reader gets.
//!
//! Rules are data where the language can say them (`presets/*.toml`).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rules::check::{AllowedPrograms, ToolCheck};
use crate::rules::load;
use crate::rules::matcher::TextMatcher;
use crate::rules::rule::RuleSubject;
use crate::{Blacklist, Layer, LayerKind, LoadError, Understand};

/// Which tool's rules and manners apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Our own: what only reads runs, all else is asked.
    #[default]
    #[serde(alias = "weighlock")]
    Strict,
    /// The same, but plain creations and edits of files are applied unasked.
    Guarded,
    /// `ExecuteCommand`: one fixed limit.
    Blacklist,
    /// `terminal`: short limits, the beginning of the output.
    MultiUser,
    /// `run_command`: the end of each stream.
    Agents,
    /// `terminal.run_command`: three short lists, all else is asked.
    Approval,
    /// `Bash`: both ends of each stream.
    Bash,
}

/// What the older tools let people set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The list that a person saved, in force with every preset. Without one,
    /// preset `blacklist` has the default list.
    pub blacklist: Option<Blacklist>,
    /// `TERMINAL_ALLOWED_COMMANDS`: `*`, or names with commas between them.
    pub allowed_commands: String,
    /// What others than administrators may start.
    pub user_allowed_commands: Vec<String>,
    /// `blockedCommands`; the default list if none.
    pub blocked_commands: Option<Vec<String>>,
    /// `requireDescription`
    pub require_description: bool,
}

/// The original says "a curated allowlist of safe commands" and that some
/// uses of `python` and `node` are blocked although they are on it.
const USER_ALLOWED: [&str; 42] = [
    "ls", "cat", "head", "tail", "pwd", "echo", "printf", "grep", "find", "wc", "sort", "uniq",
    "cut", "tr", "diff", "stat", "file", "du", "df", "date", "tree", "basename", "dirname",
    "realpath", "mkdir", "touch", "cp", "mv", "rm", "sed", "awk", "tee", "tar", "zip", "unzip",
    "gzip", "gunzip", "git", "python", "python3", "node", "jq",
];

/// How long a command may take when nothing is asked, and at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The limit of a request that names none.
    pub default: Duration,
    /// What a longer request is clamped to.
    pub max: Duration,
}

/// What a reader gets of long output, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// The beginning of both streams joined.
    Head(usize),
    /// The end of each stream.
    Tail(usize),
    /// Both ends of each stream.
    Ends(usize),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            blacklist: None,
            allowed_commands: "*".into(),
            user_allowed_commands: USER_ALLOWED.map(str::to_owned).to_vec(),
            blocked_commands: None,
            require_description: false,
        }
    }
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Strict,
        Self::Guarded,
        Self::Blacklist,
        Self::MultiUser,
        Self::Agents,
        Self::Approval,
        Self::Bash,
    ];

    /// Returns the word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Guarded => "guarded",
            Self::Blacklist => "blacklist",
            Self::MultiUser => "multi-user",
            Self::Agents => "agents",
            Self::Approval => "approval",
            Self::Bash => "bash",
        }
    }

    /// Returns its rules as text. `guarded` has only what differs from
    /// `strict`.
    pub fn rules(self) -> &'static str {
        match self {
            Self::Strict => include_str!("../presets/strict.toml"),
            Self::Guarded => include_str!("../presets/guarded.toml"),
            Self::Blacklist => include_str!("../presets/blacklist.toml"),
            Self::MultiUser => include_str!("../presets/multi-user.toml"),
            Self::Agents => include_str!("../presets/agents.toml"),
            Self::Approval => include_str!("../presets/approval.toml"),
            Self::Bash => include_str!("../presets/bash.toml"),
        }
    }

    /// Checks the examples in its rules.
    pub fn check(self, understand: &Understand<'_>) -> Result<(), Vec<LoadError>> {
        let file = format!("presets/{}.toml", self.name());
        load(LayerKind::BuiltIn, &file, self.rules(), Some(understand)).map(drop)
    }

    /// Returns the time limits.
    pub fn times(self) -> Times {
        let seconds = |default, max| Times {
            default: Duration::from_secs(default),
            max: Duration::from_secs(max),
        };
        match self {
            // Long enough for a night's build; a lower roof is a person's choice.
            Self::Strict | Self::Guarded | Self::Approval => seconds(120, 24 * 3600),
            Self::Blacklist => seconds(60, 60),
            Self::MultiUser => seconds(20, 300),
            Self::Agents | Self::Bash => seconds(120, 600),
        }
    }

    /// Returns how long output is cut for the reader.
    pub fn cut(self) -> Cut {
        match self {
            Self::Strict | Self::Guarded | Self::Approval | Self::Blacklist | Self::Bash => {
                Cut::Ends(30_000)
            }
            Self::MultiUser => Cut::Head(5_000),
            Self::Agents => Cut::Tail(50_000),
        }
    }
}

/// Returns the layers of several presets.
pub(crate) fn layers(presets: &[Preset], settings: &Settings) -> Vec<Arc<Layer>> {
    let mut layers: Vec<Arc<Layer>> = vec![always()];
    for preset in presets {
        layers.push(match preset {
            Preset::MultiUser => Arc::new(multi_user(settings)),
            Preset::Bash => Arc::new(bash(settings)),
            Preset::Guarded => guarded(),
            preset => plain(*preset),
        });
    }
    let default = presets
        .contains(&Preset::Blacklist)
        .then(Blacklist::default);
    if let Some(list) = settings.blacklist.clone().or(default) {
        layers.push(Arc::new(blacklist(list)));
    }
    layers
}

/// Returns what presets add to rules that there are already.
pub fn preset_layers(presets: &[Preset], settings: &Settings) -> Vec<Arc<Layer>> {
    match presets.is_empty() {
        true => vec![],
        false => layers(presets, settings),
    }
}

/// What holds with every preset.
fn always() -> Arc<Layer> {
    static READY: OnceLock<Arc<Layer>> = OnceLock::new();
    let make = || Arc::new(read("always", include_str!("../presets/always.toml")));
    READY.get_or_init(make).clone()
}

/// A preset that is nothing but data is read once.
fn plain(preset: Preset) -> Arc<Layer> {
    static READY: [OnceLock<Arc<Layer>>; Preset::ALL.len()] =
        [const { OnceLock::new() }; Preset::ALL.len()];
    READY[preset as usize]
        .get_or_init(|| Arc::new(named(preset)))
        .clone()
}

fn guarded() -> Arc<Layer> {
    static READY: OnceLock<Arc<Layer>> = OnceLock::new();
    let make = || {
        let mut layer = named(Preset::Strict);
        layer.changes.extend(named(Preset::Guarded).changes);
        Arc::new(layer)
    };
    READY.get_or_init(make).clone()
}

fn named(preset: Preset) -> Layer {
    let mut layer = read(preset.name(), preset.rules());
    if !matches!(preset, Preset::Strict | Preset::Guarded) {
        layer.name = preset.name().to_owned();
    }
    layer
}

fn read(name: &str, text: &str) -> Layer {
    load(LayerKind::BuiltIn, name, text, None).expect("a test loads every preset")
}

fn blacklist(list: Blacklist) -> Layer {
    let mut layer = Layer {
        name: Preset::Blacklist.name().to_owned(),
        ..Layer::default()
    };
    let remedy = "Use a command that does not contain this text; \
                  a person can change the list in .agents/terminal.json.";
    layer.check(0, "blacklist", remedy, ToolCheck::Blacklist(list));
    layer
}

fn multi_user(settings: &Settings) -> Layer {
    let mut layer = named(Preset::MultiUser);
    let admins = match settings.allowed_commands.trim() {
        "*" => None,
        list => Some(
            list.split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
        ),
    };
    let allowed = AllowedPrograms {
        admins,
        users: settings.user_allowed_commands.clone(),
    };
    layer.check(0, "empty", "", ToolCheck::Empty);
    layer.check(
        usize::MAX,
        "allowed-commands",
        "Use one of the allowed commands.",
        ToolCheck::Allowed(allowed),
    );
    layer
}

fn bash(settings: &Settings) -> Layer {
    let mut layer = named(Preset::Bash);
    if let Some(blocked) = &settings.blocked_commands {
        for rule in layer
            .rules
            .iter_mut()
            .filter(|rule| rule.name == "blocked-commands")
        {
            rule.what = RuleSubject::Text(TextMatcher::Contains(blocked.clone()));
            rule.about = blocked.join(", ");
        }
    }
    if settings.require_description {
        let remedy = "Say in `description` what the command does.";
        layer.check(0, "require-description", remedy, ToolCheck::Description);
    }
    layer
}
