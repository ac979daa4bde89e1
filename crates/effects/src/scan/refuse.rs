//! What is never applied: what would be more than the run itself could do.

use rustix::fs::FileType;
use weighlock_confine::Identity;

use crate::look::SeenFile;
use crate::node::{Node, NodeKind};

/// Bytes of a path that the kernel takes, without the NUL at its end.
pub(super) const LONGEST: usize = 4095;

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

/// What a directory gives to new things in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parent {
    /// Its group, if it is handed on.
    group: Option<u32>,
}

impl Parent {
    pub(super) fn of(dir: &Node) -> Self {
        Self {
            group: (dir.mode & SETGID != 0).then_some(dir.gid),
        }
    }
}

/// Returns why something may not be applied.
pub(super) fn reason(
    after: &SeenFile,
    before: Option<&SeenFile>,
    parent: Parent,
    owner: Identity,
) -> Option<String> {
    let (node, was) = (&after.node, before.map(|before| &before.node));
    if node.kind == NodeKind::Special {
        let what = special(after.file_type);
        return Some(format!("is {what}, which cannot be applied"));
    }
    if after.unreadable {
        return Some("cannot be read: its rights forbid it".into());
    }
    if after.pretends {
        return Some("has attributes by which layers are marked".into());
    }
    let raises = raises(node, was, parent);
    let capability = after.capability.is_some()
        && after.capability != before.and_then(|before| before.capability.clone());
    if raises || capability {
        return Some("would give whoever runs it the rights of another".into());
    }
    let is_owners = node.uid == owner.uid || was.is_some_and(|was| was.uid == node.uid);
    if !is_owners {
        return Some(format!("belongs to another user ({})", node.uid));
    }
    let is_groups = node.gid == owner.gid
        || was.is_some_and(|was| was.gid == node.gid)
        || parent.group == Some(node.gid);
    (!is_groups).then(|| format!("belongs to another group ({})", node.gid))
}

/// Returns why something that stood there may not go.
pub(super) fn lost(before: &SeenFile) -> String {
    let what = special(before.file_type);
    format!("was {what}, which could not be brought back")
}

/// Returns whether a node gains a setuid or setgid bit. On a directory, setgid
/// only sets the group of new files in it.
fn raises(node: &Node, was: Option<&Node>, parent: Parent) -> bool {
    if node.kind != NodeKind::Directory {
        return node.mode & (SETUID | SETGID) != 0;
    }
    let had = was.map_or(0, |was| was.mode);
    let inherited = if parent.group.is_some() { SETGID } else { 0 };
    node.mode & (SETUID | SETGID) & !(had | inherited) != 0
}

fn special(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        FileType::BlockDevice | FileType::CharacterDevice => "a device",
        _ => "of an unknown kind",
    }
}
