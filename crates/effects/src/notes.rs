//! Lists the changes that a patch cannot express.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::changes::{Change, Kind};
use crate::git::quote;
use crate::node::{Node, NodeKind};

/// Returns a line for each thing that a patch of these changes leaves out.
pub(crate) fn of(entries: &[&Change]) -> Vec<Vec<u8>> {
    let parents = parents(entries);
    let mut notes: Vec<Vec<u8>> = entries
        .iter()
        .filter(|change| gits_dir(change.path.path()).is_none())
        .filter_map(|change| note(change, &parents))
        .collect();
    notes.extend(left_out(entries));
    notes
}

/// What git can apply of a change: of a rename into one of its own
/// directories or out of it, the other half.
pub(crate) fn without_gits_own(change: &Change) -> Option<Cow<'_, Change>> {
    let from = change.from.as_ref();
    let old_is_own = from.is_some_and(|from| gits_dir(from.path()).is_some());
    match (old_is_own, gits_dir(change.path.path()).is_some()) {
        (false, false) => Some(Cow::Borrowed(change)),
        (true, false) => Some(Cow::Owned(Change {
            kind: Kind::Created,
            from: None,
            before: None,
            ..change.clone()
        })),
        (false, true) => from.map(|from| {
            Cow::Owned(Change {
                kind: Kind::Deleted,
                path: from.clone(),
                from: None,
                after: None,
                ..change.clone()
            })
        }),
        (true, true) => None,
    }
}

/// The directory for which git refuses to touch a path. It compares names
/// without regard to case, and knows the short name that Windows gives it.
fn gits_dir(path: &Path) -> Option<PathBuf> {
    let own = |name: &std::ffi::OsStr| {
        name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1")
    };
    let position = path.iter().position(own)?;
    Some(path.iter().take(position + 1).collect())
}

/// Directories in which the patch makes or removes something, and so them.
fn parents<'a>(entries: &[&'a Change]) -> BTreeSet<(Kind, &'a Path)> {
    let kept = |node: &Node| matches!(node.kind, NodeKind::File | NodeKind::Link);
    let mut parents = BTreeSet::new();
    for change in entries {
        if change.after.as_ref().is_some_and(kept) {
            let above = change.path.path().ancestors().skip(1);
            parents.extend(above.map(|path| (Kind::Created, path)));
        }
        let old = change.from.as_ref().unwrap_or(&change.path);
        let goes = matches!(change.kind, Kind::Deleted | Kind::Renamed);
        if goes && change.before.as_ref().is_some_and(kept) {
            let above = old.path().ancestors().skip(1);
            parents.extend(above.map(|path| (Kind::Deleted, path)));
        }
    }
    parents
}

fn note(change: &Change, parents: &BTreeSet<(Kind, &Path)>) -> Option<Vec<u8>> {
    let path = quote(change.path.bytes());
    let node = change.after.as_ref().or(change.before.as_ref())?;
    let what = match node.kind {
        NodeKind::Directory => "directory ",
        NodeKind::Special => "special file ",
        NodeKind::File | NodeKind::Link => return rights(change, &path),
    };
    let made_by_files = parents.contains(&(change.kind, change.path.path()));
    match change.kind {
        Kind::Created | Kind::Deleted if made_by_files => None,
        Kind::Created => Some(said("created ", what, &quoted_dir(change, node))),
        Kind::Deleted => Some(said("deleted ", what, &quoted_dir(change, node))),
        Kind::Renamed => {
            let from = change.from.as_ref().unwrap_or(&change.path);
            let moved = [&quote(from.bytes())[..], b" to ", &path].concat();
            Some(said("renamed ", what, &moved))
        }
        Kind::Mode => rights(change, &path),
        Kind::Modified | Kind::Link => Some(said("replaced ", what, &path)),
        Kind::Times => None,
    }
}

fn quoted_dir(change: &Change, node: &Node) -> Vec<u8> {
    let mut name = change.path.bytes().to_vec();
    if node.kind == NodeKind::Directory {
        name.push(b'/');
    }
    quote(&name)
}

fn said(deed: &str, what: &str, name: &[u8]) -> Vec<u8> {
    [deed.as_bytes(), what.as_bytes(), name].concat()
}

/// What git would not keep of the rights of something.
fn rights(change: &Change, path: &[u8]) -> Option<Vec<u8>> {
    let after = change.after.as_ref()?;
    let Some(before) = &change.before else {
        return (after.kind == NodeKind::File && is_unusual(after.mode))
            .then(|| said("created with mode ", &format!("{:04o} ", after.mode), path));
    };
    // All that git knows is whether its owner may execute it.
    let known = |node: &Node| (node.kind == NodeKind::File).then_some(node.mode & 0o100);
    let said_by_git = known(before) != known(after) && !is_unusual(after.mode);
    if before.mode != after.mode && after.kind != NodeKind::Link && !said_by_git {
        let modes = format!("from {:04o} to {:04o} ", before.mode, after.mode);
        return Some(said("changed mode ", &modes, path));
    }
    let owners = (before.uid, before.gid) != (after.uid, after.gid);
    let same = !owners && before.attributes == after.attributes;
    (!same).then(|| said("changed ", "owner or attributes of ", path))
}

/// Whether no usual umask gives a file these rights.
fn is_unusual(mode: u32) -> bool {
    mode & 0o7000 != 0 || mode & 0o444 != 0o444
}

/// One line for each of git's own directories.
fn left_out(entries: &[&Change]) -> Vec<Vec<u8>> {
    let mut counts: BTreeMap<PathBuf, u64> = BTreeMap::new();
    let paths = entries
        .iter()
        .flat_map(|change| [Some(&change.path), change.from.as_ref()]);
    for dir in paths.flatten().filter_map(|path| gits_dir(path.path())) {
        *counts.entry(dir).or_default() += 1;
    }
    let note = |(dir, count): (PathBuf, u64)| {
        let name = quote(dir.as_os_str().as_encoded_bytes());
        let what = format!("{count} changes of git's own, which git would refuse: ");
        said("left out ", &what, &name)
    };
    counts.into_iter().map(note).collect()
}
