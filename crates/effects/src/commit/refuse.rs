//! Refuses changes that are never applied, even with a permit.

use std::path::{Component, Path};

use super::plan::CommitPlan;
use super::tree::OpenDirs;
use crate::changes::{Change, Changes, Kind, Refusal, Source};
use crate::node::{Node, NodeKind};

const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;

/// What our own temporary directories begin with.
pub(crate) const OWN: &str = ".weighlock-";

/// What is looked at.
pub(crate) struct CheckedChange<'a> {
    pub(crate) changes: &'a Changes,
    pub(crate) plan: &'a CommitPlan<'a>,
    pub(crate) trees: &'a mut [OpenDirs],
}

/// Returns all that must not be applied.
pub(crate) fn refused(mut case: CheckedChange<'_>) -> Vec<Refusal> {
    let changes = case.changes;
    let found = changes.entries.iter().filter_map(|change| {
        let why = objection(&mut case, change)?;
        Some(Refusal {
            root: change.root,
            path: change.path.clone(),
            why: why.into(),
        })
    });
    changes.refused.iter().cloned().chain(found).collect()
}

fn objection(case: &mut CheckedChange<'_>, change: &Change) -> Option<&'static str> {
    let Some(root) = case.changes.roots.get(change.root) else {
        return Some("it is in no directory of the sandbox");
    };
    let paths = [Some(&change.path), change.from.as_ref()];
    if !paths.iter().flatten().all(|path| is_inside(path.path())) {
        return Some("its path leads elsewhere, or is one that weighlock uses itself");
    }
    let empty = change.path.path().as_os_str().is_empty();
    let kinds = [&change.before, &change.after].map(|node| node.as_ref().map(|node| node.kind));
    if empty && kinds != [Some(NodeKind::Directory); 2] {
        return Some("the directory itself cannot be replaced");
    }
    if kinds.contains(&Some(NodeKind::Special)) {
        return Some("it is a device, a pipe or a socket");
    }
    let after = change.after.as_ref()?;
    // What comes back with an undo stood there before a run touched it.
    if matches!(root.source, Source::Images(_)) {
        return None;
    }
    if !is_owner_fine(change, after, (root.owner.uid, root.owner.gid)) {
        return Some("it would belong to somebody else");
    }
    (!is_set_id_fine(case, change, after)).then_some("it would run with the rights of its owner")
}

fn is_inside(path: &Path) -> bool {
    path.components().all(|part| match part {
        Component::Normal(name) => !name.as_encoded_bytes().starts_with(OWN.as_bytes()),
        _ => false,
    })
}

fn is_owner_fine(change: &Change, after: &Node, owner: (u32, u32)) -> bool {
    let before = change
        .before
        .as_ref()
        .map(|before| (before.uid, before.gid));
    (after.uid == owner.0 || before.is_some_and(|before| before.0 == after.uid))
        && (after.gid == owner.1 || before.is_some_and(|before| before.1 == after.gid))
}

fn is_set_id_fine(case: &mut CheckedChange<'_>, change: &Change, after: &Node) -> bool {
    let bits = after.mode & (SET_UID | SET_GID);
    if bits == 0 {
        return true;
    }
    let before = change.before.as_ref().map_or(0, |before| before.mode);
    match after.kind {
        // New content must not get the rights that the old one had.
        NodeKind::File => keeps_content(change) && bits & !before == 0,
        NodeKind::Directory if bits == SET_GID => before & SET_GID != 0 || inherits(case, change),
        // Links have no rights.
        NodeKind::Link => true,
        _ => false,
    }
}

fn keeps_content(change: &Change) -> bool {
    matches!(change.kind, Kind::Mode | Kind::Times) && change.before.is_some()
}

/// Whether a new directory has its group from the one that it is in.
fn inherits(case: &mut CheckedChange<'_>, change: &Change) -> bool {
    let Some(parent) = change.path.path().parent() else {
        return false;
    };
    let mode = match case.plan.made.get(&(change.root, parent)) {
        Some(made) => case.changes.entries[made.by]
            .after
            .as_ref()
            .map(|after| after.mode),
        None => live_mode(&mut case.trees[change.root], parent),
    };
    mode.is_some_and(|mode| mode & SET_GID != 0)
}

fn live_mode(tree: &mut OpenDirs, path: &Path) -> Option<u32> {
    Some(tree.handle(path).ok()??.node().ok()?.mode)
}
