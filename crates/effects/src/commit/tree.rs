//! A directory of the host, walked by descriptors.
//!
//! Every step is taken below the one before it, and through nothing but
//! directories, so that neither a link nor a mount nor a directory that was
//! swapped leads outside.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{CWD, Mode, OFlags, RawDir, ResolveFlags, fstat, openat, openat2};
use weighlock_confine::FileId;

use super::handle::{Handle, INSIDE};

/// The kernel takes 4096 bytes at once; longer paths are walked in pieces.
const MOST_BYTES: usize = 4000;

/// Only these are ever walked through.
const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

pub(crate) struct Tree {
    root: Rc<OwnedFd>,
    /// The directory that was asked for last: changes come sorted.
    last: Option<(PathBuf, Rc<OwnedFd>)>,
}

/// A name in an open directory.
#[derive(Clone)]
pub(crate) struct Spot {
    pub(crate) dir: Rc<OwnedFd>,
    pub(crate) name: OsString,
}

impl Tree {
    /// Opens a directory, to which no link may lead.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let root = openat2(CWD, path, DIRECTORY, Mode::empty(), resolve)?;
        Ok(Self::at(Rc::new(root)))
    }

    pub(crate) fn at(root: Rc<OwnedFd>) -> Self {
        Self { root, last: None }
    }

    pub(crate) fn id(&self) -> io::Result<FileId> {
        let stat = fstat(&self.root)?;
        Ok(FileId {
            device: stat.st_dev,
            inode: stat.st_ino,
        })
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
        let (mut dir, rest) = match &self.last {
            Some((known, fd)) => match path.strip_prefix(known) {
                Ok(rest) => (Rc::clone(fd), rest),
                Err(_) => (Rc::clone(&self.root), path),
            },
            None => (Rc::clone(&self.root), path),
        };
        for piece in pieces(rest) {
            dir = Rc::new(openat2(&dir, &piece, DIRECTORY, Mode::empty(), INSIDE)?);
        }
        self.last = Some((path.to_owned(), Rc::clone(&dir)));
        Ok(dir)
    }

    /// Takes hold of what is at a path.
    pub(crate) fn handle(&mut self, path: &Path) -> io::Result<Option<Handle>> {
        self.spot(path)?.handle()
    }

    /// Walks anew from here on: directories may have been replaced.
    pub(crate) fn forget(&mut self) {
        self.last = None;
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

    /// Takes hold of what is surely there.
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

fn pieces(path: &Path) -> Vec<PathBuf> {
    let mut pieces: Vec<PathBuf> = Vec::new();
    for part in path {
        match pieces.last_mut() {
            Some(piece) if piece.as_os_str().len() + part.len() < MOST_BYTES => piece.push(part),
            _ => pieces.push(part.into()),
        }
    }
    pieces
}
