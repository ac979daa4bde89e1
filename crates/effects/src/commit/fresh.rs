//! Makes what is new: single files and links, and whole trees, which one
//! rename then puts in place.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::anchor::is_root;
use super::error::{CommitError, cannot};
use super::handle::{Handle, Traits};
use super::journal::{Dir, DirTraits, ExpectedFile};
use super::make::{copy_file, is_as_shown, is_copy_of, link_file, make_dir, make_link};
use super::stage::{Done, Stager};
use super::tree::Spot;
use super::work::new_name;
use crate::changes::Change;
use crate::node::NodeKind;

impl Stager<'_> {
    /// Stages all that is put where nothing is.
    pub(crate) fn put_all(&mut self) -> Done {
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
            if is_top && traits.mode & 0o300 != 0o300 && !is_root() {
                let look = DirTraits {
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

    pub(crate) fn make_for(
        &mut self,
        index: usize,
        anchor: usize,
        step: usize,
    ) -> Done<ExpectedFile> {
        self.make_at(index, anchor, Path::new(&new_name(step)))
    }

    /// Makes what a change puts, at a path in the anchor's directory.
    pub(crate) fn make_at(&mut self, index: usize, anchor: usize, at: &Path) -> Done<ExpectedFile> {
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
    ) -> Result<ExpectedFile, Option<io::Error>> {
        let after = change.after.as_ref().ok_or(None)?;
        let spot = self.stages[anchor].spot(at).map_err(Some)?;
        let origin = &mut self.origins[change.root];
        let found = origin.handle(change, after).map_err(Some)?;
        let exact = origin.is_exact();
        if let Some(found) = &found {
            let node = found.node().map_err(Some)?;
            if !is_as_shown(after, &node, exact) {
                return Err(None);
            }
        }
        match after.kind {
            NodeKind::Directory => make_dir(&spot).map_err(Some)?,
            NodeKind::Link => make_link(after, &spot).map_err(Some)?,
            NodeKind::File => {
                let traits = origin.traits(change, after).map_err(Some)?;
                let found = found.ok_or(None)?;
                let shared = after.links > 1;
                let at = shared.then_some((anchor, at));
                if exact && self.alone && link_file(&found, &spot, &traits).map_err(Some)? {
                    return mark(&spot).map_err(Some);
                }
                let made = self.make_file(&found, &spot, &traits, at);
                let made = made.map_err(Some)?;
                if let Some(copy) = made.filter(|_| exact && !self.alone)
                    && !is_copy_of(after, &found, copy).map_err(Some)?
                {
                    return Err(None);
                }
            }
            NodeKind::Special => return Err(None),
        }
        mark(&spot).map_err(Some)
    }

    /// Makes a file; `at` says where that is if it had more names than one.
    /// Returns the copy, unless it was made before.
    fn make_file(
        &mut self,
        from: &Handle,
        spot: &Spot,
        traits: &Traits,
        at: Option<(usize, &Path)>,
    ) -> io::Result<Option<File>> {
        let node = from.node()?;
        let source = (node.device, node.inode);
        if let Some((anchor, first)) = self.copied.get(&source) {
            let first = self.stages[*anchor].spot(first)?.hold()?;
            first.link(&spot.dir, &spot.name)?;
            return Ok(None);
        }
        let copy = copy_file(from, spot, traits)?;
        if let Some((anchor, at)) = at {
            self.copied.insert(source, (anchor, at.to_owned()));
        }
        Ok(Some(copy))
    }
}

fn mark(made: &Spot) -> io::Result<ExpectedFile> {
    Ok(ExpectedFile::of(&made.hold()?.node()?))
}
