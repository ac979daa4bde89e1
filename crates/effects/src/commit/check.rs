//! Whether a path still is what its change was made on, at the moment that it
//! is taken hold of. All of them together are looked at before, by
//! [`Changes::conflicts`](crate::Changes::conflicts).

use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::handle::Handle;
use super::tree::{OpenDirs, Spot};
use crate::changes::Change;
use crate::node::{Node, NodeKind};

/// Opens the file that the change was made on, or says how the live file
/// differs from it.
pub(crate) fn unchanged(
    tree: &mut OpenDirs,
    path: &Path,
    change: &Change,
) -> io::Result<Result<(Handle, Node), &'static str>> {
    let spot = match reached(tree.spot(path))? {
        Ok(spot) => spot,
        Err(why) => return Ok(Err(why)),
    };
    let handle = match reached(spot.handle())? {
        Ok(Some(handle)) => handle,
        Ok(None) => return Ok(Err("it is gone")),
        Err(why) => return Ok(Err(why)),
    };
    let now = handle.node()?;
    let same = match (&change.before, change.takes_like()) {
        (None, _) => true,
        (Some(before), true) => is_like(before, &now, &spot)?,
        (Some(before), false) => is_still(before, &now, &spot)?,
    };
    Ok(if same {
        Ok((handle, now))
    } else {
        Err("it changed meanwhile")
    })
}

/// Takes what says that a path does not lead where it did as an answer, and
/// not as an error.
pub(crate) fn reached<T>(got: io::Result<T>) -> io::Result<Result<T, &'static str>> {
    let error = match got {
        Ok(got) => return Ok(Ok(got)),
        Err(error) => error,
    };
    let why = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => "its directory is gone",
        Some(Errno::NOTDIR | Errno::LOOP) => "its directory is no directory any more",
        Some(Errno::XDEV) => "something is mounted there",
        _ => return Err(error),
    };
    Ok(Err(why))
}

/// Whether it is the very same, unchanged. A directory changes whenever
/// something in it does, which is no matter here.
fn is_still(before: &Node, now: &Node, spot: &Spot) -> io::Result<bool> {
    let who = |node: &Node| (node.kind, node.device, node.inode, node.uid, node.gid);
    if who(before) != who(now) {
        return Ok(false);
    }
    let outside = |node: &Node| (node.mode, node.size, node.mtime);
    match now.kind {
        NodeKind::Link => return Ok(before.target == now.target && before.mtime == now.mtime),
        NodeKind::File if outside(before) != outside(now) => return Ok(false),
        _ if before.mode != now.mode => return Ok(false),
        _ if before.ctime == now.ctime => return Ok(true),
        _ => {}
    }
    let Some(full) = read_same(now, spot)? else {
        return Ok(false);
    };
    // When a layer is removed, what it shares with the live tree has a name
    // less, and that alone is no change.
    let lost_a_name = now.links < before.links;
    Ok(full.attributes == before.attributes
        && full.content == before.content
        && (full.content.is_some() || now.kind == NodeKind::Directory || lost_a_name))
}

/// Whether it is what an earlier layer held, which has been applied since.
fn is_like(before: &Node, now: &Node, spot: &Spot) -> io::Result<bool> {
    let Some(now) = read_same(now, spot)? else {
        return Ok(false);
    };
    let outside = |node: &Node| (node.kind, node.mode);
    let inside = |node: &Node| (node.size, node.mtime, node.content.clone());
    Ok(outside(before) == outside(&now)
        && before.target == now.target
        && (now.kind != NodeKind::File || inside(before) == inside(&now)))
}

/// Reads all of a node, if it still is the one that was found.
fn read_same(now: &Node, spot: &Spot) -> io::Result<Option<Node>> {
    let found = Node::read(&spot.dir, &spot.name)?;
    Ok(found.filter(|found| {
        let who = |node: &Node| (node.device, node.inode, node.ctime);
        who(found) == who(now)
    }))
}
