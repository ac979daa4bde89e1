//! Makes new files, links and directories where nobody sees them yet.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek};

use rustix::fs::{Mode, OFlags, mkdirat, openat, symlinkat};

use super::attributes::Attributes;
use super::copy::copy;
use super::handle::{Handle, Traits};
use super::tree::Spot;
use crate::look::hash;
use crate::node::{Node, NodeKind};

/// Makes a file at `spot` by giving what is there already one more name, and
/// says whether it could. Files on one file system are not copied then.
pub(crate) fn link_file(from: &Handle, spot: &Spot, traits: &Traits) -> io::Result<bool> {
    if from.link(&spot.dir, &spot.name).is_err() {
        return Ok(false);
    }
    let made = spot.hold()?;
    let now = made.node()?;
    if Traits::of(&now, made.attributes()?) == *traits || made.set(traits).is_ok() {
        return Ok(true);
    }
    rustix::fs::unlinkat(&spot.dir, &spot.name, rustix::fs::AtFlags::empty())?;
    Ok(false)
}

/// Makes a file at `spot` with the content of another.
pub(crate) fn copy_file(from: &Handle, spot: &Spot, traits: &Traits) -> io::Result<File> {
    let from = open_to_read(from)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let to = File::from(openat(&spot.dir, &spot.name, flags, mode)?);
    copy(&from, &to)?;
    spot.hold()?.set(traits)?;
    Ok(to)
}

/// Opens a file that is ours, whatever its rights say.
fn open_to_read(file: &Handle) -> io::Result<File> {
    let opened = file.file(OpenOptions::new().read(true));
    match opened {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        opened => return opened,
    }
    let mode = file.node()?.mode;
    file.set_mode(mode | 0o400)?;
    let opened = file.file(OpenOptions::new().read(true));
    file.set_mode(mode)?;
    opened
}

/// Makes a link at `spot` like another.
pub(crate) fn make_link(node: &Node, spot: &Spot) -> io::Result<()> {
    let target = node.target.as_ref().ok_or(io::ErrorKind::InvalidData)?;
    symlinkat(target.path(), &spot.dir, &spot.name)?;
    spot.hold()?.set(&Traits::of(node, Attributes::default()))
}

/// Makes a directory at `spot` in which its owner can work; what it should be
/// is set when all is in it.
pub(crate) fn make_dir(spot: &Spot) -> io::Result<()> {
    Ok(mkdirat(&spot.dir, &spot.name, Mode::RWXU)?)
}

/// Whether the content to be applied still is what was shown.
pub(crate) fn is_as_shown(shown: &Node, found: &Node, exactly: bool) -> bool {
    let content = |node: &Node| match node.kind {
        NodeKind::File => Some((node.size, node.mtime)),
        _ => None,
    };
    let who = |node: &Node| (node.device, node.inode, node.mode, node.uid, node.gid);
    shown.kind == found.kind
        && shown.target == found.target
        && content(shown) == content(found)
        && (!exactly || shown.kind != NodeKind::File || who(shown) == who(found))
}

/// Whether a copy has the content that was shown, though somebody may have had
/// the file open all the time.
pub(crate) fn is_copy_of(shown: &Node, from: &Handle, mut copy: File) -> io::Result<bool> {
    match &shown.content {
        Some(content) => {
            copy.rewind()?;
            Ok(hash(copy)? == *content)
        }
        // Too large to have been read then. Nobody sets this time back.
        None => Ok(from.node()?.ctime == shown.ctime),
    }
}
