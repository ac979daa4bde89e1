//! Makes and removes copy-on-write layers.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags,
    chmodat, fchmod, fchown, fsetxattr, fstat, futimens, mkdirat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::attributes::FileAttributes;
use crate::open::{names, open_dir, open_root};

/// One copy-on-write layer: a directory that holds `upper` and `work`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    dir: PathBuf,
}

impl Layer {
    /// Makes an empty layer in `dir`, which may be missing. Its top looks like
    /// the live directory `like`, as a run will see it instead.
    pub fn make(dir: &Path, like: &Path) -> io::Result<Self> {
        match mkdirat(CWD, dir, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let layer = Self { dir: dir.into() };
        mkdirat(CWD, layer.work(), Mode::RWXU)?;
        mkdirat(CWD, layer.upper(), Mode::RWXU)?;
        imitate(&open_root(&layer.upper())?, &open_root(like)?)?;
        Ok(layer)
    }

    /// Returns where all that a run changes is kept.
    pub fn upper(&self) -> PathBuf {
        self.dir.join("upper")
    }

    /// Returns the kernel's own scratch directory.
    pub fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    /// Removes everything, whatever rights, names and depth a run left there.
    /// An absent one is fine.
    pub fn remove(dir: &Path) -> io::Result<()> {
        let top = match open_root(dir) {
            Ok(top) => top,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        Removal::new(top)?.run()?;
        match unlinkat(CWD, dir, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Gives one directory what can be seen of another.
fn imitate(dir: &OwnedFd, like: &OwnedFd) -> io::Result<()> {
    let stat = fstat(like)?;
    for (name, value) in FileAttributes::read(like)?.of_file {
        // What begins like the layer's own marks would be taken for one.
        if !name.as_bytes().starts_with(b"user.overlay.") {
            fsetxattr(dir, &name, &value, XattrFlags::empty())?;
        }
    }
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        fchown(dir, Some(uid), Some(gid))?;
    }
    fchmod(dir, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    Ok(futimens(dir, &modified(&stat))?)
}

fn modified(stat: &Stat) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: stat.st_mtime,
            tv_nsec: stat.st_mtime_nsec as _,
        },
    }
}

/// Empties a directory. Each directory in it is moved to the top before it is
/// emptied in turn, so that no path gets too long and no more than two
/// descriptors are open, however deep a run went. Nobody else is there: the
/// layer is private and its run is over.
struct Removal {
    top: OwnedFd,
    todo: Vec<OsString>,
    moved: u64,
}

impl Removal {
    fn new(top: OwnedFd) -> io::Result<Self> {
        fchmod(&top, Mode::RWXU)?;
        let todo = names(&top)?;
        Ok(Self {
            top,
            todo,
            moved: 0,
        })
    }

    fn run(mut self) -> io::Result<()> {
        while let Some(name) = self.todo.pop() {
            if is_dir(&self.top, &name)? {
                self.empty(&name)?;
                unlinkat(&self.top, &name, AtFlags::REMOVEDIR)?;
            } else {
                unlink(&self.top, &name)?;
            }
        }
        Ok(())
    }

    fn empty(&mut self, name: &OsStr) -> io::Result<()> {
        make_ours(&self.top, name)?;
        let Some(dir) = open_dir(&self.top, name)? else {
            return Ok(());
        };
        for name in names(&dir)? {
            if is_dir(&dir, &name)? {
                self.lift(&dir, &name)?;
            } else {
                unlink(&dir, &name)?;
            }
        }
        Ok(())
    }

    /// Moves a directory to the top, under a name that nothing has there.
    fn lift(&mut self, dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
        // Whoever may not write a directory may not move it elsewhere either.
        make_ours(dir, name)?;
        loop {
            self.moved += 1;
            let lifted = OsString::from(format!("removed-{}", self.moved));
            match renameat(dir, name, &self.top, &lifted) {
                Ok(()) => {
                    self.todo.push(lifted);
                    return Ok(());
                }
                // Left by a removal that was cut short.
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn make_ours(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if stat.st_mode & 0o700 != 0o700 {
        chmodat(dir, name, Mode::RWXU, AtFlags::empty())?;
    }
    Ok(())
}

fn is_dir(dir: impl AsFd, name: &OsStr) -> io::Result<bool> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn unlink(dir: impl AsFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
