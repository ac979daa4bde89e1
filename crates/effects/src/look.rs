//! Looks at what stands at a name: by descriptor, without following links.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, FileType, Statx, StatxAttributes, StatxFlags, makedev, readlinkat, statx,
};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::attributes::FileAttributes;
use crate::node::{Node, NodeKind, Time};
use crate::open::{is_forbidden, open_dir, open_file};

/// Bytes of a file up to which its content is hashed whenever it is looked at.
/// Nearly all source files are smaller, and it takes about a millisecond.
pub(crate) const HASHED: u64 = 1024 * 1024;

/// Characters of a hash that are kept: 128 bits, which nobody finds a second
/// content for.
const KEPT: usize = 32;

/// How often something may change its kind while it is looked at.
const TRIES: usize = 16;

/// What stands at a name, in the live tree or in a layer.
#[derive(Debug)]
pub(crate) struct SeenFile {
    pub(crate) node: Node,
    /// What exactly it is.
    pub(crate) file_type: FileType,
    /// It stands for something deleted.
    pub(crate) whiteout: bool,
    /// A directory that hides what is below it.
    pub(crate) opaque: bool,
    /// It was copied up from below, from what has this mark.
    pub(crate) origin: Option<Vec<u8>>,
    /// It has attributes that would be a layer's marks outside.
    pub(crate) pretends: bool,
    /// Another file system is mounted there, which no run sees.
    pub(crate) mounted: bool,
    /// We may not read its content or attributes.
    pub(crate) unreadable: bool,
    /// The capabilities that it gives to who runs it.
    pub(crate) capability: Option<Vec<u8>>,
}

/// Whether to read content, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentMode {
    Hashed,
    Left,
}

/// Returns what stands at a name, or `None`.
pub(crate) fn look(
    dir: impl AsFd,
    name: &OsStr,
    content: ContentMode,
) -> io::Result<Option<SeenFile>> {
    for _ in 0..TRIES {
        let stat = match statx(
            &dir,
            name,
            AtFlags::SYMLINK_NOFOLLOW,
            StatxFlags::BASIC_STATS,
        ) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut seen = SeenFile::new(&stat);
        if seen.finish(&dir, name, content)? {
            return Ok(Some(seen));
        }
    }
    Err(io::Error::other("it changes all the time"))
}

/// Returns the hash of the rest of a reader.
pub(crate) fn hash(mut content: impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    // Small, as most files are: it is cleared for each of them.
    let mut buffer = [0; 16 * 1024];
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hasher.finalize(), KEPT)),
            Ok(bytes) => hasher.update(&buffer[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns the first characters of a hash.
pub(crate) fn hex(hash: &[u8], length: usize) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    let digits = hash
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.take(length).collect()
}

/// Returns when anything about an open file changed last.
pub(crate) fn ctime(file: impl AsFd) -> io::Result<Time> {
    let stat = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::CTIME)?;
    Ok(time(stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec))
}

/// Returns when the content of an open file changed last.
pub(crate) fn mtime(file: impl AsFd) -> io::Result<Time> {
    let stat = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::MTIME)?;
    Ok(time(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec))
}

impl SeenFile {
    fn new(stat: &Statx) -> Self {
        let file_type = FileType::from_raw_mode(stat.stx_mode.into());
        let device = (stat.stx_rdev_major, stat.stx_rdev_minor);
        Self {
            node: node(stat, kind(file_type)),
            file_type,
            whiteout: file_type == FileType::CharacterDevice && device == (0, 0),
            opaque: false,
            origin: None,
            pretends: false,
            mounted: stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
            unreadable: false,
            capability: None,
        }
    }

    /// Adds what the kernel's record does not say; `false` if something else
    /// took its place meanwhile.
    fn finish(&mut self, dir: impl AsFd, name: &OsStr, content: ContentMode) -> io::Result<bool> {
        let opened = match self.node.kind {
            NodeKind::File => open_file(dir, name),
            NodeKind::Directory => open_dir(dir, name),
            NodeKind::Link => return self.follow(dir, name),
            NodeKind::Special => return Ok(true),
        };
        match opened {
            Ok(Some(file)) => self.read(file, content),
            Ok(None) => Ok(false),
            Err(error) if is_forbidden(&error) => {
                self.unreadable = true;
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn follow(&mut self, dir: impl AsFd, name: &OsStr) -> io::Result<bool> {
        match readlinkat(dir, name, Vec::new()) {
            Ok(target) => {
                self.node.target = Some(OsStr::from_bytes(target.as_bytes()).into());
                Ok(true)
            }
            Err(Errno::NOENT | Errno::INVAL | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&mut self, file: OwnedFd, content: ContentMode) -> io::Result<bool> {
        let stat = statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
        if FileType::from_raw_mode(stat.stx_mode.into()) != self.file_type {
            return Ok(false);
        }
        self.node = node(&stat, self.node.kind);
        let attributes = FileAttributes::read(&file)?;
        self.opaque = attributes.opaque && self.node.kind == NodeKind::Directory;
        self.whiteout = attributes.whiteout && self.is_empty_file();
        self.node.attributes = attributes.hash();
        self.capability = attributes.capability().map(<[u8]>::to_vec);
        self.pretends = attributes.pretends;
        self.origin = attributes.origin;
        if content == ContentMode::Hashed && self.is_small_file() {
            self.node.content = Some(hash(File::from(file).take(HASHED))?);
        }
        Ok(true)
    }

    fn is_empty_file(&self) -> bool {
        self.node.kind == NodeKind::File && self.node.size == 0
    }

    fn is_small_file(&self) -> bool {
        self.node.kind == NodeKind::File && self.node.size <= HASHED
    }
}

fn node(stat: &Statx, kind: NodeKind) -> Node {
    Node {
        kind,
        mode: u32::from(stat.stx_mode) & 0o7777,
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        size: stat.stx_size,
        mtime: time(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
        ctime: time(stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
        device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
        inode: stat.stx_ino,
        links: stat.stx_nlink.into(),
        target: None,
        attributes: String::new(),
        content: None,
    }
}

fn kind(file_type: FileType) -> NodeKind {
    match file_type {
        FileType::RegularFile => NodeKind::File,
        FileType::Directory => NodeKind::Directory,
        FileType::Symlink => NodeKind::Link,
        _ => NodeKind::Special,
    }
}

fn time(seconds: i64, nanos: u32) -> Time {
    Time { seconds, nanos }
}
