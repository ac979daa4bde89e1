//! The run's own file system: built from nothing, so that what nobody thought
//! of is not there.
//!
//! Most of it does not depend on the run and is built ahead of need. Nothing
//! is made on the host: the new root is a memory file system, and the host's
//! paths are opened below the old root, without following links.

mod layers;
mod mounts;

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, fstat, fstatfs, mkdirat,
    openat, openat2, readlinkat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount, mount_change,
    unmount,
};
use rustix::process::{chdir, fchdir, pivot_root, umask};

pub(crate) use self::layers::{lent_overlay, overlay};
use self::mounts::graft;
pub(crate) use self::mounts::{clone_tree, lend, restrict};
use crate::profile::{Access, FileId, Identity, Mount, Profile, Rung, Writes};
use crate::system::{
    DEVICES, HIDDEN, HOSTNAME, LINKS, PRIVATE, PROC_HIDDEN, PROC_READ_ONLY, SYSTEM,
};

/// Where the host's files are until the root is finished.
const OLD: &str = "/.old";

/// The kernel takes no more (`PID_MAX_LIMIT`).
const MOST_PIDS: u64 = 4 * 1024 * 1024;

/// An empty directory that is put over what must not be seen. It is removed
/// at the end; what was put over stays empty for ever then.
const EMPTY: &str = "/.empty";

/// The file that is put over `/etc/hostname`.
const NAME: &str = "/.name";

/// A file that nobody may open, for what must not be read. It goes the same
/// way as [`EMPTY`].
const CLOSED: &str = "/.closed";

/// A root under construction.
pub(crate) struct NewRoot {
    old: OwnedFd,
    /// Whether `/proc` shows only what is inside. Otherwise it is the host's.
    fresh_proc: bool,
    /// Takes the bound on processes. `None` where the kernel offers none for a
    /// PID namespace; other limits hold then.
    pid_max: Option<File>,
    /// Makes root's files the run's own while they are looked at from inside.
    lender: Option<OwnedFd>,
    /// What was in force before, and is again for the command.
    umask: Mode,
}

/// What could not be done, and why.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) what: String,
    pub(crate) error: io::Error,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot {}: {}", self.what, self.error)
    }
}

impl NewRoot {
    /// Builds what every run has. The caller is alone in a new mount namespace
    /// and may mount there.
    pub(crate) fn prepare(lender: Option<OwnedFd>) -> Result<Self, Failed> {
        let umask = umask(Mode::empty());
        mount_memory().map_err(failed("mount a memory file system"))?;
        let old = pivot().map_err(failed("make it the root (pivot_root)"))?;
        let mut root = Self {
            old,
            fresh_proc: false,
            pid_max: None,
            lender,
            umask,
        };
        for path in SYSTEM {
            root.show_system(Path::new(path))
                .map_err(failed(&format!("show {path}")))?;
        }
        root.make_dev().map_err(failed("make /dev"))?;
        root.make_proc().map_err(failed("make /proc"))?;
        for path in PRIVATE {
            root.make_private(Path::new(path))
                .map_err(failed(&format!("make {path}")))?;
        }
        for (path, target) in LINKS {
            symlinkat(*target, CWD, *path).map_err(failed(&format!("make {path}")))?;
        }
        mkdirat(CWD, EMPTY, Mode::empty()).map_err(failed("make an empty directory"))?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(CWD, CLOSED, flags, Mode::empty()).map_err(failed("make a closed file"))?;
        for path in HIDDEN {
            root.hide(Path::new(path))
                .map_err(failed(&format!("hide {path}")))?;
        }
        root.name_host().map_err(failed("show /etc/hostname"))?;
        Ok(root)
    }

    /// How strong walls with this root are.
    pub(crate) fn rung(&self) -> Rung {
        match self.fresh_proc {
            true => Rung::Full,
            false => Rung::SharedProc,
        }
    }

