//! Reads what stands at a path, and what a set of changes is known by.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;

use sha2::{Digest, Sha256};

use crate::changes::Changes;
use crate::commit::handle::Handle;
use crate::node::{Node, NodeKind};

/// Files up to this size are told apart by content; larger ones would take
/// longer to read than anyone waits.
const SMALL_BYTES: u64 = 1024 * 1024;

impl Node {
    /// Reads what stands under a name in an open directory, without following
    /// a link there.
    pub fn read(dir: impl AsFd, name: &OsStr) -> io::Result<Option<Self>> {
        let Some(handle) = Handle::open(dir, name)? else {
            return Ok(None);
        };
        let mut node = handle.node()?;
        if node.kind == NodeKind::File && node.size <= SMALL_BYTES {
            node.content = handle.read().ok().map(|bytes| short_hash(&bytes));
        }
        let attributes = handle.attributes()?.outer();
        if !attributes.is_empty() {
            let text = serde_json::to_vec(&attributes).map_err(io::Error::other)?;
            node.attributes = short_hash(&text);
        }
        Ok(Some(node))
    }
}

impl Changes {
    /// Returns what a permit for exactly these names.
    pub fn hash(&self) -> String {
        let text = serde_json::to_vec(&self.entries).unwrap_or_default();
        short_hash(&text)
    }
}

fn short_hash(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().take(16).map(|b| format!("{b:02x}")).collect()
}
