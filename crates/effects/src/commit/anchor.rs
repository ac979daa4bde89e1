//! Where things wait, and which directories notice.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::error::{CommitError, cannot};
use super::handle::{Handle, Traits};
use super::journal::{Anchor, Dir, DirTraits, JournalLine, JournalStep};
use super::refuse::OWN;
use super::stage::Stager;
use super::tree::OpenDirs;
use crate::changes::Change;
use crate::node::Time;

type Done<T = ()> = Result<T, CommitError>;

impl Stager<'_> {
    /// Returns the anchor for what happens at a path: the topmost directory of
    /// the same file system in which we may write.
    pub(crate) fn anchor(&mut self, root: usize, path: &Path) -> Done<usize> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let find = self.find_anchor(root, parent);
        find.map_err(cannot("make a temporary directory above", path))
    }

    fn find_anchor(&mut self, root: usize, parent: &Path) -> io::Result<usize> {
        let device = OpenDirs::at(self.work.trees[root].dir(parent)?)
            .id()?
            .device;
        if let Some(anchor) = self.try_anchor(root, Path::new(""), device)? {
            return Ok(anchor);
        }
        let mut above: Vec<&Path> = parent.ancestors().collect();
        above.reverse();
        for dir in above {
            if let Some(anchor) = self.try_anchor(root, dir, device)? {
                return Ok(anchor);
            }
        }
        Err(Errno::ACCESS.into())
    }

    fn try_anchor(&mut self, root: usize, path: &Path, device: u64) -> io::Result<Option<usize>> {
        let key = (root, path.to_owned());
        if let Some((of, known)) = self.usable.get(&key) {
            return Ok(known.filter(|_| *of == device));
        }
        let dir = self.work.trees[root].dir(path)?;
        let own = OpenDirs::at(dir).id()?.device;
        if own != device {
            return Ok(None);
        }
        let made = match self.make_anchor(root, path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
            made => Some(made?),
        };
        self.usable.insert(key, (own, made));
        Ok(made)
    }

    /// Makes the directory, after it is written down that it might be there.
    fn make_anchor(&mut self, root: usize, path: &Path) -> io::Result<usize> {
        let dir = self.work.trees[root].dir(path)?;
        self.note(root, path, false)?;
        let anchor = Anchor {
            root,
            path: path.into(),
            name: self.own_name(),
            mtime: Handle::open(&dir, OsStr::new("."))?
                .map(|handle| handle.node())
                .transpose()?
                .map_or_else(Time::default, |node| node.mtime),
        };
        self.journal.write(&JournalLine::Anchor(anchor.clone()))?;
        self.journal.flush(self.work.durable)?;
        mkdirat(&dir, &anchor.name, Mode::RWXU)?;
        self.stages.push(OpenDirs::at(
            OpenDirs::at(dir).dir(Path::new(&anchor.name))?,
        ));
        self.work.anchors.push(anchor);
        Ok(self.work.anchors.len() - 1)
    }

    /// A name that nobody can have guessed and prepared.
    fn own_name(&self) -> String {
        let now = std::time::SystemTime::now();
        let text = format!("{:?} {now:?} {}", self.work.place, std::process::id());
        let hash = Sha256::digest(text.as_bytes());
        let hash: String = hash.iter().take(4).map(|b| format!("{b:02x}")).collect();
        format!("{OWN}{hash}-{}", self.work.anchors.len())
    }

    pub(crate) fn note_parent(&mut self, root: usize, path: &Path) -> Done {
        self.note_dir(root, path.parent().unwrap_or(Path::new("")), false)
    }

    pub(crate) fn note_dir(&mut self, root: usize, path: &Path, removed: bool) -> Done {
        self.note(root, path, removed)
            .map_err(cannot("look at", path))
    }

    /// Notes what a directory is, and what it should be in the end.
    fn note(&mut self, root: usize, path: &Path, removed: bool) -> io::Result<()> {
        if let Some(dir) = self.dirs.get_mut(&(root, path.to_owned())) {
            dir.removed |= removed;
            return Ok(());
        }
        let node = self.work.trees[root].spot(path)?.hold()?.node()?;
        let before = DirTraits {
            mode: node.mode,
            mtime: node.mtime,
        };
        let mtime = self.origins[root].dir_time(root, path)?;
        let adjusted = self.plan.adjusted.get(&(root, path));
        let adjusted = adjusted.and_then(|index| self.changes.entries[*index].after.as_ref());
        let after = DirTraits {
            mode: adjusted.map_or(node.mode, |after| after.mode),
            mtime: mtime.unwrap_or(node.mtime),
        };
        let owned = node.uid == rustix::process::geteuid().as_raw();
        let dir = Dir {
            root,
            path: path.into(),
            is: super::images::id(&node),
            before,
            after,
            opened: owned && !is_root() && node.mode & 0o300 != 0o300,
            removed,
        };
        self.dirs.insert((root, path.to_owned()), dir);
        Ok(())
    }

    /// Adds a step, under the next number.
    pub(crate) fn add(&mut self, step: JournalStep) -> Done {
        self.write(&JournalLine::Step(Box::new(step.clone())))?;
        self.work.steps.push(step);
        Ok(())
    }

    pub(crate) fn write(&mut self, line: &JournalLine) -> Done {
        let written = self.journal.write(line);
        written.map_err(cannot("write the journal in", &self.work.place))
    }

    pub(crate) fn traits(&mut self, change: &Change) -> Done<Traits> {
        let failed = cannot("look at", change.path.path());
        let Some(after) = &change.after else {
            return Err(failed(io::Error::other("the change puts nothing")));
        };
        self.origins[change.root]
            .traits(change, after)
            .map_err(failed)
    }
}

/// Root writes where it likes.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
