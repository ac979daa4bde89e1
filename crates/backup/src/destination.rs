//! Where a backup may be written: where no command can read it and no other
//! user can replace it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags};

use crate::error::{Error, quoted};

/// The directory for backups in the state directory.
pub(crate) const DEFAULT_DIR: &str = "backups";

/// The owner that the kernel shows for users outside of a user namespace, such
/// as root of the host.
const UNMAPPED_UID: u32 = 65_534;

/// Why a destination is refused, and what to do.
type Refusal = (&'static str, &'static str);

const VISIBLE: Refusal = (
    "is where commands can look: a backup holds everybody's commands, output and secrets",
    "choose another directory, or omit it: then the backup goes into the state directory, which \
     no command sees",
);

/// A directory that somebody chose for a backup, resolved but not yet accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    given: PathBuf,
    parent: PathBuf,
    path: PathBuf,
}

impl Destination {
    /// Resolves a destination. It must be absolute, and its parent must exist.
    pub fn resolve(given: &Path) -> Result<Self, Error> {
        let name = given.file_name().filter(|_| given.is_absolute());
        let parent = given.parent().and_then(|dir| dir.canonicalize().ok());
        match (name, parent.filter(|dir| dir.is_dir())) {
            (Some(name), Some(parent)) => Ok(Self {
                given: given.to_owned(),
                path: parent.join(name),
                parent,
            }),
            _ => Err(refused(
                given,
                (
                    "is in a directory that does not exist",
                    "create the parent directory first, and give an absolute path",
                ),
            )),
        }
    }

    /// Refuses a destination that a person chose without access to the server's
    /// files.
    pub fn refuse_stranger(given: &Path) -> Error {
        refused(
            given,
            (
                "was named by somebody who cannot write files of this server's user",
                "omit the directory, or call as the server's owner on its machine",
            ),
        )
    }

    /// Returns the resolved path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn accept(self, state_dir: &Path, is_visible: bool) -> Result<PathBuf, Error> {
        match self.check(state_dir, is_visible) {
            Ok(()) => Ok(self.path),
            Err(why) => Err(refused(&self.given, why)),
        }
    }

    fn check(&self, state_dir: &Path, is_visible: bool) -> Result<(), Refusal> {
        self.check_new()?;
        let resolved = state_dir.canonicalize();
        let state_dir = resolved.as_deref().unwrap_or(state_dir);
        if let Ok(below) = self.path.strip_prefix(state_dir) {
            // The server uses the rest: a restore, for one, is put there.
            return if below.parent() == Some(Path::new(DEFAULT_DIR)) {
                Ok(())
            } else {
                Err((
                    "is in the state directory",
                    "omit the directory, or name one in `backups` there",
                ))
            };
        }
        if state_dir.starts_with(&self.path) || is_visible {
            return Err(VISIBLE);
        }
        if self.parent.ancestors().all(is_protected) {
            Ok(())
        } else {
            Err((
                "is in a directory that other users can change",
                "name one whose parents all belong to the server's user or to root",
            ))
        }
    }

    fn check_new(&self) -> Result<(), Refusal> {
        if self.path.symlink_metadata().is_ok() {
            let mut found = fs::read_dir(&self.path).into_iter().flatten();
            let is_link = self.path.is_symlink();
            if is_link || !self.path.is_dir() || found.next().is_some() {
                return Err(("exists already", "give a directory that is new or empty"));
            }
        }
        if is_mount(&self.path) {
            Err((
                "is where a file system is mounted, and a finished backup cannot replace that",
                "name a new directory below it",
            ))
        } else {
            Ok(())
        }
    }
}

fn refused(given: &Path, (why, hint): Refusal) -> Error {
    let named = quoted(&given.to_string_lossy());
    let detail = format!("{named} {why}; nothing was written");
    Error::invalid("bad_backup_place", detail, hint)
}

/// Returns whether a file system is mounted there: a rename cannot replace it.
fn is_mount(path: &Path) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let found = rustix::fs::statx(CWD, path, flags, StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Returns whether other users cannot replace a directory in this one. It must
/// be safe because SQLite writes to a path, not to a descriptor.
fn is_protected(dir: &Path) -> bool {
    const WRITE: [u32; 2] = [0o020, 0o002];
    const STICKY: u32 = 0o1000;
    let Ok(found) = dir.symlink_metadata() else {
        return false;
    };
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let trusted = [0, uid.as_raw(), UNMAPPED_UID].contains(&found.uid());
    let [by_group, by_all] = WRITE.map(|bit| found.mode() & bit != 0);
    let by_others = by_all || by_group && ![0, gid.as_raw()].contains(&found.gid());
    trusted && (!by_others || found.mode() & STICKY != 0)
}
