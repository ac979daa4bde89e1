//! A directory that commands may use, together with how it is guarded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::system::sysinfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_confine::{Access, FileId, Limits, Network, Rung};
use weighlock_policy::Preset;

use crate::error::{Error, brief};
use crate::principal::Principal;

/// The name of the sandbox that is there without being configured.
pub const DEFAULT: &str = "default";

/// Where a sandbox comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Source {
    /// The settings, which only a person on the machine can change.
    #[default]
    Settings,
    /// The settings do not name it, and it is there nevertheless.
    BuiltIn,
    /// The store.
    Store,
    /// It is the directory of one principal, made when it was first used.
    Private,
}

/// When a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Review {
    /// Before the command runs.
    Before,
    /// When it is known what it changes: it runs on a copy, offline.
    Effects,
    /// Never: what it changes on a copy is applied, but for what no preset
    /// applies unasked.
    None,
}

/// One sandbox, as a person set it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Never changes; its name where it comes from the settings.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
    /// Whose it is; the server's owner's if not given.
    pub owner: Option<String>,
    /// New runs are taken.
    pub active: bool,
    /// Who may use it; everybody if not given. Administrators always may.
    pub agents: Option<Vec<String>>,
    /// The directory as it was when it was set up: another that came to its
    /// place is not it.
    pub pin: Option<FileId>,
    /// Policies that make the server's stricter here.
    pub presets: Vec<Preset>,
    /// Rules that make the server's stricter here, as text.
    pub rule_text: Option<String>,
    /// Where commands run: there or below. The base directory if not given.
    pub directory: Option<PathBuf>,
    /// What may be done with the files there.
    pub files: Access,
    /// When a person is asked; if not given, about effects where the kernel
    /// can show a copy, and before the command otherwise.
    pub review: Option<Review>,
    /// What can be reached.
    pub network: Network,
    /// What else can be read; `~/` is the home directory.
    pub read: Vec<PathBuf>,
    /// What else can be written.
    pub write: Vec<PathBuf>,
    /// What stays writable although other programs run it.
    pub unprotected: Vec<String>,
    /// As whom commands run when the server is root; the owner of the
    /// directory if not given.
    pub user: Option<String>,
    /// A rule file that makes its policy stricter.
    pub rules: Option<PathBuf>,
    /// The weakest walls that will do.
    pub minimum: Rung,
    /// How much a run may use.
    pub limits: Limits,
    /// The longest that a run may take; the server's if not given.
    pub time: Option<Duration>,
    /// Bytes of output that are kept of a run; the server's if not given.
    pub output_bytes: Option<u64>,
    /// What is hidden wherever it could be seen; `~/` is the home directory.
    pub hidden: Vec<PathBuf>,
    /// Patterns of files that hold secrets, added to the built-in list
    /// ([`SECRET_FILES`](weighlock_policy::SECRET_FILES)) and to the server's.
    pub secret_files: Vec<String>,
    /// Variables of the server's environment that commands see here, beside
    /// those of the settings.
    pub pass: Vec<String>,
    /// Variables that are set here.
    pub set: BTreeMap<String, String>,
    /// Variables that are set where a person or a rule has allowed a command,
    /// and that nobody is shown.
    pub secrets: BTreeMap<String, String>,
}

/// What is hidden in a new sandbox unless it is said otherwise: keys, cloud
/// credentials and browser profiles, where somebody lets commands read the home
/// directory.
pub(crate) const HIDDEN: &[&str] = &[
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

impl Sandbox {
    /// A sandbox with nothing set but its name.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            id: name.clone(),
            name,
            source: Source::Settings,
            owner: None,
            active: true,
            agents: None,
            pin: None,
            presets: vec![],
            rule_text: None,
            directory: None,
            files: Access::Write,
            review: None,
            network: Network::Off,
            read: vec![],
            write: vec![],
            unprotected: vec![],
            user: None,
            rules: None,
            minimum: Rung::Full,
            limits: default_limits(),
            time: None,
            output_bytes: None,
            hidden: vec![],
            secret_files: vec![],
            pass: vec![],
            set: BTreeMap::new(),
            secrets: BTreeMap::new(),
        }
    }
}

impl Sandbox {
    /// Returns whether somebody may use it, and so may know of it.
    pub(crate) fn is_open_to(&self, who: &Principal) -> bool {
        let named = |names: &Vec<String>| names.iter().any(|name| name == who.name());
        match self.source {
            Source::Private => self.owner.as_deref() == Some(who.name()),
            _ if who.is_administrator() => true,
            _ => who.reaches(&self.id) && self.agents.as_ref().is_none_or(named),
        }
    }

