//! What a run saw before it changed anything: earlier layers over the live
//! tree, merged as the kernel merges them.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use crate::changes::Root;
use crate::error::Error;
use crate::look::{ContentMode, SeenFile, look};
use crate::node::NodeKind;
use crate::open::{names, open_below, open_root};

/// The trees below a layer, the newest first; the last is the live one.
pub(super) struct Trees(Vec<OwnedFd>);

/// What stood at a path.
pub(super) struct PathBefore {
    pub(super) seen: SeenFile,
    /// The tree that it is in; of a directory, the newest.
    pub(super) tree: usize,
    /// All trees that add to it, if it is a directory.
    pub(super) dirs: Vec<usize>,
}

impl Trees {
    pub(super) fn open(root: &Root) -> Result<Self, Error> {
        let all = root.below.iter().chain([&root.live]);
        all.map(|path| open_root(path).map_err(Error::read(path)))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_live(&self, tree: usize) -> bool {
        tree + 1 == self.count()
    }

    pub(super) fn live(&self) -> &OwnedFd {
        self.tree(self.count() - 1)
    }

    pub(super) fn tree(&self, tree: usize) -> &OwnedFd {
        &self.0[tree]
    }

    /// Opens a directory in those trees that have it.
    pub(super) fn dirs(&self, trees: &[usize], path: &Path) -> io::Result<Vec<(usize, OwnedFd)>> {
        let mut dirs = Vec::new();
        for tree in trees {
            if let Some(dir) = open_below(self.tree(*tree), path)? {
                dirs.push((*tree, dir));
            }
        }
        Ok(dirs)
    }
}

/// Returns what stood at a name in a directory, given as it is in each tree.
pub(super) fn find(dirs: &[(usize, OwnedFd)], name: &OsStr) -> io::Result<Option<PathBefore>> {
    let mut found: Option<PathBefore> = None;
    for (tree, dir) in dirs {
        let content = match found {
            Some(_) => ContentMode::Left,
            None => ContentMode::Hashed,
        };
        let Some(seen) = look(dir, name, content)? else {
            continue;
        };
        let is_dir = seen.node.kind == NodeKind::Directory;
        // A file hides what is further down, and is itself hidden by a
        // directory above.
        let hides = seen.whiteout || seen.opaque || !is_dir;
        match &mut found {
            _ if seen.whiteout => {}
            Some(found) if is_dir => {
                found.dirs.push(*tree);
                found.seen.mounted |= seen.mounted;
            }
            Some(_) => {}
            None => {
                found = Some(PathBefore {
                    dirs: is_dir.then_some(*tree).into_iter().collect(),
                    seen,
                    tree: *tree,
                });
            }
        }
        if hides {
            break;
        }
    }
    Ok(found)
}

/// Returns all names in a directory, given as it is in each tree. Some may be
/// those of deleted things.
pub(super) fn names_in(dirs: &[(usize, OwnedFd)]) -> io::Result<BTreeSet<OsString>> {
    let mut all = BTreeSet::new();
    for (_, dir) in dirs {
        all.extend(names(dir)?);
    }
    Ok(all)
}