    /// Adds what the profile says, enters it, and shuts the door behind.
    /// Returns whether the PID namespace bounds the number of processes.
    pub(crate) fn finish(mut self, profile: &Profile) -> Result<bool, Failed> {
        let pid_max = self.pid_max.take();
        let bounded =
            pid_max.is_some_and(|file| bound_pids(file, profile.limits.processes).is_ok());
        let home = home(profile);
        let all: Vec<&Mount> = home.iter().chain(&profile.files).collect();
        for (index, mount) in all.iter().enumerate() {
            let at = mount.at();
            let may_make = covering(&all[..index], at).is_none_or(|cover| cover == profile.home);
            let done = match mount {
                Mount::Show { required, is, .. } => {
                    // Only a sandbox's own directory must be a certain one.
                    if is.is_some() && may_make {
                        self.close_way(&profile.home, at, profile.identity)
                            .map_err(failed(&format!("show {}", at.display())))?;
                    }
                    match self.show(mount, may_make.then_some(profile.identity)) {
                        Err(_) if !required => Ok(()),
                        done => done,
                    }
                }
                Mount::Layered { .. } => {
                    if may_make {
                        self.close_way(&profile.home, at, profile.identity)
                            .map_err(failed(&format!("show {}", at.display())))?;
                    }
                    self.show_layered(index, mount, may_make.then_some(profile.identity))
                }
                Mount::Guard { access, .. } => self.guard(at, *access),
                Mount::Hide { .. } => self.hide(at),
                Mount::Close { .. } => self.cover(at, CLOSED),
            };
            done.map_err(failed(&format!("show {}", at.display())))?;
        }
        if profile.home_writes == Writes::Refused {
            // Not before: what is shown in it needs places there.
            open_dir(CWD, &profile.home)
                .and_then(|home| {
                    restrict(&home, Access::Read, MountAttrFlags::MOUNT_ATTR_NODEV, false)
                })
                .map_err(failed("make the home directory read-only"))?;
        }
        enter(profile).map_err(failed(&format!("enter {}", profile.cwd.display())))?;
        self.close().map_err(failed("leave the host's files"))?;
        Ok(bounded)
    }

