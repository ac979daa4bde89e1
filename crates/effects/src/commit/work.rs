//! One commit under way: what is to be done, and where.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::error::{CommitError, cannot};
use super::handle::Handle;
use super::journal::{self, Anchor, CommitProgress, Dir, DirTraits, JournalContents, JournalStep};
use super::tree::{OpenDirs, Spot, names};
use crate::changes::Changes;
use crate::node::NodeKind;

pub(crate) struct Work {
    /// Holds the journal and the images.
    pub(crate) place: PathBuf,
    pub(crate) durable: bool,
    pub(crate) changes: Changes,
    pub(crate) trees: Vec<OpenDirs>,
    pub(crate) anchors: Vec<Anchor>,
    /// The anchor's directory that was asked for last: nearly all have the same.
    pub(crate) staged: Option<(usize, Rc<OwnedFd>)>,
    pub(crate) steps: Vec<JournalStep>,
    /// Directories before what is in them.
    pub(crate) dirs: Vec<Dir>,
    pub(crate) progress: CommitProgress,
}

impl Work {
    pub(crate) fn resume(
        place: &Path,
        found: JournalContents,
    ) -> Result<Option<Self>, CommitError> {
        let Some((changes, durable)) = found.begin else {
            return Ok(None);
        };
        Ok(Some(Self {
            trees: open_roots(&changes)?,
            place: place.to_owned(),
            durable,
            changes,
            anchors: found.anchors,
            staged: None,
            steps: found.steps,
            dirs: found.dirs,
            progress: CommitProgress::read(place, durable).map_err(cannot("read", place))?,
        }))
    }

    /// Opens the directory for what is not at its place.
    pub(crate) fn stage(&mut self, anchor: usize) -> io::Result<Rc<OwnedFd>> {
        if let Some((known, dir)) = &self.staged
            && *known == anchor
        {
            return Ok(Rc::clone(dir));
        }
        let Anchor {
            root, path, name, ..
        } = &self.anchors[anchor];
        let mut tree = OpenDirs::at(self.trees[*root].dir(path.path())?);
        let dir = tree.dir(Path::new(name))?;
        self.staged = Some((anchor, Rc::clone(&dir)));
        Ok(dir)
    }

    /// Where something new waits until it is put at its place.
    pub(crate) fn new_spot(&mut self, step: usize) -> io::Result<Spot> {
        let dir = self.stage(self.steps[step].anchor)?;
        Ok(Spot::new(&dir, new_name(step)))
    }

    /// Where something old waits until all is done.
    pub(crate) fn old_spot(&mut self, step: usize) -> io::Result<Spot> {
        let dir = self.stage(self.steps[step].anchor)?;
        Ok(Spot::new(&dir, format!("o{step}")))
    }

    pub(crate) fn live_spot(&mut self, step: usize) -> io::Result<Spot> {
        let JournalStep { root, path, .. } = &self.steps[step];
        self.trees[*root].spot(path.path())
    }

    pub(crate) fn forget_paths(&mut self) {
        self.trees.iter_mut().for_each(OpenDirs::forget);
        self.staged = None;
    }

    /// Lets the owner of the directories work in them.
    pub(crate) fn open_dirs(&mut self) -> io::Result<()> {
        for dir in self.dirs.iter().filter(|dir| dir.opened) {
            let found = gone_ok(self.trees[dir.root].handle(dir.path.path()))?;
            if let Some(handle) = found
                && handle.id()? == dir.is
            {
                handle.set_mode(dir.before.mode | 0o700)?;
            }
        }
        Ok(())
    }

    /// Makes the directories look as they should after all, or before all.
    pub(crate) fn settle_dirs(&mut self, end: DirSide) -> io::Result<()> {
        for dir in self.dirs.iter().rev() {
            // What stands in for a directory that was removed has its own.
            if dir.removed && end == DirSide::After {
                continue;
            }
            let found = gone_ok(self.trees[dir.root].handle(dir.path.path()))?;
            if let Some(handle) = found
                && is_that(dir, &handle)?
            {
                if dir.opened || dir.removed {
                    handle.set_mode(end.of(dir).mode)?;
                }
                handle.set_mtime(end.of(dir).mtime)?;
            }
        }
        Ok(())
    }

    /// Removes all that is not at its place, and makes the directories that
    /// held it look as they should.
    pub(crate) fn clear_stages(&mut self, end: DirSide) -> io::Result<()> {
        self.forget_paths();
        for anchor in self.anchors.clone() {
            let (root, path) = (anchor.root, anchor.path.path());
            let Some(dir) = gone_ok(self.trees[root].dir(path).map(Some))? else {
                continue;
            };
            remove_stage(&dir, OsStr::new(&anchor.name))?;
            let mtime = match end {
                DirSide::Before => Some(anchor.mtime),
                DirSide::After => self.noted(root, path).map(|dir| dir.after.mtime),
            };
            if let Some(mtime) = mtime
                && let Some(handle) = Handle::open(&dir, OsStr::new("."))?
            {
                handle.set_mtime(mtime)?;
            }
        }
        Ok(())
    }

    fn noted(&self, root: usize, path: &Path) -> Option<&Dir> {
        let mut dirs = self.dirs.iter();
        dirs.find(|dir| (dir.root, dir.path.path()) == (root, path))
    }

