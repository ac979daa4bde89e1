//! Directories of the host as a run may write to them: through layers.

use std::borrow::Cow;
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, mkdirat, unlinkat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount, mount_change,
    unmount,
};

use super::mounts::{clone_tree, graft, lend};
use super::{NewRoot, ROOT, find, not_lent, open_dir, place};
use crate::privilege::{NOBODY, on_files_as};
use crate::profile::{Access, FileId, Identity, Mount};

/// So many layers do not fit into one text any more.
const SEVERAL: usize = 20;

/// Where layers are while they are put together; with a number.
const BENCH: &str = "/.l";

impl NewRoot {
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
            true => on_files_as(NOBODY, mount).map_err(no_lent_copy)?,
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

/// Shows root's own directory through a layer, both as another user's. Mounts
/// them over themselves first, so only in a mount namespace that is thrown away.
pub(crate) fn lent_overlay(dir: &Path, layer: &Path, lender: &OwnedFd) -> io::Result<OwnedFd> {
    let downstream = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", downstream)?;
    let lend_tree = |path: &Path| {
        let tree = clone_tree(CWD, path)?;
        lend(&tree, lender).map_err(|error| not_lent(&tree, &error))?;
        Ok::<_, io::Error>(tree)
    };
    // Both before either is mounted: one may lie in the other, and nothing is
    // lent twice.
    let trees = [(dir, lend_tree(dir)?), (layer, lend_tree(layer)?)];
    for (path, tree) in &trees {
        graft(tree, &open_dir(CWD, path)?)?;
    }
    let mount = || overlay(&[dir.to_owned()], Some(layer));
    on_files_as(NOBODY, mount).map_err(no_lent_copy)
}

/// Says what to do where the kernel lends a directory, but makes no copy of one
/// that is lent.
fn no_lent_copy(error: io::Error) -> io::Error {
    let too_old = !crate::kernel::is_at_least(5, 19);
    match error.raw_os_error() {
        Some(libc::EINVAL) if too_old => io::Error::other(
            "root owns it, and the kernel makes copies of what is lent to another user since \
             Linux 5.19; give it to an ordinary user (chown), or name one as `user` in the \
             sandbox's settings",
        ),
        _ => error,
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
/// Marks are always in attributes that an ordinary user may set, even when root
/// mounts: so there is one kind to be read later. `volatile`: what a run wrote
/// is of no worth after the machine crashed, and syncing it takes a quarter of
/// a second.
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
    // The kernel takes a text of 255 bytes here; one by one since Linux 6.7.
    let set = match lower.len() {
        SEVERAL.. => {
            { lower.iter() }.try_for_each(|dir| fsconfig_set_string(&fs, "lowerdir+", &**dir))
        }
        _ => fsconfig_set_string(&fs, "lowerdir", lower.join(":")),
    };
    match set.and_then(|()| fsconfig_create(&fs)) {
        Err(Errno::INVAL) if lower.len() >= SEVERAL => return by_options(&lower, own),
        done => done?,
    }
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

/// The same before Linux 6.7: `mount` takes a whole page of text, and wants a
/// place, which is made beside the layers for a moment.
fn by_options(lower: &[Cow<'_, str>], own: Option<&Path>) -> io::Result<OwnedFd> {
    let newest = lower.first().ok_or(io::ErrorKind::InvalidInput)?;
    let at = Path::new(&**newest).with_file_name("all");
    let mut options = format!("userxattr,lowerdir={}", lower.join(":"));
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
    match own.map(Path::display) {
        Some(own) => {
            options += &format!(",upperdir={own}/upper,workdir={own}/work,volatile,index=on");
        }
        None => flags |= MountFlags::RDONLY,
    }
    let options = CString::new(options)?;
    mkdirat(CWD, &at, Mode::RWXU)?;
    let mounted = mount("overlay", &at, "overlay", flags, Some(options.as_c_str()));
    let tree = mounted.and_then(|()| {
        let tree = clone_tree(CWD, &at);
        unmount(&at, UnmountFlags::DETACH)?;
        tree
    });
    unlinkat(CWD, &at, AtFlags::REMOVEDIR)?;
    Ok(tree?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::{Access, accessat};

    use super::*;
    use crate::privilege::is_root;
    use crate::probe::{attempt, probe_layer};
    use crate::root::failed;

    #[test]
    fn a_layer_is_tried_as_a_run_would_have_it() {
        if !is_root() {
            return weighlock_testing::not_as_this_user("only root lends its files");
        }
        let dir = std::env::temp_dir().join(format!("weighlock-lent-{}", std::process::id()));
        let layer = dir.join("layer");
        for name in ["live", "layer/upper", "layer/work"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        let lent = probe_layer(&dir.join("live"), &layer, true);
        // No file system of the kernel's own can be lent.
        let not_lent = probe_layer(Path::new("/sys/class"), &layer, true);
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(lent, Ok(()));
        let why = not_lent.unwrap_err();
        assert!(why.contains("cannot lend it to another user"), "{why}");
    }

    #[test]
    fn many_layers_fit_into_one_text() {
        let dir = std::env::temp_dir().join(format!("weighlock-layers-{}", std::process::id()));
        let layers: Vec<_> = (0..40).map(|number| dir.join(number.to_string())).collect();
        for (number, layer) in layers.iter().enumerate() {
            fs::create_dir_all(layer).unwrap();
            fs::write(layer.join(format!("file-{number}")), "").unwrap();
        }
        for name in ["upper", "work"] {
            fs::create_dir_all(dir.join("own").join(name)).unwrap();
        }
        let lower: Vec<_> = layers.iter().map(|dir| dir.to_string_lossy()).collect();
        let found = attempt(libc::CLONE_NEWNS, || {
            let tree = by_options(&lower, Some(&dir.join("own")));
            let tree = tree.map_err(failed("mount them"))?;
            let seen = (0..40).filter(|number| {
                let name = format!("file-{number}");
                accessat(&tree, name, Access::EXISTS, AtFlags::empty()).is_ok()
            });
            Ok(seen.count().to_string())
        });
        // The kernel leaves directories that not even their owner may look into.
        for shut in ["", "incompat", "incompat/volatile"] {
            let shut = dir.join("own/work/work").join(shut);
            let _ = fs::set_permissions(shut, fs::Permissions::from_mode(0o700));
        }
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(found.unwrap(), "40");
    }
}