    fn close(self) -> io::Result<()> {
        umask(self.umask);
        drop(self.old);
        unmount(OLD, UnmountFlags::DETACH)?;
        unlinkat(CWD, OLD, AtFlags::REMOVEDIR)?;
        unlinkat(CWD, EMPTY, AtFlags::REMOVEDIR)?;
        unlinkat(CWD, CLOSED, AtFlags::empty())?;
        mount_change(
            "/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )?;
        let root = open_dir(CWD, Path::new("/"))?;
        restrict(&root, Access::Read, MountAttrFlags::MOUNT_ATTR_NODEV, false)
    }

    /// Shows a system directory as it is on the host: a directory read-only, a
    /// link as the same link. What the host does not have is left out.
    fn show_system(&self, path: &Path) -> io::Result<()> {
        let from = below(path);
        let stat = match statat(&self.old, from, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            let target = readlinkat(&self.old, from, vec![])?;
            if let Some(parent) = path.parent() {
                place(parent, Some(ROOT), true)?;
            }
            return Ok(symlinkat(target, CWD, path)?);
        }
        let tree = clone_tree(&self.old, from)?;
        restrict(&tree, Access::Read, MountAttrFlags::MOUNT_ATTR_NODEV, true)?;
        graft(&tree, &place(path, Some(ROOT), true)?)
    }

    fn make_dev(&self) -> io::Result<()> {
        place(Path::new("/dev/pts"), Some(ROOT), true)?;
        for path in DEVICES.iter().map(Path::new) {
            let tree = clone_tree(&self.old, below(path))?;
            restrict(&tree, Access::Write, MountAttrFlags::empty(), false)?;
            graft(&tree, &place(path, Some(ROOT), false)?)?;
        }
        let pts = fresh_devpts()?;
        graft(&pts, &place(Path::new("/dev/pts"), Some(ROOT), true)?)
    }

    /// Mounts a `/proc` that shows only what is inside. Where the host's own is
    /// masked, as in containers, the kernel refuses that; then the host's is
    /// shown, in which others can be seen but not looked into.
    fn make_proc(&mut self) -> io::Result<()> {
        let at = place(Path::new("/proc"), Some(ROOT), true)?;
        match fresh_proc() {
            Ok(proc) => {
                self.fresh_proc = true;
                // Opened now: the directory is about to become read-only.
                self.pid_max = open_pid_max(&proc).ok();
                graft(&proc, &at)?;
            }
            Err(Errno::PERM) => {
                let tree = clone_tree(&self.old, Path::new("proc"))?;
                restrict(&tree, Access::Write, MountAttrFlags::MOUNT_ATTR_NODEV, true)?;
                graft(&tree, &at)?;
            }
            Err(error) => return Err(error.into()),
        }
        for part in PROC_READ_ONLY {
            self.guard(&Path::new("/proc").join(part), Access::Read)?;
        }
        for part in PROC_HIDDEN {
            self.hide(&Path::new("/proc").join(part))?;
        }
        Ok(())
    }

    /// Shows our own name where programs look for the one of the machine.
    fn name_host(&self) -> io::Result<()> {
        let Some(there) = find(Path::new("/etc/hostname"))? else {
            return Ok(());
        };
        std::fs::write(NAME, format!("{HOSTNAME}\n"))?;
        rustix::fs::chmodat(CWD, NAME, Mode::from_raw_mode(0o444), AtFlags::empty())?;
        let tree = clone_tree(CWD, Path::new(NAME))?;
        restrict(&tree, Access::Read, MountAttrFlags::MOUNT_ATTR_NODEV, false)?;
        graft(&tree, &there)?;
        Ok(unlinkat(CWD, NAME, AtFlags::empty())?)
    }

    fn make_private(&self, path: &Path) -> io::Result<()> {
        let dir = place(path, Some(ROOT), true)?;
        rustix::fs::chmodat(CWD, path, Mode::from_raw_mode(0o1777), AtFlags::empty())?;
        // A mount of its own stays writable when the root no longer is.
        let tree = clone_tree(&dir, Path::new(""))?;
        graft(&tree, &dir)
    }

    /// Shows a file or directory of the host. A mount point that is missing is
    /// made for `owner`, if given.
    fn show(&self, mount: &Mount, owner: Option<Identity>) -> io::Result<()> {
        let Mount::Show {
            from,
            at,
            access,
            is,
            lent,
            ..
        } = mount
        else {
            return Ok(());
        };
        let (tree, is_dir) = self.take(from, *is, *access, *lent)?;
        graft(&tree, &place(at, owner, is_dir)?)
    }

    /// Takes a detached copy of something of the host. Returns whether it is a
    /// directory, too.
    fn take(
        &self,
        from: &Path,
        is: Option<FileId>,
        access: Access,
        lent: bool,
    ) -> io::Result<(OwnedFd, bool)> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let source = openat2(&self.old, below(from), flags, Mode::empty(), resolve)?;
        let stat = fstat(&source)?;
        if is.is_some_and(|is| is != FileId::from(&stat)) {
            return Err(io::Error::other("it changed meanwhile"));
        }
        let is_dir = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => true,
            FileType::RegularFile => false,
            // A socket or a device would be a way out.
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let tree = clone_tree(&source, Path::new(""))?;
        restrict(&tree, access, MountAttrFlags::MOUNT_ATTR_NODEV, true)?;
        if lent {
            let lender = self.lender.as_ref().ok_or(io::ErrorKind::Unsupported)?;
            lend(&tree, lender).map_err(|error| not_lent(&tree, &error))?;
        }
        Ok((tree, is_dir))
    }

    /// Makes what lies between the home directory and something shown in it
    /// read-only: nothing of it is the person's, and what is written there
    /// would be lost to them. Must come before that is shown.
    fn close_way(&self, home: &Path, at: &Path, owner: Identity) -> io::Result<()> {
        let Some(name) = at.strip_prefix(home).ok().and_then(|way| way.iter().next()) else {
            return Ok(());
        };
        let first = home.join(name);
        // Caches are in hidden directories, and Go's in `~/go`.
        let may_hold_caches = name == "go" || name.as_encoded_bytes().starts_with(b".");
        if first == at || may_hold_caches {
            return Ok(());
        }
        place(at, Some(owner), true)?;
        self.guard(&first, Access::Read)
    }

