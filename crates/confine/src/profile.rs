//! What a run may see, reach and use: the order for its walls.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// The walls that are wanted around one run.
///
/// The system's directories (read-only), devices, `/proc` and private
/// temporary directories are always there; a profile says the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Who the run is when the server is root; it stays who it is otherwise.
    pub identity: Identity,
    /// `$HOME` inside.
    pub home: PathBuf,
    /// The directory that stands there instead of the real one.
    pub home_layer: PathBuf,
    /// What happens to files that the run writes there.
    pub home_writes: Writes,
    /// What else can be seen. A later one covers an earlier one.
    pub files: Vec<Mount>,
    /// Where the command starts: a path that can be seen inside.
    pub cwd: PathBuf,
    /// What `cwd` must be: somebody may swap a part of its path meanwhile.
    /// In a layer, files are not known by what they are on the host.
    pub cwd_is: Option<FileId>,
    /// What can be reached.
    pub network: Network,
    /// How much can be used.
    pub limits: Limits,
    /// The weakest walls that will do; below them nothing runs.
    pub minimum: Rung,
}

/// What happens to writes into a directory that outlives a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Writes {
    /// It is there for the next one.
    Kept,
    /// It goes to a layer of the run's own.
    Layered {
        /// As in [`Mount::Layered`].
        below: Vec<PathBuf>,
        /// Likewise.
        layer: PathBuf,
        /// Directories of the host that are seen in it and outlive the run, and
        /// where. Other runs write to them, too.
        shared: Vec<(PathBuf, PathBuf)>,
    },
    /// Nothing can be written.
    Refused,
}

/// One thing to be seen inside, at its own path unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mount {
    /// A file or directory of the host. Its path has no symbolic links.
    Show {
        /// Where it is on the host.
        from: PathBuf,
        /// Where it is seen.
        at: PathBuf,
        /// What may be done there.
        access: Access,
        /// What `from` must be, where that matters.
        is: Option<FileId>,
        /// Root owns it: inside it belongs to the run's identity, and what is
        /// made there belongs to root outside.
        lent: bool,
        /// Without it nothing runs; else it is left out when it cannot be had.
        required: bool,
    },
    /// A directory of the host through copy-on-write layers: what is written
    /// goes to the newest, and the host's never changes.
    Layered {
        /// Where it is on the host.
        from: PathBuf,
        /// Where it is seen.
        at: PathBuf,
        /// What `from` must be, where that matters.
        is: Option<FileId>,
        /// As in `Show`, of the directory and all layers alike.
        lent: bool,
        /// Upper directories of earlier layers, the newest first.
        below: Vec<PathBuf>,
        /// The directory with the `upper` and `work` that take what is
        /// written. Without one nothing can be written.
        layer: Option<PathBuf>,
    },
    /// A visible part that gets another access.
    Guard {
        /// Inside. Left out when it is not there.
        at: PathBuf,
        /// What may be done there.
        access: Access,
    },
    /// A visible part whose content must not be read: its name is there, and
    /// opening it is refused (`EACCES`). Cannot be held without a mount
    /// namespace; [`Enforced`](crate::Enforced) says so.
    Close {
        /// Inside. Left out when it is not there.
        at: PathBuf,
    },
    /// A visible part that must not be seen.
    Hide {
        /// Inside. Left out when it is not there.
        at: PathBuf,
    },
}

/// What may be done with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Look, and execute.
    Read,
    /// Everything.
    Write,
}

/// A user and group as the host knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Never 0 for a run.
    pub uid: u32,
    /// See `uid`.
    pub gid: u32,
}

/// A file, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    /// The device that holds it.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

impl From<&Stat> for FileId {
    fn from(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

impl From<&Metadata> for FileId {
    fn from(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
        }
    }
}

/// What a run can reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Only itself: a loopback of its own.
    #[default]
    Off,
    /// Whatever the host can, its own services too.
    On,
}

/// How much a run may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory of all its processes.
    pub memory_bytes: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// Its share of the CPUs when they are busy; 100 is usual.
    pub cpu_weight: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// Size of one file.
    pub file_bytes: u64,
    /// Bytes written to disks.
    pub disk_bytes: u64,
    /// Files made on a copy.
    pub disk_files: u64,
}

/// How strong walls are, weakest first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    /// Landlock, seccomp and limits, in the host's own namespaces.
    Landlock,
    /// Own namespaces, with the host's `/proc`.
    SharedProc,
    /// Everything.
    #[default]
    Full,
}

impl Rung {
    /// Returns the word by which people know it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::SharedProc => "shared-proc",
            Self::Full => "full",
        }
    }
}