    /// Makes sure that all so far outlives a loss of power.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if !self.durable {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for tree in &mut self.trees {
            let dir = tree.dir(Path::new(""))?;
            rustix::fs::syncfs(openat(&dir, ".", flags, Mode::empty())?)?;
        }
        Ok(rustix::fs::syncfs(std::fs::File::open(&self.place)?)?)
    }

    /// Ends it: without a journal it never was under way.
    pub(crate) fn close(&self) -> io::Result<()> {
        journal::remove(&self.place)
    }
}

/// What directories should look like.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum DirSide {
    Before,
    After,
}

impl DirSide {
    fn of(self, dir: &Dir) -> DirTraits {
        match self {
            Self::Before => dir.before,
            Self::After => dir.after,
        }
    }
}

pub(crate) fn new_name(step: usize) -> String {
    format!("n{step}")
}

/// Opens the roots, each of which must be what it was.
pub(crate) fn open_roots(changes: &Changes) -> Result<Vec<OpenDirs>, CommitError> {
    let mut trees = Vec::new();
    for (index, root) in changes.roots.iter().enumerate() {
        let other = || CommitError::conflict(index, Path::new(""), "it is another directory now");
        let tree = OpenDirs::open(&root.live).map_err(|_| other())?;
        if tree.id().map_err(cannot("look at", &root.live))? != root.is {
            return Err(other());
        }
        trees.push(tree);
    }
    Ok(trees)
}

/// Moves something to where nothing is.
pub(crate) fn shift(from: &Spot, to: &Spot) -> Result<(), Errno> {
    renameat_with(
        &from.dir,
        &from.name,
        &to.dir,
        &to.name,
        RenameFlags::NOREPLACE,
    )
}

/// Swaps two things at once.
pub(crate) fn swap(one: &Spot, other: &Spot) -> Result<(), Errno> {
    renameat_with(
        &one.dir,
        &one.name,
        &other.dir,
        &other.name,
        RenameFlags::EXCHANGE,
    )
}

/// Takes a path that is not there, or through something else, as absent.
pub(crate) fn gone_ok<T>(got: io::Result<Option<T>>) -> io::Result<Option<T>> {
    match super::check::reached(got)? {
        Ok(found) => Ok(found),
        Err(_) => Ok(None),
    }
}

fn is_that(dir: &Dir, handle: &Handle) -> io::Result<bool> {
    if dir.removed {
        return Ok(handle.node()?.kind == NodeKind::Directory);
    }
    Ok(handle.id()? == dir.is)
}

/// Removes a directory that is ours with all that is in it. Deep trees are
/// made flat on the way, since neither the stack nor the number of open files
/// has room for thousands of levels.
fn remove_stage(dir: &Rc<OwnedFd>, name: &OsStr) -> io::Result<()> {
    let Some(stage) = gone_ok(OpenDirs::at(Rc::clone(dir)).dir(Path::new(name)).map(Some))? else {
        return Ok(());
    };
    let mut moved = 0;
    loop {
        let found = names(&stage)?;
        if found.is_empty() {
            break;
        }
        for name in found {
            match unlinkat(&stage, &name, AtFlags::empty()) {
                Err(Errno::ISDIR) => flatten(&stage, &name, &mut moved)?,
                done => done?,
            }
        }
    }
    remove_dir(dir, name)
}

/// Removes a directory; what is in it moves up first.
fn flatten(stage: &Rc<OwnedFd>, name: &OsStr, moved: &mut usize) -> io::Result<()> {
    let inner = Spot::new(stage, name);
    inner.hold()?.set_mode(0o700)?;
    let dir = OpenDirs::at(Rc::clone(stage)).dir(Path::new(name))?;
    for child in names(&dir)? {
        match unlinkat(&dir, &child, AtFlags::empty()) {
            Err(Errno::ISDIR) => {
                // Only who may write in a directory may move it.
                let child = Spot::new(&dir, child);
                child.hold()?.set_mode(0o700)?;
                *moved += 1;
                let free = free_name(stage, moved)?;
                shift(&child, &free)?;
            }
            done => done?,
        }
    }
    Ok(unlinkat(stage, name, AtFlags::REMOVEDIR)?)
}

/// A clearing that was interrupted may have left names like these.
fn free_name(stage: &Rc<OwnedFd>, moved: &mut usize) -> io::Result<Spot> {
    loop {
        let spot = Spot::new(stage, format!("x{moved}"));
        if spot.handle()?.is_none() {
            return Ok(spot);
        }
        *moved += 1;
    }
}

/// Removes an empty directory of ours from one that may be read-only by now.
fn remove_dir(dir: &impl AsFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(dir, name, AtFlags::REMOVEDIR) {
        Err(Errno::ACCESS) => {}
        done => return Ok(done?),
    }
    let Some(outer) = Handle::open(dir, OsStr::new("."))? else {
        return Ok(());
    };
    let mode = outer.node()?.mode;
    outer.set_mode(mode | 0o700)?;
    let done = unlinkat(dir, name, AtFlags::REMOVEDIR);
    outer.set_mode(mode)?;
    Ok(done?)
}
