//! A directory that commands may use, together with how it is guarded.

use std::path::{Path, PathBuf};

use rustix::system::sysinfo;
use weighlock_confine::{Access, Limits, Network, Rung};

use crate::error::{Error, brief};

/// The name of the sandbox that is there without being configured.
pub const DEFAULT: &str = "default";

/// One sandbox, as a person set it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Its name.
    pub name: String,
    /// Where commands run: there or below. The base directory if not given.
    pub directory: Option<PathBuf>,
    /// What may be done with the files there.
    pub files: Access,
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
}

impl Sandbox {
    /// A sandbox with nothing set but its name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            directory: None,
            files: Access::Write,
            network: Network::Off,
            read: vec![],
            write: vec![],
            unprotected: vec![],
            user: None,
            rules: None,
            minimum: Rung::Full,
            limits: default_limits(),
        }
    }
}

impl Sandbox {
    /// The same sandbox for a command that is proved to read and nothing else:
    /// the kernel makes that true.
    pub(crate) fn read_only(&self) -> Self {
        let mut own = self.clone();
        own.files = Access::Read;
        own.network = Network::Off;
        own.read.append(&mut own.write);
        own
    }
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
