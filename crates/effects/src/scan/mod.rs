//! Reads from a layer what a run would change.
//!
//! Only what is in the layer is looked at, and of the live tree what stands at
//! the same paths; so it costs as much as the run changed, however large the
//! tree is. Directories wait in a list and are opened anew by their path: no
//! depth exhausts the stack or the descriptors.

mod before;
mod finish;
mod note;
mod origin;
mod refuse;
mod same;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;
use weighlock_confine::FileId;

use crate::changes::{Change, Changes, Kind, Refusal, Root, Source};
use crate::commit::OWN;
use crate::error::Error;
use crate::look::{ContentMode, SeenFile, ctime, look, mtime};
use crate::node::{NodeKind, Time};
use crate::open::{is_forbidden, names, open_below, open_root};
use before::{PathBefore, Trees};
use refuse::Parent;
pub(crate) use same::is_same;

impl Changes {
    /// Reads what runs changed in the layers of these roots. `since` is when
    /// the run began, as the clock of files has it: what changed in the live
    /// tree after that, the run may have seen otherwise.
    ///
    /// A root's own rights and times are left as they are, whatever a run did
    /// to them.
    pub fn scan(roots: Vec<Root>, since: Time) -> Result<Self, Error> {
        let mut changes = Self {
            roots: Vec::new(),
            entries: Vec::new(),
            refused: Vec::new(),
        };
        for (index, root) in roots.iter().enumerate() {
            // Before-images are no layer: they are what was scanned once.
            let Source::Upper(upper) = &root.source else {
                continue;
            };
            let (entries, refused) = RootScan::open(index, root, upper, since)?.run()?;
            changes.entries.extend(entries);
            changes.refused.extend(refused);
        }
        changes.roots = roots;
        Ok(changes)
    }
}

/// One root while it is read.
struct RootScan<'a> {
    index: usize,
    root: &'a Root,
    since: Time,
    upper: OwnedFd,
    trees: Trees,
    todo: Vec<ScanTask>,
    entries: Vec<Change>,
    /// Directories of which only the time differs, until it is known whether
    /// that comes from a change in them.
    touched: Vec<Change>,
    /// New things that were copied from something which is not there.
    orphans: HashSet<PathBuf>,
    /// Directories that are others than those which the run saw.
    swapped: Vec<PathBuf>,
    refused: Vec<Refusal>,
}

/// A directory to be read.
struct ScanTask {
    path: PathBuf,
    /// Which of the trees below have it.
    trees: Vec<usize>,
    /// What it is in the layer; `None` if it was deleted there.
    upper: Option<Upper>,
}

struct Upper {
    opaque: bool,
    parent: Parent,
}

/// A directory of the layer, and what is below it.
struct LayerDir<'a> {
    path: &'a Path,
    upper: OwnedFd,
    below: Vec<(usize, OwnedFd)>,
    parent: Parent,
    /// Something came or went in the live directory while the run went on.
    stirred: bool,
}

impl<'a> RootScan<'a> {
    fn open(index: usize, root: &'a Root, upper: &Path, since: Time) -> Result<Self, Error> {
        let trees = Trees::open(root)?;
        let stat = fstat(trees.live()).map_err(Error::read(&root.live))?;
        let found = FileId::from(&stat);
        if found != root.is {
            return Err(Error::Replaced {
                path: root.live.clone(),
            });
        }
        Ok(Self {
            index,
            root,
            since,
            upper: open_root(upper).map_err(Error::read(upper))?,
            trees,
            todo: Vec::new(),
            entries: Vec::new(),
            touched: Vec::new(),
            orphans: HashSet::new(),
            swapped: Vec::new(),
            refused: Vec::new(),
        })
    }

