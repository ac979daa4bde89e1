//! Finds files that only got another name.
//!
//! The kernel does not tell: a layer holds a deleted file and a new one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::hash::Hash;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use crate::changes::{Change, Kind};
use crate::look::hash;
use crate::node::{Node, NodeKind};
use crate::open::{open_below, open_file};

/// Bytes of a file up to which it is read to find whether it was renamed.
const READ: u64 = 64 * 1024 * 1024;

/// Makes one entry of each deleted and created file of the same content.
/// `read` hashes what was not hashed before. The entries are of one root, and
/// sorted.
pub(crate) fn pair(
    mut entries: Vec<Change>,
    read: impl FnMut(&Change) -> Option<String>,
) -> Vec<Change> {
    let pairs = Candidates::find(&entries, read).pairs(&entries);
    let mut gone = HashSet::new();
    for (old, new) in pairs {
        gone.insert(old);
        let (from, before) = (entries[old].path.clone(), entries[old].before.take());
        let (built_on, overtaken) = (entries[old].built_on, entries[old].overtaken);
        let entry = &mut entries[new];
        entry.kind = Kind::Renamed;
        entry.from = Some(from);
        entry.before = before;
        entry.built_on = built_on;
        entry.overtaken |= overtaken;
    }
    let mut index = 0..;
    entries.retain(|_| !gone.contains(&index.next().unwrap_or_default()));
    entries
}

/// Hashes a file of a tree.
pub(crate) fn content(tree: &OwnedFd, path: &Path) -> io::Result<Option<String>> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(None);
    };
    let Some(dir) = open_below(tree, parent)? else {
        return Ok(None);
    };
    match open_file(dir, name)? {
        Some(file) => Ok(Some(hash(File::from(file).take(READ))?)),
        None => Ok(None),
    }
}

/// What says that two files have the same content.
type Same = (u64, String);

/// Indices of files that might have been renamed.
struct Candidates {
    gone: Vec<(usize, Same)>,
    made: Vec<(usize, Same)>,
}

impl Candidates {
    fn find(entries: &[Change], mut read: impl FnMut(&Change) -> Option<String>) -> Self {
        let gone = sizes(entries, Kind::Deleted);
        let made = sizes(entries, Kind::Created);
        let both: HashSet<u64> = {
            let made: HashSet<u64> = made.iter().map(|(_, size)| *size).collect();
            let gone = gone.iter().map(|(_, size)| *size);
            gone.filter(|size| made.contains(size)).collect()
        };
        let mut hashed = |all: Vec<(usize, u64)>| {
            let all = all.into_iter().filter(|(_, size)| both.contains(size));
            all.filter_map(|(index, size)| {
                let change = &entries[index];
                let known = node(change).and_then(|node| node.content.clone());
                Some((index, (size, known.or_else(|| read(change))?)))
            })
            .collect()
        };
        Self {
            gone: hashed(gone),
            made: hashed(made),
        }
    }

    /// Returns pairs of old and new, first those that kept their last name.
    fn pairs(self, entries: &[Change]) -> Vec<(usize, usize)> {
        let name = |index: usize| entries[index].path.path().file_name();
        let with_name = |(index, same): &(usize, Same)| (same.clone(), name(*index));
        let alone = |(_, same): &(usize, Same)| same.clone();
        let mut pairs = matches(&self.gone, &self.made, with_name);
        let taken: HashSet<usize> = pairs.iter().flat_map(|(old, new)| [*old, *new]).collect();
        let left = |mut all: Vec<(usize, Same)>| {
            all.retain(|(index, _)| !taken.contains(index));
            all
        };
        pairs.extend(matches(&left(self.gone), &left(self.made), alone));
        pairs
    }
}

/// Pairs what has the same key, in order.
fn matches<'a, K: Hash + Eq>(
    gone: &'a [(usize, Same)],
    made: &'a [(usize, Same)],
    key: impl Fn(&'a (usize, Same)) -> K,
) -> Vec<(usize, usize)> {
    let mut free: HashMap<K, VecDeque<usize>> = HashMap::new();
    for old in gone {
        free.entry(key(old)).or_default().push_back(old.0);
    }
    made.iter()
        .filter_map(|new| Some((free.get_mut(&key(new))?.pop_front()?, new.0)))
        .collect()
}

/// Returns files that are not empty, with their sizes. What makes way for
/// something else at the same path is no rename, and that is none either.
fn sizes(entries: &[Change], kind: Kind) -> Vec<(usize, u64)> {
    let path = |index: usize| entries.get(index).map(|change| change.path.path());
    let is_alone = |index: usize| {
        let next = path(index + 1) == path(index);
        let previous = index.checked_sub(1).and_then(path) == path(index);
        !next && !previous
    };
    entries
        .iter()
        .enumerate()
        .filter(|(index, change)| change.kind == kind && is_alone(*index))
        .filter_map(|(index, change)| Some((index, node(change)?)))
        .filter(|(_, node)| node.kind == NodeKind::File && (1..=READ).contains(&node.size))
        .map(|(index, node)| (index, node.size))
        .collect()
}

fn node(change: &Change) -> Option<&Node> {
    change.after.as_ref().or(change.before.as_ref())
}
