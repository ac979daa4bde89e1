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

use weighlock_confine::FileId;

use super::check::differs;
use super::error::{CommitError, cannot};
use super::handle::{Handle, Traits};
use super::images::{Images, id};
use super::journal::{Deed, Dir, Line, Look, Mark, Step, Writer};
use super::make::{copy_file, is_as_shown, link_file, make_dir, make_link};
use super::plan::Plan;
use super::source::Origin;
use super::tree::{Spot, Tree};
use super::work::{Work, new_name};
use crate::changes::Change;
use crate::node::{Node, NodeKind};

pub(crate) struct Stager<'a> {
    pub(crate) work: &'a mut Work,
    pub(crate) changes: &'a crate::changes::Changes,
    pub(crate) plan: &'a Plan<'a>,
    pub(crate) journal: Writer,
    pub(crate) images: Images,
    pub(crate) origins: Vec<Origin>,
    /// By root and path, so that each is noted once.
    pub(crate) dirs: HashMap<(usize, PathBuf), Dir>,
    /// New directories that get their rights when they are in place.
    pub(crate) late: Vec<Dir>,
    /// The anchors' directories, opened.
    pub(crate) stages: Vec<Tree>,
    /// Which directories can be anchors, by root and path, and their devices.
    pub(crate) usable: HashMap<(usize, PathBuf), (u64, Option<usize>)>,
    /// Files of the source with more names than one that had to be copied, by
    /// device and inode, and where the copy is.
    pub(crate) copied: HashMap<(u64, u64), (usize, PathBuf)>,
    /// Files that are changed in place, by device and inode: under another of
    /// their names there is nothing more to do.
    pub(crate) settled: HashSet<(u64, u64)>,
}

