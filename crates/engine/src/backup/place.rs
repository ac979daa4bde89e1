//! Where a backup may go: where no command looks, nobody else can change what
//! is there, and nothing of ours is in the way.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags};
use weighlock_confine::NOBODY;

use super::OWN_DIR;
use crate::engine::{Engine, make_private};
use crate::error::{Error, brief};
use crate::principal::{Principal, Via};
use crate::view::time;

/// Why a place does not do, and what to do about it.
type Refusal = (&'static str, &'static str);

const SEEN: Refusal = (
    "is where commands can look: a backup holds everybody's commands, output and secrets",
    "put it elsewhere, or leave the directory out: then it goes into the state directory, which \
     no command sees",
);

impl Engine {
    /// Returns where a backup goes, if that does.
    pub(super) async fn place_for_backup(
        &self,
        directory: Option<PathBuf>,
        who: &Principal,
    ) -> Result<PathBuf, Error> {
        let Some(to) = directory else {
            let own = self.config.state_dir.join(OWN_DIR);
            make_private(&own)?;
            let stamp = time(self.clock.micros()).replace([':', '-'], "");
            return Ok(own.join(stamp));
        };
        let found = match is_owner(who) {
            true => self.checked(&to).await,
            false => Err((
                "was named by somebody who cannot write files of this server's user",
                "leave the directory out, or be the owner of the server on its machine",
            )),
        };
        found.map_err(|(why, hint)| {
            let named = brief(&to.to_string_lossy());
            let detail = format!("{named} {why}; nothing was written");
            Error::invalid("bad_backup_place", detail, hint)
        })
    }

    /// Returns whether a command in any sandbox could see a path.
    async fn is_seen_by_commands(&self, path: &Path) -> bool {
        let all = self.sandboxes.all();
        let sandboxes = all.iter().map(|known| &*known.sandbox);
        self.walls.is_visible(path, sandboxes).await
    }

    async fn checked(&self, to: &Path) -> Result<PathBuf, Refusal> {
        let name = to.file_name().filter(|_| to.is_absolute());
        let parent = to.parent().and_then(|dir| dir.canonicalize().ok());
        let (Some(name), Some(parent)) = (name, parent.filter(|dir| dir.is_dir())) else {
            return Err((
                "is in no directory that there is",
                "make the directory around it first",
            ));
        };
        let whole = parent.join(name);
        if whole.symlink_metadata().is_ok() {
            let mut found = fs::read_dir(&whole).into_iter().flatten();
            let link = whole.is_symlink();
            if link || !whole.is_dir() || found.next().is_some() {
                return Err(("is there already", "give a directory that is new or empty"));
            }
        }
        if is_mount(&whole) {
            return Err((
                "is where a file system is mounted, and cannot be put in place as one",
                "name a new directory below it",
            ));
        }
        let state_dir = { self.config.state_dir.canonicalize() }
            .unwrap_or_else(|_| self.config.state_dir.clone());
        if let Ok(below) = whole.strip_prefix(&state_dir) {
            // The rest is spoken for: a restore is put in place from there.
            return match below.parent() == Some(Path::new(OWN_DIR)) {
                true => Ok(whole),
                false => Err((
                    "is in the state directory",
                    "leave the directory out, or name one in `backups` there",
                )),
            };
        }
        if state_dir.starts_with(&whole) || self.is_seen_by_commands(&whole).await {
            return Err(SEEN);
        }
        match parent.ancestors().all(is_safe) {
            true => Ok(whole),
            false => Err((
                "is in a directory that other users can change",
                "name one that belongs to the server's user, or to root, all the way",
            )),
        }
    }
}

/// Whether somebody could write the same files without us.
fn is_owner(who: &Principal) -> bool {
    match who.via() {
        Via::Socket { uid, .. } => *uid == 0 || *uid == rustix::process::geteuid().as_raw(),
        Via::Library => true,
        Via::Token { .. } | Via::SignIn | Via::Record => false,
    }
}

/// What is renamed to such a place stays where it was.
fn is_mount(path: &Path) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let found = rustix::fs::statx(CWD, path, flags, StatxFlags::empty());
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Whether nobody else can put another directory in the place of one in here:
/// SQLite writes to a path, and not to what is open.
fn is_safe(dir: &Path) -> bool {
    const WRITE: [u32; 2] = [0o020, 0o002];
    const STICKY: u32 = 0o1000;
    let Ok(found) = dir.symlink_metadata() else {
        return false;
    };
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    // In a user namespace, root outside of it is nobody.
    let trusted = [0, uid.as_raw(), NOBODY.uid].contains(&found.uid());
    let [by_group, by_all] = WRITE.map(|bit| found.mode() & bit != 0);
    let by_others = by_all || by_group && ![0, gid.as_raw()].contains(&found.gid());
    trusted && (!by_others || found.mode() & STICKY != 0)
}
