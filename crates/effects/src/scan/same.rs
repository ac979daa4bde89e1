//! Tells in what two things at one path differ.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use crate::changes::Kind;
use crate::node::{Node, NodeKind};
use crate::open::{is_forbidden, open_file};

/// Bytes of a file up to which it is compared with another. A larger one that
/// was opened for writing is called modified: reading both takes seconds.
const COMPARED: u64 = 256 * 1024 * 1024;

/// Bytes compared at once.
const CHUNK: usize = 1024 * 1024;

/// Two things that are no directories, each with the directory it is in.
pub(super) struct Pair<'a> {
    pub(super) name: &'a OsStr,
    pub(super) before: (&'a OwnedFd, &'a Node),
    pub(super) after: (&'a OwnedFd, &'a Node),
}

/// Returns whether rights, owner and attributes are the same.
pub(super) fn is_governed_alike(one: &Node, other: &Node) -> bool {
    let key = |node: &Node| (node.mode, node.uid, node.gid);
    key(one) == key(other) && one.attributes == other.attributes
}

impl Pair<'_> {
    /// Returns what happened between them, if anything.
    pub(super) fn difference(&self) -> io::Result<Option<Kind>> {
        let (before, after) = (self.before.1, self.after.1);
        let is_link = |node: &Node| node.kind == NodeKind::Link;
        Ok(if is_link(before) || is_link(after) {
            let changed = before.kind != after.kind || before.target != after.target;
            changed.then_some(Kind::Link)
        } else {
            (!self.has_same_content()?).then_some(Kind::Modified)
        }
        .or_else(|| (!is_governed_alike(before, after)).then_some(Kind::Mode))
        .or_else(|| (before.mtime != after.mtime).then_some(Kind::Times)))
    }

    /// Equal times say nothing: a run can set them back.
    fn has_same_content(&self) -> io::Result<bool> {
        let (before, after) = (self.before.1, self.after.1);
        if before.size != after.size {
            return Ok(false);
        }
        if let (Some(one), Some(other)) = (&before.content, &after.content) {
            return Ok(one == other);
        }
        if after.size > COMPARED {
            return Ok(false);
        }
        match (self.open(self.before.0)?, self.open(self.after.0)?) {
            (Some(one), Some(other)) => is_same(one, other),
            _ => Ok(false),
        }
    }

    fn open(&self, dir: &OwnedFd) -> io::Result<Option<File>> {
        match open_file(dir, self.name) {
            Ok(file) => Ok(file.map(File::from)),
            Err(error) if is_forbidden(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns whether two files say the same.
pub(crate) fn is_same(mut one: impl Read, mut other: impl Read) -> io::Result<bool> {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        chunk(&mut one, &mut left)?;
        chunk(&mut other, &mut right)?;
        if left != right {
            return Ok(false);
        }
        if left.is_empty() {
            return Ok(true);
        }
    }
}

fn chunk(file: &mut impl Read, into: &mut Vec<u8>) -> io::Result<()> {
    into.clear();
    file.take(CHUNK as u64).read_to_end(into)?;
    Ok(())
}