    fn run(mut self) -> Result<(Vec<Change>, Vec<Refusal>), Error> {
        let root = self.root;
        let top = look(&self.upper, OsStr::new("."), ContentMode::Left);
        let top = top.map_err(Error::read(&root.live))?;
        if let Some(top) = top {
            let trees = (0..self.trees.count()).collect();
            self.descend(PathBuf::new(), trees, &top);
        }
        while let Some(task) = self.todo.pop() {
            self.visit(&task)
                .map_err(Error::read(root.live.join(&task.path)))?;
        }
        Ok(self.finish())
    }

    fn visit(&mut self, task: &ScanTask) -> io::Result<()> {
        let done = match &task.upper {
            Some(upper) => self.compare_all(task, upper),
            None => self.delete_all(task),
        };
        match done {
            Err(error) if is_forbidden(&error) => {
                self.refuse(&task.path, "cannot be read: its rights forbid it");
                Ok(())
            }
            done => done,
        }
    }

    fn compare_all(&mut self, task: &ScanTask, upper: &Upper) -> io::Result<()> {
        let Some(dir) = open_below(&self.upper, &task.path)? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let here = names(&dir)?;
        let below = self.trees.dirs(&task.trees, &task.path)?;
        let place = LayerDir {
            path: &task.path,
            upper: dir,
            stirred: self.is_stirred(&below)?,
            below,
            parent: upper.parent,
        };
        for name in &here {
            self.compare(&place, name)?;
        }
        if upper.opaque {
            self.delete_others(&place, &here)?;
        }
        Ok(())
    }

    fn delete_others(&mut self, place: &LayerDir, here: &[OsString]) -> io::Result<()> {
        let here: HashSet<&OsString> = here.iter().collect();
        for name in before::names_in(&place.below)? {
            if !here.contains(&name)
                && let Some(before) = before::find(&place.below, &name)?
            {
                self.delete(place.path.join(&name), before);
            }
        }
        Ok(())
    }

    fn delete_all(&mut self, task: &ScanTask) -> io::Result<()> {
        let below = self.trees.dirs(&task.trees, &task.path)?;
        for name in before::names_in(&below)? {
            if let Some(before) = before::find(&below, &name)? {
                self.delete(task.path.join(&name), before);
            }
        }
        Ok(())
    }

    fn compare(&mut self, place: &LayerDir, name: &OsStr) -> io::Result<()> {
        let path = place.path.join(name);
        if self.is_too_deep(&path) {
            return Ok(());
        }
        let Some(after) = look(&place.upper, name, ContentMode::Hashed)? else {
            return Ok(());
        };
        if name.as_encoded_bytes().starts_with(OWN.as_bytes()) {
            self.refuse(&path, "has a name that weighlock uses itself");
            return Ok(());
        }
        let before = before::find(&place.below, name)?;
        let Some(before) = before else {
            if !after.whiteout {
                self.create(place, path, after);
            }
            return Ok(());
        };
        if after.whiteout {
            self.delete(path, before);
        } else if before.seen.mounted {
            self.refuse(&path, "is where another file system is mounted");
        } else {
            self.replace(place, path, before, after)?;
        }
        Ok(())
    }

    /// Notes something that stands where something else stood.
    fn replace(
        &mut self,
        place: &LayerDir,
        path: PathBuf,
        before: PathBefore,
        after: SeenFile,
    ) -> io::Result<()> {
        let was_dir = before.seen.node.kind == NodeKind::Directory;
        let is_dir = after.node.kind == NodeKind::Directory;
        match (was_dir, is_dir) {
            (true, true) => self.merge(place, path, before, after),
            (false, false) => self.alter(place, path, before, after)?,
            _ => {
                self.delete(path.clone(), before);
                self.create(place, path, after);
            }
        }
        Ok(())
    }

    fn merge(&mut self, place: &LayerDir, path: PathBuf, before: PathBefore, after: SeenFile) {
        if self.is_swapped(place, &path, &before, &after) {
            self.swapped.push(path.clone());
        }
        self.descend(path.clone(), before.dirs.clone(), &after);
        if same::is_governed_alike(&before.seen.node, &after.node) {
            if before.seen.node.mtime != after.node.mtime {
                let change = self.change(path, Kind::Times, Some(before), Some(after));
                self.touched.push(change);
            }
            return;
        }
        self.note(place, path, Kind::Mode, Some(before), after);
    }

