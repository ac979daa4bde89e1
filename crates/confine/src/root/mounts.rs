//! What is done with detached trees of mounts.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::mount::{MountAttrFlags, MoveMountFlags, OpenTreeFlags, move_mount, open_tree};

use crate::profile::Access;

/// A detached copy of the mounts at a path.
pub(crate) fn clone_tree(dir: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    open_tree(dir, path, flags)
}

pub(super) fn graft(tree: &OwnedFd, at: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", at, "", flags)?)
}

/// Takes rights away from a tree: set-id bits never count inside.
pub(crate) fn restrict(
    tree: &OwnedFd,
    access: Access,
    more: MountAttrFlags,
    recursive: bool,
) -> io::Result<()> {
    let read_only = match access {
        Access::Read => MountAttrFlags::MOUNT_ATTR_RDONLY,
        Access::Write => MountAttrFlags::empty(),
    };
    let set = MountAttrFlags::MOUNT_ATTR_NOSUID | more | read_only;
    set_attributes(tree, u64::from(set.bits()), None, recursive)
}

/// Makes root's files in a tree the run's own.
pub(crate) fn lend(tree: &OwnedFd, lender: &OwnedFd) -> io::Result<()> {
    set_attributes(tree, libc::MOUNT_ATTR_IDMAP, Some(lender), true)
}

fn set_attributes(
    tree: &OwnedFd,
    set: u64,
    user_namespace: Option<&OwnedFd>,
    recursive: bool,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: set,
        attr_clr: 0,
        propagation: 0,
        userns_fd: user_namespace.map_or(0, |fd| fd.as_raw_fd() as u64),
    };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path and the attributes outlive the call, which reads them;
    // the size is the structure's.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of_val(&attributes),
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
