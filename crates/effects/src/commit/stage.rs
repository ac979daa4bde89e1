//! Prepares everything beside the live tree: what is new is made in a
//! directory that nobody looks into, what is old gets its image, and all that
//! will be done is written down. Nothing at its place changes here.
//!
//! The directory is one per root, and not one name beside each target: after
//! a crash there is then one thing to remove, and no directory needs to be
//! writable before its time.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::applied;
use super::check::unchanged;
use super::error::{CommitError, cannot};
use super::handle::{Handle, Traits};
use super::images::{Images, id};
use super::journal::{Dir, ExpectedFile, JournalLine, JournalStep, JournalWriter, StepAction};
use super::plan::CommitPlan;
use super::source::Origin;
use super::tree::OpenDirs;
use super::work::Work;
use crate::changes::Change;
use crate::node::{Node, NodeKind};

pub(crate) struct Stager<'a> {
    pub(crate) work: &'a mut Work,
    pub(crate) changes: &'a crate::changes::Changes,
    pub(crate) plan: &'a CommitPlan<'a>,
    pub(crate) journal: JournalWriter,
    pub(crate) images: Images,
    pub(crate) origins: Vec<Origin>,
    /// See [`Place`](super::Place).
    pub(crate) alone: bool,
    /// By root and path, so that each is noted once.
    pub(crate) dirs: HashMap<(usize, PathBuf), Dir>,
    /// New directories that get their rights when they are in place.
    pub(crate) late: Vec<Dir>,
    /// The anchors' directories, opened.
    pub(crate) stages: Vec<OpenDirs>,
    /// Which directories can be anchors, by root and path, and their devices.
    pub(crate) usable: HashMap<(usize, PathBuf), (u64, Option<usize>)>,
    /// Files of the source with more names than one that had to be copied, by
    /// device and inode, and where the copy is.
    pub(crate) copied: HashMap<(u64, u64), (usize, PathBuf)>,
    /// Files that are changed in place, by device and inode: under another of
    /// their names there is nothing more to do.
    pub(crate) settled: HashSet<(u64, u64)>,
}

pub(crate) type Done<T = ()> = Result<T, CommitError>;