    fn alter(
        &mut self,
        place: &LayerDir,
        path: PathBuf,
        before: PathBefore,
        after: SeenFile,
    ) -> io::Result<()> {
        if before.seen.node.kind == NodeKind::Special {
            self.refuse(&path, &refuse::lost(&before.seen));
            return Ok(());
        }
        // Never opened: reading a device may do something.
        if after.node.kind == NodeKind::Special {
            self.note(place, path, Kind::Modified, Some(before), after);
            return Ok(());
        }
        let Some(below) = place.below.iter().find(|(tree, _)| *tree == before.tree) else {
            return Ok(());
        };
        let pair = same::Pair {
            name: path.file_name().unwrap_or_default(),
            before: (&below.1, &before.seen.node),
            after: (&place.upper, &after.node),
        };
        if let Some(kind) = pair.difference()? {
            self.note(place, path, kind, Some(before), after);
        }
        Ok(())
    }

    fn create(&mut self, place: &LayerDir, path: PathBuf, after: SeenFile) {
        let kind = match after.node.kind {
            NodeKind::Link => Kind::Link,
            _ => Kind::Created,
        };
        if after.origin.is_some() && place.stirred {
            self.orphans.insert(path.clone());
        }
        if after.node.kind == NodeKind::Directory {
            self.descend(path.clone(), Vec::new(), &after);
        }
        self.note(place, path, kind, None, after);
    }

    fn delete(&mut self, path: PathBuf, before: PathBefore) {
        if self.is_too_deep(&path) {
            return;
        }
        if before.seen.mounted {
            self.refuse(&path, "is where another file system is mounted");
            return;
        }
        if before.seen.node.kind == NodeKind::Special {
            self.refuse(&path, &refuse::lost(&before.seen));
            return;
        }
        if before.seen.node.kind == NodeKind::Directory {
            self.todo.push(ScanTask {
                path: path.clone(),
                trees: before.dirs.clone(),
                upper: None,
            });
        }
        let change = self.change(path, Kind::Deleted, Some(before), None);
        self.entries.push(change);
    }

    fn descend(&mut self, path: PathBuf, trees: Vec<usize>, after: &SeenFile) {
        self.todo.push(ScanTask {
            path,
            trees,
            upper: Some(Upper {
                opaque: after.opaque,
                parent: Parent::of(&after.node),
            }),
        });
    }

    /// Whether the live directory is not the one that was copied up. What is
    /// in it tells nothing: it is as old as it was elsewhere. No run can move a
    /// directory that was there before it.
    fn is_swapped(
        &self,
        place: &LayerDir,
        path: &Path,
        before: &PathBefore,
        after: &SeenFile,
    ) -> bool {
        let mut below = place.below.iter();
        let Some((_, dir)) = below.find(|(tree, _)| *tree == before.tree) else {
            return false;
        };
        if !self.trees.is_live(before.tree) {
            return false;
        }
        let name = path.file_name().unwrap_or_default();
        let origin = after.origin.as_deref().unwrap_or_default();
        match origin::names_another(origin, dir, name) {
            Some(another) => another,
            // The kernel notes that for root only. Of others, one that has come
            // to this name since has a new time of change, and the directory
            // that it is in a new content.
            None => {
                let node = &before.seen.node;
                let came = node.ctime > self.since && node.mtime <= self.since;
                came && mtime(dir).is_ok_and(|mtime| mtime > self.since)
            }
        }
    }

    fn is_stirred(&self, below: &[(usize, OwnedFd)]) -> io::Result<bool> {
        match below.last() {
            Some((tree, dir)) if self.trees.is_live(*tree) => Ok(ctime(dir)? > self.since),
            _ => Ok(false),
        }
    }
}
