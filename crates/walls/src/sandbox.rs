//! A directory that commands may use, together with how it is guarded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::system::sysinfo;
pub use weighlock_api::{DEFAULT_HIDDEN, Review};
use weighlock_confine::{Access, FileId, Limits, Network, Rung};
use weighlock_policy::Preset;

/// The name of the sandbox that exists without being configured.
pub const DEFAULT_SANDBOX: &str = "default";

/// Where a sandbox comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxSource {
    /// The settings, which only a person on the machine can change.
    #[default]
    Settings,
    /// Weighlock itself: it exists although no settings name it.
    BuiltIn,
    /// The store.
    Store,
    /// Preset `multi-user`: the directory of one principal, created when it is
    /// first used.
    Private,
}

/// One sandbox, as a person set it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Stays the same for life; the name where it comes from the settings.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Where it comes from.
    pub source: SandboxSource,
    /// The principal who owns it; the server's owner if not given.
    pub owner: Option<String>,
    /// Whether it accepts new runs.
    pub active: bool,
    /// Names of the principals who may use it; everybody if not given.
    /// Administrators always may.
    pub agents: Option<Vec<String>>,
    /// Device and inode of the directory when the sandbox was set up. A
    /// directory that replaced it is refused.
    pub pin: Option<FileId>,
    /// Policies that make the server's stricter here.
    pub presets: Vec<Preset>,
    /// Rules that make the server's stricter here, as text.
    pub rule_text: Option<String>,
    /// Where commands run: there or below. The base directory if not given.
    pub directory: Option<PathBuf>,
    /// Whether commands may write there.
    pub files: Access,
    /// When a person reviews commands; if not given, [`Review::Effects`] where
    /// the kernel can show a copy, and [`Review::Before`] otherwise.
    pub review: Option<Review>,
    /// Whether commands have a network.
    pub network: Network,
    /// Further paths that commands can read; `~/` is the home directory.
    pub read: Vec<PathBuf>,
    /// Further paths that commands can write.
    pub write: Vec<PathBuf>,
    /// Names that stay writable although other programs run them.
    pub unprotected: Vec<String>,
    /// The OS user that commands run as when the server is root; the owner of
    /// the directory if not given.
    pub user: Option<String>,
    /// A rule file that makes the server's policy stricter here.
    pub rules: Option<PathBuf>,
    /// The weakest level of walls that is accepted.
    pub minimum: Rung,
    /// How much a run may use.
    pub limits: Limits,
    /// The longest that a run may take; the server's limit if not given.
    pub time: Option<Duration>,
    /// Bytes of output that are kept of a run; the server's limit if not given.
    pub output_bytes: Option<u64>,
    /// Paths that are hidden wherever commands could see them; `~/` is the home
    /// directory.
    pub hidden: Vec<PathBuf>,
    /// Patterns of files that hold secrets, added to the built-in list
    /// ([`SECRET_FILES`](weighlock_policy::SECRET_FILES)) and to the server's.
    pub secret_files: Vec<String>,
    /// Variables of the server's environment that commands see here, in
    /// addition to those of the settings.
    pub pass: Vec<String>,
    /// Variables that are set here.
    pub set: BTreeMap<String, String>,
    /// Variables that are set for commands which a person or a rule has allowed.
    /// No answer shows their values.
    pub secrets: BTreeMap<String, String>,
}

impl Sandbox {
    /// Returns a sandbox with nothing set but its name.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            id: name.clone(),
            name,
            source: SandboxSource::Settings,
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
    /// Returns the default sandbox as it is where no settings name it.
    pub fn built_in() -> Self {
        Self {
            source: SandboxSource::BuiltIn,
            ..Self::new(DEFAULT_SANDBOX)
        }
    }

    /// Returns the same sandbox for a command that is proved to only read: the
    /// kernel enforces it.
    pub fn read_only(&self) -> Self {
        let mut own = self.clone();
        own.files = Access::Read;
        own.network = Network::Off;
        own.read.append(&mut own.write);
        own
    }

    /// Returns the same sandbox without network, for a command that runs on a
    /// copy before a person has allowed it.
    pub fn offline(&self) -> Self {
        Self {
            network: Network::Off,
            ..self.clone()
        }
    }
}

/// Returns whether a text can be a sandbox's name: people type it, and it is a
/// part of addresses and paths.
pub fn is_sandbox_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}

/// Returns whether a path in the settings is complete: absolute, or below the
/// home directory (`~`), and without `..`.
pub fn is_complete_path(path: &Path) -> bool {
    let mut parts = path.components();
    (path.is_absolute() || path.starts_with("~"))
        && parts.all(|part| part != std::path::Component::ParentDir)
}

/// Returns limits that suffice for the largest builds and protect the machine.
fn default_limits() -> Limits {
    const GIB: u64 = 1024 * 1024 * 1024;
    let machine = sysinfo();
    let memory_bytes = machine.totalram as u64 * u64::from(machine.mem_unit);
    Limits {
        // Three quarters of what there is: the rest is for the server and the
        // person at the machine.
        memory_bytes: memory_bytes / 4 * 3,
        processes: 4096,
        cpu_weight: 100,
        open_files: 65_536,
        file_bytes: 16 * GIB,
        disk_bytes: 16 * GIB,
        disk_files: 1_000_000,
    }
}

/// Directories of the system. No project is in one of them or holds one.
const SYSTEM_DIRS: &[&str] = &[
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

/// Directories that all users share. A project may be below one of them.
const SHARED_DIRS: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// Returns whether a directory holds more than a project: it is, or is in, a
/// part of the system; or it holds such a part, or the home directory.
pub fn is_too_wide(dir: &Path, home: &Path) -> bool {
    let mut system = SYSTEM_DIRS.iter().map(Path::new);
    let mut shared = SHARED_DIRS.iter().map(Path::new);
    home.starts_with(dir)
        || shared.any(|part| part.starts_with(dir))
        || system.any(|part| dir.starts_with(part) || part.starts_with(dir))
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