impl Stager<'_> {
    /// Prepares all, up to the word that it is ready.
    pub(crate) fn run(mut self) -> Done {
        for (index, path) in &self.plan.remove {
            self.remove(*index, path)?;
        }
        let mut in_place = Vec::new();
        for index in &self.plan.replace {
            in_place.extend(self.replace(*index)?);
        }
        self.put_all()?;
        for step in in_place {
            self.add(step)?;
        }
        for index in &self.plan.adjust {
            self.adjust(*index)?;
        }
        self.finish()
    }

    fn finish(mut self) -> Done {
        let place = self.work.place.clone();
        let noted = self.dirs.drain().map(|(_, dir)| dir);
        let mut dirs: Vec<Dir> = noted.chain(self.late.drain(..)).collect();
        dirs.sort_by(|a, b| (a.root, &a.path).cmp(&(b.root, &b.path)));
        for dir in &dirs {
            if !dir.removed {
                self.images.keep_time(dir.root, &dir.path, dir.before.mtime);
            }
            self.write(&JournalLine::Dir(dir.clone()))?;
        }
        self.work.dirs = dirs;
        self.images.finish().map_err(cannot("write", &place))?;
        let durable = self.work.durable;
        let mut done = || {
            self.journal.flush(durable)?;
            self.work.sync()?;
            // From here on, nothing may want more room than there is.
            self.work.progress.reserve(self.work.steps.len())?;
            applied::reserve(&place, self.journal.bytes()?)?;
            self.journal.write(&JournalLine::Ready)?;
            self.journal.flush(durable)
        };
        done().map_err(cannot("write the journal in", &place))
    }

    fn remove(&mut self, index: usize, path: &Path) -> Done {
        let change = &self.changes.entries[index];
        let live = self.live(change, path)?;
        let anchor = self.anchor(change.root, path)?;
        self.note_parent(change.root, path)?;
        let was = self.keep(index, path, &live)?;
        let deed = if was.kind == NodeKind::Directory {
            self.note_dir(change.root, path, true)?;
            let attributes = live.0.attributes().map_err(cannot("look at", path))?;
            StepAction::RemoveDir {
                was: id(&was),
                traits: Traits::of(&was, attributes),
            }
        } else {
            StepAction::Remove {
                was: ExpectedFile::of(&was),
            }
        };
        self.add(JournalStep {
            root: change.root,
            path: path.into(),
            anchor,
            deed,
        })
    }

    /// Stages what takes the place of something else. What is to be written
    /// into a file comes back, since that is done later.
    fn replace(&mut self, index: usize) -> Done<Option<JournalStep>> {
        let change = &self.changes.entries[index];
        let path = change.path.path();
        let live = self.live(change, path)?;
        let in_place = self.is_in_place(change, &live.1);
        if in_place.map_err(cannot("look at", path))? {
            return self.rewrite(index, live);
        }
        let anchor = self.anchor(change.root, path)?;
        self.note_parent(change.root, path)?;
        let was = self.keep(index, path, &live)?;
        let is = self.make_for(index, anchor, self.work.steps.len())?;
        let deed = StepAction::Replace {
            is,
            was: ExpectedFile::of(&was),
        };
        self.add(JournalStep {
            root: change.root,
            path: change.path.clone(),
            anchor,
            deed,
        })?;
        Ok(None)
    }

    fn is_in_place(&mut self, change: &Change, now: &Node) -> io::Result<bool> {
        let files = change.after.as_ref().map(|after| after.kind) == Some(NodeKind::File);
        Ok(files
            && now.kind == NodeKind::File
            && now.links > 1
            && self.origins[change.root].is_in_place(change)?)
    }

    fn rewrite(&mut self, index: usize, (live, was): (Handle, Node)) -> Done<Option<JournalStep>> {
        let change = &self.changes.entries[index];
        let (path, failed) = (change.path.path(), || cannot("keep", change.path.path()));
        let image = index as u64;
        self.images.keep_copy(image, &live).map_err(failed())?;
        if !self.settled.insert((was.device, was.inode)) {
            return Ok(None);
        }
        let anchor = self.anchor(change.root, path)?;
        let from = Traits::of(&was, live.attributes().map_err(failed())?);
        let to = self.traits(change)?;
        // Its number is its own only when it is added; until then it has one
        // that no step has.
        let name = format!("w{index}");
        self.make_at(index, anchor, Path::new(&name))?;
        Ok(Some(JournalStep {
            root: change.root,
            path: change.path.clone(),
            anchor,
            deed: StepAction::Rewrite {
                was: ExpectedFile::of(&was),
                image,
                from,
                to,
            },
        }))
    }

    pub(crate) fn put(&mut self, index: usize) -> Done<(usize, usize)> {
        let change = &self.changes.entries[index];
        let path = change.path.path();
        let anchor = self.anchor(change.root, path)?;
        self.note_parent(change.root, path)?;
        let step = self.work.steps.len();
        let is = self.make_for(index, anchor, step)?;
        self.add(JournalStep {
            root: change.root,
            path: change.path.clone(),
            anchor,
            deed: StepAction::Put { is },
        })?;
        Ok((step, anchor))
    }

    fn adjust(&mut self, index: usize) -> Done {
        let change = &self.changes.entries[index];
        let path = change.path.path();
        let (handle, was) = self.live(change, path)?;
        let look = || cannot("look at", path);
        self.images
            .keep_traits(index as u64, &handle)
            .map_err(look())?;
        if !self.settled.insert((was.device, was.inode)) {
            return Ok(());
        }
        let mut to = self.traits(change)?;
        let from = Traits::of(&was, handle.attributes().map_err(look())?);
        // A layer knows nothing of a link but where it leads and when.
        if was.kind == NodeKind::Link {
            to.mode = from.mode;
        }
        self.add(JournalStep {
            root: change.root,
            path: change.path.clone(),
            anchor: 0,
            deed: StepAction::Adjust {
                was: ExpectedFile::of(&was),
                dir: was.kind == NodeKind::Directory,
                from,
                to,
            },
        })
    }

    /// Opens the live file that the change was made on, and returns its node.
    fn live(&mut self, change: &Change, path: &Path) -> Done<(Handle, Node)> {
        let tree = &mut self.work.trees[change.root];
        let found = unchanged(tree, path, change).map_err(cannot("look at", path))?;
        found.map_err(|why| CommitError::conflict(change.root, path, why))
    }

    /// Keeps an image of the live file, and returns its node after that: one
    /// more name changes `ctime`. A file that was written to meanwhile is a
    /// conflict.
    fn keep(&mut self, index: usize, path: &Path, live: &(Handle, Node)) -> Done<Node> {
        let (handle, before) = live;
        let kept = self.images.keep(index as u64, handle);
        let now = kept.and_then(|()| handle.node());
        let now = now.map_err(cannot("keep", path))?;
        if before.kind == NodeKind::File
            && !ExpectedFile::of(before).has_content_of(&ExpectedFile::of(&now))
        {
            let root = self.changes.entries[index].root;
            return Err(CommitError::conflict(root, path, "it changed meanwhile"));
        }
        Ok(Node {
            links: before.links,
            ..now
        })
    }
}
