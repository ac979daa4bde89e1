//! Notes what is found, as entries and refusals.

use std::path::{Path, PathBuf};

use super::before::PathBefore;
use super::{LayerDir, RootScan, refuse};
use crate::changes::{Change, Kind, Refusal};
use crate::look::SeenFile;
use crate::node::{Node, NodeKind};

impl RootScan<'_> {
    /// Notes an entry, and why it cannot be applied if so.
    pub(super) fn note(
        &mut self,
        place: &LayerDir,
        path: PathBuf,
        kind: Kind,
        before: Option<PathBefore>,
        after: SeenFile,
    ) {
        let was = before.as_ref().map(|before| &before.seen);
        if let Some(why) = refuse::reason(&after, was, place.parent, self.root.owner) {
            self.refuse(&path, &why);
        }
        if after.node.kind != NodeKind::Special {
            let change = self.change(path, kind, before, Some(after));
            self.entries.push(change);
        }
    }

    pub(super) fn change(
        &self,
        path: PathBuf,
        kind: Kind,
        before: Option<PathBefore>,
        after: Option<SeenFile>,
    ) -> Change {
        let tree = before.as_ref().map(|before| before.tree);
        let built_on = tree.filter(|tree| !self.trees.is_live(*tree));
        let before = before.map(|before| before.seen.node);
        Change {
            root: self.index,
            path: path.into(),
            kind,
            from: None,
            built_on,
            // An earlier layer may well have been applied meanwhile.
            alike: false,
            overtaken: built_on.is_none()
                && before.as_ref().is_some_and(|node| node.ctime > self.since),
            // Content of another file is put in its place; rights are set.
            shared: before.as_ref().is_some_and(has_more_names)
                && match kind {
                    Kind::Mode => true,
                    Kind::Modified => after.as_ref().is_some_and(|seen| seen.origin.is_some()),
                    _ => false,
                },
            before,
            after: after.map(|seen| seen.node),
            image: None,
        }
    }

    pub(super) fn is_too_deep(&mut self, path: &Path) -> bool {
        let length = self.root.live.as_os_str().len() + 1 + path.as_os_str().len();
        let too_deep = length > refuse::LONGEST;
        if too_deep {
            self.refuse(path, "has a path that is too long to be opened");
        }
        too_deep
    }

    pub(super) fn refuse(&mut self, path: &Path, why: &str) {
        self.refused.push(Refusal {
            root: self.index,
            path: path.into(),
            why: why.into(),
        });
    }
}

fn has_more_names(node: &Node) -> bool {
    node.kind == NodeKind::File && node.links > 1
}
