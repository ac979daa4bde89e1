//! What each change means for the tree, and in which order it is done.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::changes::{Change, Changes, Kind};
use crate::node::NodeKind;

/// A path of a root.
pub(crate) type Place<'a> = (usize, &'a Path);

/// The numbers of the changes, by what is done for them. One change may ask
/// for two things: what is renamed is put here and removed there.
#[derive(Debug, Default)]
pub(crate) struct CommitPlan<'a> {
    /// Children before their directories.
    pub(crate) remove: Vec<(usize, &'a Path)>,
    pub(crate) replace: Vec<usize>,
    /// Directories before what is in them.
    pub(crate) put: Vec<usize>,
    /// Children before their directories.
    pub(crate) adjust: Vec<usize>,
    /// All paths that something is removed from.
    pub(crate) removed: HashSet<Place<'a>>,
    /// Paths at which all but the content changes.
    pub(crate) adjusted: HashMap<Place<'a>, usize>,
    /// New directories.
    pub(crate) made: HashMap<Place<'a>, NewDirectory>,
}

/// A new directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewDirectory {
    /// The change that makes it.
    pub(crate) by: usize,
    /// The change that makes the topmost new directory that it is in.
    pub(crate) top: usize,
}

impl<'a> CommitPlan<'a> {
    pub(crate) fn of(changes: &'a Changes) -> Self {
        let mut plan = Self::default();
        let entries = &changes.entries;
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|index| (entries[*index].root, entries[*index].path.path()));
        for index in order {
            plan.add(index, &entries[index]);
        }
        plan.remove
            .sort_by_key(|(index, path)| std::cmp::Reverse((entries[*index].root, *path)));
        plan.adjust.reverse();
        plan
    }

    fn add(&mut self, index: usize, change: &'a Change) {
        let path = change.path.path();
        match deed(change) {
            Act::Nothing => {}
            Act::Put => self.put(index, change),
            Act::Remove => self.remove(index, change, path),
            Act::Move(from) => {
                self.remove(index, change, from);
                self.put(index, change);
            }
            Act::Replace if !self.is_in_made(change.root, path) => self.replace.push(index),
            Act::Replace | Act::Exchange => {
                self.remove(index, change, path);
                self.put(index, change);
            }
            Act::Adjust => {
                self.adjust.push(index);
                self.adjusted.insert((change.root, path), index);
            }
        }
    }

    fn remove(&mut self, index: usize, change: &Change, path: &'a Path) {
        self.remove.push((index, path));
        self.removed.insert((change.root, path));
    }

    fn put(&mut self, index: usize, change: &'a Change) {
        let path = change.path.path();
        self.put.push(index);
        if change
            .after
            .as_ref()
            .is_some_and(|after| after.kind == NodeKind::Directory)
        {
            let top = self.top(change.root, path).unwrap_or(index);
            self.made
                .insert((change.root, path), NewDirectory { by: index, top });
        }
    }

    fn is_in_made(&self, root: usize, path: &Path) -> bool {
        self.top(root, path).is_some()
    }

    /// Returns the change that makes the topmost new directory above a path.
    pub(crate) fn top(&self, root: usize, path: &Path) -> Option<usize> {
        Some(self.made.get(&(root, path.parent()?))?.top)
    }
}

enum Act<'a> {
    Nothing,
    Put,
    Remove,
    Move(&'a Path),
    Replace,
    /// A directory for something else, or the other way round.
    Exchange,
    Adjust,
}

fn deed(change: &Change) -> Act<'_> {
    let (before, after) = match (&change.before, &change.after) {
        (None, None) => return Act::Nothing,
        (None, Some(_)) => return Act::Put,
        (Some(_), None) => return Act::Remove,
        (Some(before), Some(after)) => (before.kind, after.kind),
    };
    if let Some(from) = &change.from {
        return Act::Move(from.path());
    }
    let directories = [before, after].map(|kind| kind == NodeKind::Directory);
    match (directories, change.kind) {
        ([true, true], _) => Act::Adjust,
        ([false, false], Kind::Mode | Kind::Times) if before == after => Act::Adjust,
        ([false, false], _) => Act::Replace,
        _ => Act::Exchange,
    }
}
