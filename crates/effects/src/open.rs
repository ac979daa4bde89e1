//! Opens directories without following links, and lists what is in them.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, RawDir, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// Bytes of names that are asked for at once; the C library asks for as many.
const LISTED: usize = 32 * 1024;

/// The kernel takes paths of 4,095 bytes; a name has 255 at the most.
const AT_ONCE: usize = 4000;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a directory by its whole path, which leads through no link.
pub(crate) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(CWD, path, DIRECTORY, Mode::empty(), resolve)?)
}

/// Opens a directory below another. `None` where there is no plain way to it:
/// something is missing, or a link or another file system is in between.
pub(crate) fn open_below(root: impl AsFd, path: &Path) -> io::Result<Option<OwnedFd>> {
    // The whole path anew for each directory, so that no tree is so deep that
    // it takes all descriptors.
    if path.as_os_str().len() <= AT_ONCE {
        return step(root, itself(path));
    }
    let mut parts = path.components();
    let half = parts.clone().count() / 2;
    let first: PathBuf = parts.by_ref().take(half).collect();
    match open_below(root, &first)? {
        Some(middle) => open_below(middle, parts.as_path()),
        None => Ok(None),
    }
}

fn step(dir: impl AsFd, path: &Path) -> io::Result<Option<OwnedFd>> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    present(openat2(dir, path, DIRECTORY, Mode::empty(), resolve))
}

/// Opens the directory of this name, if it is one.
pub(crate) fn open_dir(dir: impl AsFd, name: &OsStr) -> io::Result<Option<OwnedFd>> {
    present(openat(dir, name, DIRECTORY, Mode::empty()))
}

/// Opens the regular file of this name for reading, if it is one.
pub(crate) fn open_file(dir: impl AsFd, name: &OsStr) -> io::Result<Option<OwnedFd>> {
    // A pipe that took its place meanwhile must not make us wait.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    present(openat(dir, name, flags, Mode::empty()))
}

/// Returns all names in a directory that was just opened.
pub(crate) fn names(dir: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut buffer = Vec::with_capacity(LISTED);
    let mut listing = RawDir::new(dir, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

/// Returns whether an error says that we have no right to read.
pub(crate) fn is_forbidden(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn itself(path: &Path) -> &Path {
    if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    }
}

fn present(opened: rustix::io::Result<OwnedFd>) -> io::Result<Option<OwnedFd>> {
    match opened {
        Ok(fd) => Ok(Some(fd)),
        // The last is what an opened socket or a device without a driver says.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
