//! Sorts the changes, once all of them are known.

use std::io;
use std::path::Path;

use super::RootScan;
use crate::changes::{Change, Kind, Refusal};
use crate::node::{Node, NodeKind};
use crate::rename;

impl RootScan<'_> {
    /// Returns all entries and refusals.
    pub(super) fn finish(mut self) -> (Vec<Change>, Vec<Refusal>) {
        sort(&mut self.entries);
        let touched = std::mem::take(&mut self.touched);
        let touched: Vec<Change> = touched
            .into_iter()
            // A live directory that was written to has a newer time by now.
            .filter(|dir| !dir.overtaken && !has_any_below(&self.entries, dir.path.path()))
            .collect();
        self.entries.extend(touched);
        sort(&mut self.entries);
        let entries = std::mem::take(&mut self.entries);
        let mut entries = rename::pair(entries, |change| self.content(change).ok().flatten());
        self.flag_orphans(&mut entries);
        self.flag_swapped(&mut entries);
        sort(&mut entries);
        self.refused.sort_by(|a, b| a.path.cmp(&b.path));
        self.refused.dedup();
        (entries, self.refused)
    }

    /// Hashes a file that was too large for it before.
    fn content(&self, change: &Change) -> io::Result<Option<String>> {
        match change.kind {
            Kind::Deleted => {
                let tree = change.built_on.unwrap_or(self.trees.count() - 1);
                rename::content(self.trees.tree(tree), change.path.path())
            }
            _ => rename::content(&self.upper, change.path.path()),
        }
    }

    /// Marks files that were copied up from something that has gone meanwhile
    /// as overtaken. A run that moves a copied file leaves the same picture,
    /// and a deleted file elsewhere.
    fn flag_orphans(&self, entries: &mut [Change]) {
        let is_gone_file = |change: &Change| {
            let was_file = |node: &Node| node.kind == NodeKind::File;
            change.kind == Kind::Deleted && change.before.as_ref().is_some_and(was_file)
        };
        if self.orphans.is_empty() || entries.iter().any(is_gone_file) {
            return;
        }
        for change in entries.iter_mut().filter(|change| change.from.is_none()) {
            change.overtaken |= self.orphans.contains(change.path.path());
        }
    }

    /// Says of all that is in a directory which was swapped for another that
    /// it was overtaken.
    fn flag_swapped(&self, entries: &mut [Change]) {
        let is_in = |path: &Path| self.swapped.iter().any(|dir| path.starts_with(dir));
        for change in entries {
            let from = change.from.as_ref();
            change.overtaken |=
                is_in(change.path.path()) || from.is_some_and(|from| is_in(from.path()));
        }
    }
}

fn sort(entries: &mut [Change]) {
    entries.sort_by(|a, b| (a.path.path(), a.kind).cmp(&(b.path.path(), b.kind)));
}

/// Returns whether any of these sorted entries is below a directory.
fn has_any_below(entries: &[Change], dir: &Path) -> bool {
    let next = entries.partition_point(|change| change.path.path() <= dir);
    entries
        .get(next)
        .is_some_and(|change| change.path.path().starts_with(dir))
}