    /// Changes the access to a visible part.
    fn guard(&self, at: &Path, access: Access) -> io::Result<()> {
        let Some(there) = find(at)? else {
            return Ok(());
        };
        let tree = clone_tree(&there, Path::new(""))?;
        restrict(&tree, access, MountAttrFlags::MOUNT_ATTR_NODEV, true)?;
        graft(&tree, &there)
    }

    fn hide(&self, at: &Path) -> io::Result<()> {
        self.cover(at, "/dev/null")
    }

    /// Puts something over a file, or an empty directory that nobody may enter
    /// over a directory. It is read-only, so that its owner cannot change its
    /// mode either.
    fn cover(&self, at: &Path, file: &str) -> io::Result<()> {
        let Some(there) = find(at)? else {
            return Ok(());
        };
        let is_dir = FileType::from_raw_mode(fstat(&there)?.st_mode) == FileType::Directory;
        let cover = if is_dir { EMPTY } else { file };
        let tree = clone_tree(CWD, Path::new(cover))?;
        restrict(
            &tree,
            Access::Read,
            MountAttrFlags::MOUNT_ATTR_NOEXEC,
            false,
        )?;
        graft(&tree, &there)
    }
}

impl Mount {
    fn at(&self) -> &Path {
        match self {
            Self::Show { at, .. }
            | Self::Layered { at, .. }
            | Self::Guard { at, .. }
            | Self::Close { at }
            | Self::Hide { at } => at,
        }
    }
}

/// How the private home directory is seen. It can be written until all that is
/// shown in it has a place there.
fn home(profile: &Profile) -> Vec<Mount> {
    let (from, at) = (&profile.home_layer, &profile.home);
    let show = |from: &PathBuf, at: &PathBuf, required| Mount::Show {
        from: from.clone(),
        at: at.clone(),
        access: Access::Write,
        is: None,
        lent: false,
        required,
    };
    match &profile.home_writes {
        Writes::Kept | Writes::Refused => vec![show(from, at, true)],
        Writes::Layered {
            below,
            layer,
            shared,
        } => {
            let home = Mount::Layered {
                from: from.clone(),
                at: at.clone(),
                is: None,
                lent: false,
                below: below.clone(),
                layer: Some(layer.clone()),
            };
            let shared = shared.iter().map(|(from, at)| show(from, at, false));
            [home].into_iter().chain(shared).collect()
        }
    }
}

/// Root itself, which makes what belongs to nobody in particular.
const ROOT: Identity = Identity { uid: 0, gid: 0 };

/// Mounts the memory file system that becomes the root, and goes there.
pub(crate) fn mount_memory() -> io::Result<()> {
    // What is mounted on the host until the order comes is to be seen, and what
    // is unmounted there not to be held.
    mount_change(
        "/",
        MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC,
    )?;
    // Any directory that is surely there will do for a moment.
    let options = CString::new("mode=755,size=25%,nr_inodes=1m").expect("no NUL byte");
    mount(
        "tmpfs",
        "/proc",
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        Some(options.as_c_str()),
    )?;
    Ok(chdir("/proc")?)
}

/// Makes the working directory the root and returns what was the root before.
pub(crate) fn pivot() -> io::Result<OwnedFd> {
    mkdirat(CWD, below(Path::new(OLD)), Mode::RWXU)?;
    pivot_root(".", below(Path::new(OLD)))?;
    chdir("/")?;
    open_dir(CWD, Path::new(OLD))
}

pub(crate) fn fresh_devpts() -> io::Result<OwnedFd> {
    let pts = fsopen("devpts", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_flag(&pts, "newinstance")?;
    fsconfig_set_string(&pts, "ptmxmode", "0666")?;
    fsconfig_set_string(&pts, "mode", "0620")?;
    // Terminals are few on a machine.
    fsconfig_set_string(&pts, "max", "256")?;
    fsconfig_create(&pts)?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&pts, FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}

pub(crate) fn fresh_proc() -> rustix::io::Result<OwnedFd> {
    let proc = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&proc)?;
    let flags = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&proc, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

/// Goes where the command starts, and makes sure that it is the right place.
pub(crate) fn enter(profile: &Profile) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let dir = openat2(CWD, &profile.cwd, flags, Mode::empty(), resolve)?;
    let found = FileId::from(&fstat(&dir)?);
    if profile.cwd_is.is_some_and(|is| is != found) {
        return Err(io::Error::other("it changed meanwhile"));
    }
    Ok(fchdir(dir)?)
}

