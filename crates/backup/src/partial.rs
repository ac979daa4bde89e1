//! A backup that is being written, and its removal if the write does not finish.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::root_dir::RootDir;

/// The extension of an incomplete backup.
const PARTIAL: &str = "partial";

/// Hexadecimal digits of the random number in its name.
const RANDOM_DIGITS: usize = 16;

/// An incomplete backup. Dropping it removes it, unless it was completed.
pub(crate) struct PartialBackup {
    pub(crate) dir: RootDir,
    /// Locked while the backup is written, so that nobody removes it.
    _lock: File,
    is_complete: bool,
}

impl PartialBackup {
    /// Creates a private directory beside the destination, under a name that
    /// nobody could have created before.
    pub(crate) fn create(to: &Path) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        let random = u64::from_ne_bytes(random);
        let path = to.with_file_name(format!(".{name}.{random:0RANDOM_DIGITS$x}.{PARTIAL}"));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let lock = File::open(&path)?;
        // On a file system without locks, `remove_abandoned` cannot lock either
        // and removes nothing.
        let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        Ok(Self {
            dir: RootDir::open(&path)?,
            _lock: lock,
            is_complete: false,
        })
    }

    /// Renames the backup to its destination.
    pub(crate) fn complete(mut self, to: &Path) -> io::Result<()> {
        fs::rename(self.dir.root(), to)?;
        self.is_complete = true;
        sync(to.parent().unwrap_or(to))
    }
}

impl Drop for PartialBackup {
    fn drop(&mut self) {
        if !self.is_complete {
            let _ = fs::remove_dir_all(self.dir.root());
        }
    }
}

/// Removes incomplete backups of servers that were killed.
pub(crate) fn remove_abandoned(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(lock) = is_own_partial(&path)
            .then(|| File::open(&path).ok())
            .flatten()
        else {
            continue;
        };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn is_own_partial(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let parts: Vec<&str> = name.rsplitn(3, '.').collect();
    let is_named = matches!(parts[..], [PARTIAL, random, rest]
        if rest.starts_with('.') && random.len() == RANDOM_DIGITS
            && random.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let uid = rustix::process::geteuid().as_raw();
    let found = path.symlink_metadata();
    is_named && found.is_ok_and(|found| found.is_dir() && found.uid() == uid)
}

/// Writes everything of a directory's file system to disk.
pub(crate) fn sync(dir: &Path) -> io::Result<()> {
    rustix::fs::syncfs(File::open(dir)?).map_err(io::Error::from)
}
