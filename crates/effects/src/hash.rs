//! Names exactly what would be applied.

use std::os::unix::ffi::OsStrExt;

use sha2::{Digest, Sha256};

use crate::changes::{Change, Changes};
use crate::look::hex;
use crate::node::{Node, NodeKind, Time};

/// Characters of the hash: 96 bits. It is compared by people, too, and a
/// second set of changes with the same one is out of anybody's reach.
const LENGTH: usize = 24;

impl Changes {
    /// Returns a hash over all that would be applied. How the live tree is now
    /// makes no difference to it.
    pub fn hash(&self) -> String {
        let mut fields = HashedFields(Sha256::new());
        fields.number(self.roots.len() as u64);
        for root in &self.roots {
            fields.bytes(root.live.as_os_str().as_bytes());
        }
        for change in &self.entries {
            fields.change(change);
        }
        hex(&fields.0.finalize(), LENGTH)
    }
}

/// Fields of known lengths, so that no two lists of them are the same bytes.
struct HashedFields(Sha256);

impl HashedFields {
    fn change(&mut self, change: &Change) {
        self.number(change.root as u64);
        self.bytes(change.path.bytes());
        self.number(change.kind as u64);
        self.maybe(change.from.as_ref().map(|from| from.bytes()));
        self.number(change.after.is_some().into());
        if let Some(after) = &change.after {
            self.node(after);
        }
    }

    fn node(&mut self, node: &Node) {
        self.number(node.kind as u64);
        for number in [node.mode, node.uid, node.gid] {
            self.number(number.into());
        }
        // The file system decides on the size of a directory.
        if node.kind != NodeKind::Directory {
            self.number(node.size);
        }
        self.time(node.mtime);
        self.maybe(node.target.as_ref().map(|target| target.bytes()));
        self.bytes(node.attributes.as_bytes());
        self.maybe(node.content.as_ref().map(|content| content.as_bytes()));
        if node.kind == NodeKind::File && node.content.is_none() {
            self.number(node.device);
            self.number(node.inode);
        }
    }

    fn time(&mut self, time: Time) {
        self.0.update(time.seconds.to_le_bytes());
        self.number(time.nanos.into());
    }

    fn maybe(&mut self, bytes: Option<&[u8]>) {
        self.number(bytes.is_some().into());
        self.bytes(bytes.unwrap_or_default());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }
}