/// The mount point for `at`, whatever is there. With an owner, what is missing
/// of it is made, and what is in the way of a directory is taken away.
fn place(at: &Path, owner: Option<Identity>, is_dir: bool) -> io::Result<OwnedFd> {
    if let Some(there) = find(at)? {
        return Ok(there);
    }
    let owner = owner.ok_or(io::ErrorKind::NotFound)?;
    let mut names: Vec<_> = at
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let file = if is_dir { None } else { names.pop() };
    let mut dir = open_dir(CWD, Path::new("/"))?;
    for name in names {
        dir = step(&dir, Path::new(name), owner)?;
    }
    let Some(name) = file else {
        return Ok(dir);
    };
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    openat(&dir, name, flags, Mode::from_raw_mode(0o444))?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(&dir, name, flags, Mode::empty())?)
}

fn step(dir: &OwnedFd, name: &Path, owner: Identity) -> io::Result<OwnedFd> {
    match open_dir(dir.as_fd(), name) {
        Ok(next) => return Ok(next),
        // A run may have put a link here, to lead the next one astray.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            unlinkat(dir, name, AtFlags::empty())?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    mkdirat(dir, name, Mode::from_raw_mode(0o755))?;
    let made = open_dir(dir.as_fd(), name)?;
    if owner != ROOT && rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        chownat(&made, "", Some(uid), Some(gid), AtFlags::EMPTY_PATH)?;
    }
    Ok(made)
}

/// Opens what is at a path inside, if its parts are what they seem.
fn find(at: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, at, flags, Mode::empty(), resolve) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn open_dir(dir: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(dir, path, flags, Mode::empty())?)
}

/// Opens the bound on processes of our PID namespace, below a fresh `/proc`.
/// Before Linux 6.14 that file holds the bound of the whole machine, which is
/// not ours to change and which only root could open.
pub(crate) fn open_pid_max(proc: &OwnedFd) -> io::Result<File> {
    if !crate::kernel::is_at_least(6, 14) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(proc, "sys/kernel/pid_max", flags, Mode::empty())?;
    Ok(file.into())
}

/// Bounds how many processes and threads there can be inside.
fn bound_pids(mut file: File, processes: u64) -> io::Result<()> {
    // Once the numbers have been used up, the kernel gives out those below
    // this no more.
    const RESERVED: u64 = 300;
    let most = processes.saturating_add(RESERVED).clamp(301, MOST_PIDS);
    file.write_all(most.to_string().as_bytes())
}

/// Says what to do where a file system has no idmapped mounts.
fn not_lent(tree: &OwnedFd, error: &io::Error) -> io::Error {
    let in_memory = fstatfs(tree).is_ok_and(|found| found.f_type == libc::TMPFS_MAGIC);
    let since = match in_memory {
        true => "a tmpfs can since Linux 6.3: put it on a disk, ",
        false => "",
    };
    io::Error::other(format!(
        "root owns it, and its file system cannot lend it to another user ({error}); {since}give \
         it to an ordinary user (chown), or name one as `user` in the sandbox's settings"
    ))
}

/// The innermost of these mounts that `at` lies in.
fn covering(mounts: &[&Mount], at: &Path) -> Option<PathBuf> {
    mounts
        .iter()
        .map(|mount| mount.at())
        .filter(|cover| at.starts_with(cover))
        .max_by_key(|cover| cover.components().count())
        .map(Path::to_owned)
}

/// A path as it is below a root.
fn below(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

pub(crate) fn failed<E: Into<io::Error>>(what: &str) -> impl FnOnce(E) -> Failed {
    let what = what.to_owned();
    move |error| Failed {
        what,
        error: error.into(),
    }
}