type Done<T = ()> = Result<T, CommitError>;

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
            self.write(&Line::Dir(dir.clone()))?;
        }
        self.work.dirs = dirs;
        self.images.finish().map_err(cannot("write", &place))?;
        let durable = self.work.durable;
        let mut done = || {
            self.journal.flush(durable)?;
            self.work.sync()?;
            self.journal.write(&Line::Ready)?;
            self.journal.flush(durable)
        };
        done().map_err(cannot("write the journal in", &place))
    }

    fn remove(&mut self, index: usize, path: &Path) -> Done {
        let change = &self.changes.entries[index];
        let failed = cannot("keep", path);
        let handle = self.live(change, path)?;
        let anchor = self.anchor(change.root, path)?;
        self.note_parent(change.root, path)?;
        let was = self.keep(index, &handle).map_err(failed)?;
        let deed = if was.kind == NodeKind::Directory {
            self.note_dir(change.root, path, true)?;
            let attributes = handle.attributes().map_err(cannot("look at", path))?;
            Deed::RemoveDir {
                was: id(&was),
                traits: Traits::of(&was, attributes),
            }
        } else {
            Deed::Remove {
                was: Mark::of(&was),
            }
        };
        self.add(Step {
            root: change.root,
            path: path.into(),
            anchor,
            deed,
        })
    }

    /// Stages what takes the place of something else. What is to be written
    /// into a file comes back, since that is done later.
    fn replace(&mut self, index: usize) -> Done<Option<Step>> {
        let change = &self.changes.entries[index];
        let path = change.path.path();
        let handle = self.live(change, path)?;
        if self
            .is_in_place(change, &handle)
            .map_err(cannot("look at", path))?
        {
            return self.rewrite(index, &handle);
        }
        let anchor = self.anchor(change.root, path)?;
        self.note_parent(change.root, path)?;
        let was = self.keep(index, &handle).map_err(cannot("keep", path))?;
        let is = self.make_for(index, anchor, self.work.steps.len())?;
        let deed = Deed::Replace {
            is,
            was: Mark::of(&was),
        };
        self.add(Step {
            root: change.root,
            path: change.path.clone(),
            anchor,
            deed,
        })?;
        Ok(None)
    }

    fn is_in_place(&mut self, change: &Change, live: &Handle) -> io::Result<bool> {
        let now = live.node()?;
        let files = change.after.as_ref().map(|after| after.kind) == Some(NodeKind::File);
        Ok(files
            && now.kind == NodeKind::File
            && now.links > 1
            && self.origins[change.root].is_in_place(change)?)
    }

    fn rewrite(&mut self, index: usize, live: &Handle) -> Done<Option<Step>> {
        let change = &self.changes.entries[index];
        let (path, failed) = (change.path.path(), || cannot("keep", change.path.path()));
        let was = live.node().map_err(failed())?;
        let image = index as u64;
        self.images.keep_copy(image, live).map_err(failed())?;
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
        Ok(Some(Step {
            root: change.root,
            path: change.path.clone(),
            anchor,
            deed: Deed::Rewrite {
                was: Mark::of(&was),
                image,
                from,
                to,
            },
        }))
    }

    fn put_all(&mut self) -> Done {
        let mut tops: HashMap<usize, (usize, usize)> = HashMap::new();
        let mut made: Vec<(usize, usize, PathBuf)> = Vec::new();
        for index in &self.plan.put {
            let change = &self.changes.entries[*index];
            let path = change.path.path();
            let is_dir = self.plan.made.contains_key(&(change.root, path))
                && change.after.as_ref().map(|after| after.kind) == Some(NodeKind::Directory);
            let Some(top) = self.plan.top(change.root, path) else {
                let step = self.put(*index)?;
                if is_dir {
                    tops.insert(*index, step);
                    made.push((*index, step.1, new_name(step.0).into()));
                }
                continue;
            };
            let (step, anchor) = tops[&top];
            let inside = path.strip_prefix(self.changes.entries[top].path.path());
            let inside =
                inside.map_err(|_| cannot("place", path)(io::Error::other("a bad plan")))?;
            let at = Path::new(&new_name(step)).join(inside);
            self.make_at(*index, anchor, &at)?;
            if is_dir {
                made.push((*index, anchor, at));
            }
        }
        self.finish_dirs(&made)
    }

    /// Sets what directories should be, now that all is in them.
    fn finish_dirs(&mut self, made: &[(usize, usize, PathBuf)]) -> Done {
        for (index, anchor, at) in made.iter().rev() {
            let change = &self.changes.entries[*index];
            let mut traits = self.traits(change)?;
            let is_top = at.components().count() == 1;
            // Only who may write in a directory may move it.
            if is_top && traits.mode & 0o300 != 0o300 && !super::anchor::is_root() {
                let look = Look {
                    mode: traits.mode,
                    mtime: traits.mtime,
                };
                traits.mode |= 0o700;
                let is = self.staged(*anchor, at).and_then(|handle| handle.id());
                let dir = Dir {
                    root: change.root,
                    path: change.path.clone(),
                    is: is.map_err(cannot("look at", at))?,
                    before: look,
                    after: look,
                    opened: true,
                    removed: false,
                };
                self.late.push(dir);
            }
            let handle = self.staged(*anchor, at);
            let set = handle.and_then(|handle| handle.set(&traits));
            set.map_err(cannot("prepare", change.path.path()))?;
        }
        Ok(())
    }

    fn staged(&mut self, anchor: usize, at: &Path) -> io::Result<Handle> {
        self.stages[anchor].spot(at)?.hold()
    }

    fn put(&mut self, index: usize) -> Done<(usize, usize)> {
        let change = &self.changes.entries[index];
        let path = change.path.path();
        let anchor = self.anchor(change.root, path)?;
        self.note_parent(change.root, path)?;
        let step = self.work.steps.len();
        let is = self.make_for(index, anchor, step)?;
        self.add(Step {
            root: change.root,
            path: change.path.clone(),
            anchor,
            deed: Deed::Put { is },
        })?;
        Ok((step, anchor))
    }

    fn adjust(&mut self, index: usize) -> Done {
        let change = &self.changes.entries[index];
        let path = change.path.path();
        let handle = self.live(change, path)?;
        let look = || cannot("look at", path);
        self.images
            .keep_traits(index as u64, &handle)
            .map_err(look())?;
        let was = handle.node().map_err(look())?;
        if !self.settled.insert((was.device, was.inode)) {
            return Ok(());
        }
        let mut to = self.traits(change)?;
        let from = Traits::of(&was, handle.attributes().map_err(look())?);
        // A layer knows nothing of a link but where it leads and when.
        if was.kind == NodeKind::Link {
            to.mode = from.mode;
        }
        self.add(Step {
            root: change.root,
            path: change.path.clone(),
            anchor: 0,
            deed: Deed::Adjust {
                was: Mark::of(&was),
                dir: was.kind == NodeKind::Directory,
                from,
                to,
            },
        })
    }

    /// Takes hold of what the change was made on.
    fn live(&mut self, change: &Change, path: &Path) -> Done<Handle> {
        let tree = &mut self.work.trees[change.root];
        let why = differs(tree, path, change).map_err(cannot("look at", path))?;
        let handle = match why {
            Some(why) => return Err(CommitError::conflict(change.root, path, why)),
            None => tree.handle(path).map_err(cannot("look at", path))?,
        };
        handle.ok_or_else(|| CommitError::conflict(change.root, path, "it is gone"))
    }

    /// Keeps an image, and returns the node as it is with that: one more name
    /// changes `ctime`.
    fn keep(&mut self, index: usize, handle: &Handle) -> io::Result<Node> {
        let links = handle.node()?.links;
        self.images.keep(index as u64, handle)?;
        Ok(Node {
            links,
            ..handle.node()?
        })
    }

    fn make_for(&mut self, index: usize, anchor: usize, step: usize) -> Done<FileId> {
        self.make_at(index, anchor, Path::new(&new_name(step)))
    }

    /// Makes what a change puts, at a path in the anchor's directory.
    fn make_at(&mut self, index: usize, anchor: usize, at: &Path) -> Done<FileId> {
        let change = &self.changes.entries[index];
        let made = self.try_make(change, anchor, at);
        made.map_err(|failed| match failed {
            Some(error) => cannot("prepare", change.path.path())(error),
            None => CommitError::OtherHash,
        })
    }

    /// Fails with nothing where the content is not what was shown.
    fn try_make(
        &mut self,
        change: &Change,
        anchor: usize,
        at: &Path,
    ) -> Result<FileId, Option<io::Error>> {
        let after = change.after.as_ref().ok_or(None)?;
        let spot = self.stages[anchor].spot(at).map_err(Some)?;
        let origin = &mut self.origins[change.root];
        let found = origin.handle(change, after).map_err(Some)?;
        if let Some(found) = &found {
            let node = found.node().map_err(Some)?;
            if !is_as_shown(after, &node, origin.is_exact()) {
                return Err(None);
            }
        }
        match after.kind {
            NodeKind::Directory => make_dir(&spot).map_err(Some)?,
            NodeKind::Link => make_link(after, &spot).map_err(Some)?,
            NodeKind::File => {
                let traits = origin.traits(change, after).map_err(Some)?;
                let found = found.ok_or(None)?;
                let made = self.make_file(&found, &spot, &traits, (anchor, at));
                made.map_err(Some)?;
            }
            NodeKind::Special => return Err(None),
        }
        spot.id().map_err(Some)?.ok_or(None)
    }

    fn make_file(
        &mut self,
        from: &Handle,
        spot: &Spot,
        traits: &Traits,
        at: (usize, &Path),
    ) -> io::Result<()> {
        if link_file(from, spot, traits)? {
            return Ok(());
        }
        let node = from.node()?;
        let source = (node.device, node.inode);
        if let Some((anchor, first)) = self.copied.get(&source) {
            let first = self.stages[*anchor].spot(first)?.hold()?;
            return Ok(first.link(&spot.dir, &spot.name)?);
        }
        copy_file(from, spot, traits)?;
        if node.links > 1 {
            self.copied.insert(source, (at.0, at.1.to_owned()));
        }
        Ok(())
    }
}
