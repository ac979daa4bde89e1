//! Directories of the host as a run may write to them: through layers.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, unlinkat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, unmount,
};

use super::mounts::{clone_tree, graft};
use super::{ROOT, Root, find, place};
use crate::privilege::{NOBODY, on_files_as};
use crate::profile::{Access, FileId, Identity, Mount};

/// So many layers do not fit into one text any more.
const SEVERAL: usize = 20;

/// Where layers are while they are put together; with a number.
const BENCH: &str = "/.l";

impl Root {
    /// Shows a directory of the host through layers. What they are made of is
    /// mounted for a moment, below a directory of ours: the kernel takes
    /// layers by their paths.
    pub(super) fn show_layered(
        &self,
        index: usize,
        mount: &Mount,
        owner: Option<Identity>,
    ) -> io::Result<()> {
        let Mount::Layered {
            from,
            at,
            is,
            lent,
            below,
            layer,
        } = mount
        else {
            return Ok(());
        };
        let bench = PathBuf::from(format!("{BENCH}{index}"));
        let set_up = |name: &str, from: &Path, is: Option<FileId>, access: Access| {
            let (tree, _) = self.take(from, is, access, *lent)?;
            let path = bench.join(name);
            graft(&tree, &place(&path, Some(ROOT), true)?)?;
            Ok::<_, io::Error>(path)
        };
        let mut lower = vec![];
        for (number, dir) in below.iter().enumerate() {
            lower.push(set_up(&number.to_string(), dir, None, Access::Read)?);
        }
        lower.push(set_up("live", from, *is, Access::Read)?);
        let own = layer.as_ref();
        let own = own.map(|dir| set_up("own", dir, None, Access::Write));
        let own = own.transpose()?;
        if let Some(own) = &own {
            forget_mark(own);
        }
        let mount = || overlay(&lower, own.as_deref());
        let overlay = match lent {
            true => on_files_as(NOBODY, mount)?,
            false => mount()?,
        };
        graft(&overlay, &place(at, owner, true)?)?;
        for path in lower
            .iter()
            .map(PathBuf::as_path)
            .chain([&*bench.join("own")])
        {
            if find(path)?.is_some() {
                // The overlay has its own hold on them.
                unmount(path, UnmountFlags::DETACH)?;
                unlinkat(CWD, path, AtFlags::REMOVEDIR)?;
            }
        }
        Ok(unlinkat(CWD, &bench, AtFlags::REMOVEDIR)?)
    }
}

/// Removes the mark by which the kernel refuses a layer that was mounted before
/// as `volatile`. Walls that could not be built to their end are built once more,
/// and nothing has run on it.
fn forget_mark(own: &Path) {
    let mark = own.join("work/work/incompat");
    let _ = std::fs::remove_dir_all(mark);
}

/// Mounts layers over each other, the newest first; `own`, which holds `upper`
/// and `work`, takes what is written.
///
/// Marks are in attributes that an ordinary user may set, whoever mounts it:
/// so there is one kind to be read later. `volatile`: what a run wrote is of no
/// worth after the machine crashed, and syncing it takes a quarter of a second.
pub(crate) fn overlay(lower: &[PathBuf], own: Option<&Path>) -> io::Result<OwnedFd> {
    let fs = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let lower: Vec<_> = lower.iter().map(|dir| dir.to_string_lossy()).collect();
    fsconfig_set_flag(&fs, "userxattr")?;
    match (own, lower.as_slice()) {
        (Some(own), _) => {
            fsconfig_set_string(&fs, "upperdir", own.join("upper"))?;
            fsconfig_set_string(&fs, "workdir", own.join("work"))?;
            fsconfig_set_flag(&fs, "volatile")?;
            // A file with several names stays one; where that cannot be, the
            // kernel does without.
            fsconfig_set_string(&fs, "index", "on")?;
        }
        // One alone is no overlay.
        (None, [only]) => return Ok(clone_tree(CWD, Path::new(&**only))?),
        (None, _) => {}
    }
    match lower.len() {
        // The kernel takes a text of 255 bytes; one by one since Linux 6.7.
        SEVERAL.. => {
            for dir in &lower {
                fsconfig_set_string(&fs, "lowerdir+", &**dir)?;
            }
        }
        _ => fsconfig_set_string(&fs, "lowerdir", lower.join(":"))?,
    }
    fsconfig_create(&fs)?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let read_only = match own {
        Some(_) => MountAttrFlags::empty(),
        None => MountAttrFlags::MOUNT_ATTR_RDONLY,
    };
    Ok(fsmount(
        &fs,
        FsMountFlags::FSMOUNT_CLOEXEC,
        flags | read_only,
    )?)
}
