//! A directory of the host, walked by descriptors.
//!
//! Every step is taken below the one before it, and through nothing but
//! directories, so that neither a link nor a mount nor a directory that was
//! swapped leads outside.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{CWD, Mode, OFlags, RawDir, ResolveFlags, fstat, openat, openat2};
use weighlock_confine::FileId;

use super::handle::{Handle, INSIDE};

/// The kernel takes 4096 bytes at once; longer paths are walked in pieces.
const MOST_BYTES: usize = 4000;

/// Directories on the way to the last one stay open, so that the next need not
/// be walked to from the root: one in so many levels.
const LEVELS: usize = 32;

/// And no more than so many, since a process may have 1024 files open.
const MOST_OPEN: usize = 128;

/// Only these are ever walked through.
const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

pub(crate) struct OpenDirs {
    root: Rc<OwnedFd>,
    /// The directory that was asked for last: changes come sorted.
    last: PathBuf,
    /// It and some above it, by how many bytes of its path lead there.
    open: Vec<(usize, Rc<OwnedFd>)>,
}

/// A name in an open directory.
#[derive(Clone)]
pub(crate) struct Spot {
    pub(crate) dir: Rc<OwnedFd>,
    pub(crate) name: OsString,
}

impl OpenDirs {
    /// Opens a directory, to which no link may lead.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let root = openat2(CWD, path, DIRECTORY, Mode::empty(), resolve)?;
        Ok(Self::at(Rc::new(root)))
    }

    pub(crate) fn at(root: Rc<OwnedFd>) -> Self {
        Self {
            root,
            last: PathBuf::new(),
            open: Vec::new(),
        }
    }

    pub(crate) fn id(&self) -> io::Result<FileId> {
        let stat = fstat(&self.root)?;
        Ok(FileId::from(&stat))
    }

    /// Returns where a path is. Its directories must be there, itself need not.
    pub(crate) fn spot(&mut self, path: &Path) -> io::Result<Spot> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(Spot {
                dir: Rc::clone(&self.root),
                name: ".".into(),
            });
        };
        Ok(Spot {
            dir: self.dir(parent)?,
            name: name.to_owned(),
        })
    }

    /// Opens a directory.
    pub(crate) fn dir(&mut self, path: &Path) -> io::Result<Rc<OwnedFd>> {
        let bytes = path.as_os_str().as_bytes();
        let last = self.last.as_os_str().as_bytes();
        let leads = |known: usize| {
            bytes.get(..known) == last.get(..known) && matches!(bytes.get(known), None | Some(b'/'))
        };
        while self.open.pop_if(|(known, _)| !leads(*known)).is_some() {}
        self.last = path.to_owned();
        let (mut known, mut dir) = match self.open.last() {
            Some((known, dir)) => (*known, Rc::clone(dir)),
            None => (0, Rc::clone(&self.root)),
        };
        while let Some((piece, end)) = piece(bytes, known) {
            dir = Rc::new(openat2(&dir, piece, DIRECTORY, Mode::empty(), INSIDE)?);
            known = end;
            if self.open.len() == MOST_OPEN {
                self.open.remove(0);
            }
            self.open.push((known, Rc::clone(&dir)));
        }
        Ok(dir)
    }

    /// Opens the file at a path.
    pub(crate) fn handle(&mut self, path: &Path) -> io::Result<Option<Handle>> {
        self.spot(path)?.handle()
    }

    /// Walks anew from here on: directories may have been replaced.
    pub(crate) fn forget(&mut self) {
        self.open.clear();
    }
}

impl Spot {
    pub(crate) fn new(dir: &Rc<OwnedFd>, name: impl AsRef<OsStr>) -> Self {
        Self {
            dir: Rc::clone(dir),
            name: name.as_ref().to_owned(),
        }
    }

    pub(crate) fn handle(&self) -> io::Result<Option<Handle>> {
        Handle::open(&self.dir, &self.name)
    }

    /// Opens the file here; that it is missing is an error.
    pub(crate) fn hold(&self) -> io::Result<Handle> {
        self.handle()?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(crate) fn id(&self) -> io::Result<Option<FileId>> {
        self.handle()?.map(|handle| handle.id()).transpose()
    }
}

/// Returns the names in a directory.
pub(crate) fn names(dir: &OwnedFd) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = openat(dir, ".", flags, Mode::empty())?;
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut entries = RawDir::new(dir, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(std::os::unix::ffi::OsStringExt::from_vec(name));
        }
    }
    Ok(names)
}

/// Returns the next part of a path to be walked, and where it ends.
fn piece(path: &[u8], from: usize) -> Option<(&[u8], usize)> {
    let slashes = path[from..]
        .iter()
        .take_while(|byte| **byte == b'/')
        .count();
    let rest = &path[from + slashes..];
    let ends = (1..=rest.len()).filter(|end| matches!(rest.get(*end), None | Some(b'/')));
    let mut ends = ends.take(LEVELS);
    let first = ends.next()?;
    let end = ends.take_while(|end| *end < MOST_BYTES).last();
    let end = end.unwrap_or(first);
    Some((&rest[..end], from + slashes + end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_walked_in_pieces() {
        assert_eq!(piece(b"", 0), None);
        assert_eq!(piece(b"a", 0), Some((&b"a"[..], 1)));
        assert_eq!(piece(b"a/b", 0), Some((&b"a/b"[..], 3)));
        assert_eq!(piece(b"a/b", 1), Some((&b"b"[..], 3)));
        assert_eq!(piece(b"a/b", 3), None);
        assert_eq!(piece(b"a/b/", 3), None);
        let deep = b"d/".repeat(40);
        assert_eq!(piece(&deep, 0).map(|found| found.1), Some(2 * LEVELS - 1));
        let wide = [&[b'x'; 250][..], b"/"].concat().repeat(20);
        let end = piece(&wide, 0).map(|found| found.1);
        assert_eq!(end, Some(15 * 251 - 1));
    }
}