    /// Returns whether somebody was told, by name, that it is for them.
    pub(crate) fn is_named_for(&self, who: &Principal) -> bool {
        let has = |names: &[String], name: &str| names.iter().any(|one| one == name);
        who.default_sandbox() == Some(&self.id)
            || who.sandboxes().is_some_and(|ids| has(ids, &self.id))
            || { self.agents.as_ref() }.is_some_and(|names| has(names, who.name()))
    }

    /// The same sandbox for a command that is proved to read and nothing else:
    /// the kernel makes that true.
    pub(crate) fn read_only(&self) -> Self {
        let mut own = self.clone();
        own.files = Access::Read;
        own.network = Network::Off;
        own.read.append(&mut own.write);
        own
    }

    /// The same sandbox for a command that is tried.
    pub(crate) fn offline(&self) -> Self {
        Self {
            network: Network::Off,
            ..self.clone()
        }
    }
}

/// Returns the default sandbox as it is where no settings name it.
pub(crate) fn built_in() -> Sandbox {
    Sandbox {
        source: Source::BuiltIn,
        ..Sandbox::new(DEFAULT)
    }
}

/// Returns whether something can be a sandbox's name: people type it, and it
/// is a part of addresses and paths.
pub fn is_label(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}

/// Returns whether a path says by itself what is meant: it is absolute, or
/// below the home directory, and has no way up.
pub fn is_whole(path: &Path) -> bool {
    let mut parts = path.components();
    (path.is_absolute() || path.starts_with("~"))
        && parts.all(|part| part != std::path::Component::ParentDir)
}

/// Finds a sandbox by its name; the default one without.
pub(crate) fn find<'a>(all: &'a [Sandbox], name: Option<&str>) -> Result<&'a Sandbox, Error> {
    let name = name.unwrap_or(DEFAULT);
    { all.iter() }
        .find(|sandbox| sandbox.name == name)
        .ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(|sandbox| sandbox.name.as_str()).collect();
            Error::NoSuchSandbox {
                name: brief(name),
                known: known.join(", "),
            }
        })
}

/// Enough for the largest builds, and not enough to take the machine down.
fn default_limits() -> Limits {
    const GIB: u64 = 1024 * 1024 * 1024;
    let memory = sysinfo();
    let all = memory.totalram as u64 * u64::from(memory.mem_unit);
    Limits {
        // Three quarters of what there is.
        memory_bytes: all / 4 * 3,
        processes: 4096,
        cpu_weight: 100,
        open_files: 65_536,
        file_bytes: 16 * GIB,
        disk_bytes: 16 * GIB,
        disk_files: 1_000_000,
    }
}

/// Directories that are the system's: what is in them, or holds one of them,
/// is nobody's workplace.
const SYSTEM: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/local/sbin",
    "/usr/sbin",
    "/usr/share",
    "/var/lib",
    "/var/log",
    "/var/run",
    "/var/spool",
];

/// Directories that everybody uses; what is in them may be somebody's.
const SHARED: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// Tells whether a directory is too much to be somebody's workplace: it is, or
/// is in, a part of the system; or it holds one, or the home directory.
pub(crate) fn is_too_wide(dir: &Path, home: &Path) -> bool {
    let system = SYSTEM.iter().map(Path::new);
    home.starts_with(dir)
        || SHARED
            .iter()
            .any(|shared| Path::new(shared).starts_with(dir))
        || { system }.any(|part| dir.starts_with(part) || part.starts_with(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_workplace_is_too_wide() {
        for (dir, too_wide) in [
            ("/", true),
            ("/home", true),
            ("/home/ana", true),
            ("/home/ana/shop", false),
            ("/home/bob", false),
            ("/etc", true),
            ("/etc/nginx", true),
            ("/usr", true),
            ("/usr/local", true),
            ("/usr/src/linux", false),
            ("/opt/app", false),
            ("/srv", false),
            ("/tmp", true),
            ("/tmp/x", false),
            ("/var/www", false),
            ("/var", true),
            ("/var/lib/dpkg", true),
        ] {
            let found = is_too_wide(Path::new(dir), Path::new("/home/ana"));
            assert_eq!(found, too_wide, "{dir}");
        }
    }
}
