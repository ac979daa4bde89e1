//! Reads what stood at a path before, and what will stand there.
//!
//! Both trees can be altered by others at any time, and one of them was
//! written by the run itself. So files are opened by descriptors, without
//! following any link, and count only while they are what was seen.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2};
use rustix::io::Errno;
use weighlock_confine::FileId;

use crate::attributes::FileAttributes;
use crate::changes::{Change, Changes, Root, Source};
use crate::commit::ImageIndex;
use crate::error::Error;
use crate::node::{Node, NodeKind, Time};

/// Bytes read at once; more is no faster.
const PIECE_BYTES: usize = 64 * 1024;

/// An opened file that is still what was seen.
pub(crate) struct OpenedFile {
    file: File,
    path: PathBuf,
    is: Stamp,
}

/// What tells that a file is the same and was not written since.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    /// None for a copy, which has an inode of its own.
    inode: Option<u64>,
    size: u64,
    mtime: Time,
}

impl OpenedFile {
    /// Opens what stood there before; `None` where that was no file.
    pub(crate) fn before(changes: &Changes, change: &Change) -> Result<Option<Self>, Error> {
        let Some(node) = file(change.before.as_ref()) else {
            return Ok(None);
        };
        let root = root_of(changes, change)?;
        let path = change.from.as_ref().unwrap_or(&change.path).path();
        let mut is = Stamp::of(node);
        if let Source::Live(images) = &root.source {
            let image = image(images, change)?;
            is.inode = None;
            return Self::open(&open_own(images)?, &image, images.join(&image), is).map(Some);
        }
        let layer = change.built_on.and_then(|layer| root.below.get(layer));
        if let Some(at) = layer.filter(|at| at.is_dir()) {
            return Self::open(&open_own(at)?, path, at.join(path), is).map(Some);
        }
        if change.built_on.is_some() {
            // What it was built on was applied, and is in the live tree.
            is.inode = None;
        }
        Self::open(&open_live(root)?, path, root.live.join(path), is).map(Some)
    }

    /// Opens what will stand there; `None` where that is no file.
    pub(crate) fn after(changes: &Changes, change: &Change) -> Result<Option<Self>, Error> {
        let Some(node) = file(change.after.as_ref()) else {
            return Ok(None);
        };
        let root = root_of(changes, change)?;
        let mut is = Stamp::of(node);
        let (dir, at, path) = match &root.source {
            Source::Upper(dir) => (open_own(dir)?, dir, change.path.path().to_owned()),
            Source::Live(_) => (open_live(root)?, &root.live, change.path.path().to_owned()),
            Source::Images(dir) => {
                is.inode = None;
                (open_own(dir)?, dir, image(dir, change)?)
            }
        };
        Self::open(&dir, &path, at.join(&path), is).map(Some)
    }

    /// Its extended attributes.
    pub(crate) fn attributes(&self) -> std::io::Result<FileAttributes> {
        FileAttributes::read(&self.file)
    }

    /// Bytes it has.
    pub(crate) fn size(&self) -> u64 {
        self.is.size
    }

    /// Reads its first bytes, at most so many.
    pub(crate) fn head(&self, most: usize) -> Result<Vec<u8>, Error> {
        let mut head = vec![0; most];
        let mut filled = 0;
        while filled < most {
            match self.read_at(&mut head[filled..], filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        head.truncate(filled);
        Ok(head)
    }

    /// Reads all of it. The caller knows that it is not too much.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        self.pieces(|piece| {
            all.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(all)
    }

    /// Reads all of it, piece by piece, from its beginning each time.
    pub(crate) fn pieces(
        &self,
        mut each: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut buffer = vec![0; PIECE_BYTES];
        let mut at = 0;
        while at < self.is.size {
            let most = buffer.len().min((self.is.size - at) as usize);
            match self.read_at(&mut buffer[..most], at)? {
                0 => return Err(stale(&self.path)),
                read => {
                    each(&buffer[..read])?;
                    at += read as u64;
                }
            }
        }
        // Somebody may have written it while it was read.
        self.check()
    }

    fn open(dir: &OwnedFd, path: &Path, shown: PathBuf, is: Stamp) -> Result<Self, Error> {
        // A pipe that was put there meanwhile must not make us wait.
        let flags =
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(dir, path, flags, Mode::empty(), resolve);
        let content = Self {
            file: opened.map_err(|error| unopened(&shown, error))?.into(),
            path: shown,
            is,
        };
        content.check()?;
        Ok(content)
    }

    fn check(&self) -> Result<(), Error> {
        let stat = fstat(&self.file).map_err(|error| unread(&self.path, error.into()))?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if is_file && self.is.fits(&stat) {
            Ok(())
        } else {
            Err(stale(&self.path))
        }
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<usize, Error> {
        loop {
            match self.file.read_at(buffer, at) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => return read.map_err(|error| unread(&self.path, error)),
            }
        }
    }
}

/// The name of a before-image.
fn image(dir: &Path, change: &Change) -> Result<PathBuf, Error> {
    let number = change.image.ok_or_else(|| stale(change.path.path()))?;
    let index = ImageIndex::load(dir).map_err(|error| unread(dir, error))?;
    Ok(index.content(number).to_string().into())
}

fn file(node: Option<&Node>) -> Option<&Node> {
    node.filter(|node| node.kind == NodeKind::File)
}

fn root_of<'a>(changes: &'a Changes, change: &Change) -> Result<&'a Root, Error> {
    let root = changes.roots.get(change.root);
    root.ok_or_else(|| stale(change.path.path()))
}

/// Opens a directory of the host that must be a certain one.
fn open_live(root: &Root) -> Result<OwnedFd, Error> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let dir = openat2(CWD, &root.live, flags, Mode::empty(), resolve)
        .map_err(|error| unopened(&root.live, error))?;
    let stat = fstat(&dir).map_err(|error| unread(&root.live, error.into()))?;
    let is = FileId::from(&stat);
    if is == root.is {
        Ok(dir)
    } else {
        Err(stale(&root.live))
    }
}

/// Opens a directory of our own; the way to it is nobody else's.
fn open_own(dir: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, dir, flags, Mode::empty()).map_err(|error| unopened(dir, error))
}

impl Stamp {
    fn of(node: &Node) -> Self {
        Self {
            inode: Some(node.inode),
            size: node.size,
            mtime: node.mtime,
        }
    }

    fn fits(&self, stat: &Stat) -> bool {
        let mtime = Time {
            seconds: stat.st_mtime,
            nanos: stat.st_mtime_nsec as u32,
        };
        self.inode.is_none_or(|inode| inode == stat.st_ino)
            && self.size == stat.st_size as u64
            && self.mtime == mtime
    }
}

/// Whatever cannot be there where a file was seen is a change.
fn unopened(path: &Path, error: Errno) -> Error {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::XDEV => stale(path),
        _ => unread(path, error.into()),
    }
}

fn stale(path: &Path) -> Error {
    Error::Stale {
        path: path.to_owned(),
    }
}

fn unread(path: &Path, source: std::io::Error) -> Error {
    Error::Read {
        path: path.to_owned(),
        source,
    }
}
