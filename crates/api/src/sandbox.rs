//! Sandboxes and how they are guarded.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_policy::Preset;

/// What a new sandbox hides by default: keys, cloud credentials and browser
/// profiles, in case a person lets commands read the home directory.
pub const DEFAULT_HIDDEN: &[&str] = &[
    "~/.ssh",
    "~/.gnupg",
    "~/.password-store",
    "~/.local/share/keyrings",
    "~/.netrc",
    "~/.git-credentials",
    "~/.aws",
    "~/.azure",
    "~/.config/gcloud",
    "~/.kube",
    "~/.docker/config.json",
    "~/.mozilla",
    "~/.config/google-chrome",
    "~/.config/chromium",
];

/// When a person reviews a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Review {
    /// Before the command runs.
    Before,
    /// After it ran on a copy, offline, and its changes are known.
    Effects,
    /// Never: its changes on a copy are applied without asking, except those
    /// that no preset applies without asking.
    None,
}

/// A sandbox to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "label": "webshop", "path": "/srv/webshop", "guard": { "files": "write", "network": "off" },
}))]
pub struct NewSandbox {
    /// What people call it: letters, digits, `-` and `_`.
    pub label: String,
    /// An existing directory, as a whole path.
    pub path: String,
    /// Whose it is; the maker's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_principal_id: Option<String>,
    /// How it is guarded.
    #[serde(default)]
    pub guard: Guard,
    /// Secret variables, whose values are never shown again. Only commands that
    /// a person or a rule has allowed get them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
}

/// Changes to a sandbox; omitted fields stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxPatch {
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether new runs are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// Whose it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_principal_id: Option<String>,
    /// How it is guarded, as JSON Merge Patch: only fields to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<serde_json::Map<String, serde_json::Value>>,
    /// Secret variables, whose values are never shown again; `null` removes
    /// one. Others stay.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, Option<String>>,
}

/// A directory that could become a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderView {
    /// The directory, resolved; none where the roots are listed.
    pub path: Option<String>,
    /// The parent directory, if it may be listed.
    pub parent: Option<String>,
    /// Whose it is.
    pub owner: Option<String>,
    /// Bytes of the files in it, as far as they were counted.
    pub bytes: u64,
    /// How many files that are.
    pub files: u64,
    /// There is more than this count.
    pub more: bool,
    /// Why it cannot be a sandbox; none if it can.
    pub refused: Option<String>,
    /// Directories in it, or the allowed roots; at most 500, by name.
    pub folders: Vec<Folder>,
}

/// One directory in another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Folder {
    /// Its name; the whole path of a root.
    pub name: String,
    /// Its whole path.
    pub path: String,
}

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
    pub network: NetworkAccess,
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
    pub minimum: WallLevel,
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
            network: NetworkAccess::Off,
            read: vec![],
            write: vec![],
            hidden: DEFAULT_HIDDEN.iter().map(PathBuf::from).collect(),
            secret_files: vec![],
            pass: vec![],
            set: BTreeMap::new(),
            secrets: vec![],
            unprotected: vec![],
            user: None,
            minimum: WallLevel::Full,
            limits: LimitsInfo::default(),
            presets: vec![],
            rules: None,
            agents: None,
        }
    }
}

/// A sandbox as doors show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxInfo {
    /// Never changes.
    pub sandbox_id: String,
    /// Whose it is.
    pub owner_principal_id: Option<String>,
    /// What people call it.
    pub label: String,
    /// Commands run there or below.
    pub path: String,
    /// New runs are taken.
    pub is_active: bool,
    /// `settings` (only the configuration file changes it), `built-in` where
    /// that says nothing about it, `store`, or `private` for the directory of
    /// one principal.
    pub source: String,
    /// Warnings before it is used: that it holds more than a project, and what
    /// to do about that.
    #[serde(default)]
    pub warning: Option<String>,
    /// How it is guarded.
    #[serde(flatten)]
    pub guard: Guard,
    /// Grows with each change; the `ETag` of it.
    pub version: i64,
    /// When it was made; absent for one of the settings.
    pub created_at: Option<String>,
    /// When it was changed last.
    pub updated_at: Option<String>,
}

/// All sandboxes that the caller may see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxList {
    /// Those of the settings first.
    pub sandboxes: Vec<SandboxInfo>,
}

/// Which directory to look at.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderParams {
    /// A whole path below an allowed root; the roots are listed without it.
    pub path: Option<String>,
}

/// A directory, and what a sandbox there begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FolderAnswer {
    /// The directory.
    #[serde(flatten)]
    pub folder: FolderView,
    /// How a sandbox is guarded by default.
    pub guard: Guard,
}

/// What a sandbox lets commands reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAccess {
    /// Nothing but themselves.
    #[default]
    Off,
    /// What the host can reach.
    On,
}

impl NetworkAccess {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
        }
    }
}

/// How strong the walls of a run are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WallLevel {
    /// Landlock, seccomp and limits, in the host's own namespaces.
    Landlock,
    /// Own namespaces, with the host's `/proc`.
    SharedProc,
    /// Everything.
    #[default]
    Full,
}

impl WallLevel {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::SharedProc => "shared-proc",
            Self::Full => "full",
        }
    }
}
