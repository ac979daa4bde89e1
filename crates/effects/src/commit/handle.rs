//! One file, directory or link, held by the kernel and not by its name.
//!
//! So the file that was checked is the file that is changed, even if others
//! rename things meanwhile. A handle needs no right to read, so that files of
//! mode 0 can be held too; what has no call of its own for such handles goes
//! through `/proc/self/fd`.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Timespec, Timestamps,
    UTIME_OMIT, Uid, chmodat, chownat, fstat, linkat, openat2, readlinkat, utimensat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use weighlock_confine::FileId;

use super::attributes::Attributes;
use crate::node::{Node, NodeKind, Raw, Time};

/// No link, swapped directory or mount leads anywhere else.
pub(crate) const INSIDE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

pub(crate) struct Handle {
    fd: OwnedFd,
}

/// What is set on a file besides its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traits {
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: Time,
    pub(crate) attributes: Attributes,
}

impl Traits {
    pub(crate) fn of(node: &Node, attributes: Attributes) -> Self {
        Self {
            mode: node.mode,
            uid: node.uid,
            gid: node.gid,
            mtime: node.mtime,
            attributes,
        }
    }
}

impl Handle {
    /// Opens the file with this name. A symbolic link is opened itself.
    pub(crate) fn open(dir: impl AsFd, name: &OsStr) -> io::Result<Option<Self>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat2(dir, name, flags, Mode::empty(), INSIDE) {
            Ok(fd) => Ok(Some(Self { fd })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn id(&self) -> io::Result<FileId> {
        let stat = fstat(&self.fd)?;
        Ok(FileId::from(&stat))
    }

    /// Reads all but hashes.
    pub(crate) fn node(&self) -> io::Result<Node> {
        let stat = fstat(&self.fd)?;
        let mut node = node(&stat);
        if node.kind == NodeKind::Link {
            let target = readlinkat(&self.fd, "", vec![])?;
            let target: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(target.as_bytes());
            node.target = Some(target.into());
        }
        Ok(node)
    }

    pub(crate) fn attributes(&self) -> io::Result<Attributes> {
        match FileType::from_raw_mode(fstat(&self.fd)?.st_mode) {
            FileType::RegularFile | FileType::Directory => Attributes::read(&self.path()),
            _ => Ok(Attributes::default()),
        }
    }

    /// Opens it for more than holding.
    pub(crate) fn file(&self, how: &OpenOptions) -> io::Result<File> {
        how.open(self.path())
    }

    /// Gives a file one more name.
    pub(crate) fn link(&self, dir: impl AsFd, name: &OsStr) -> Result<(), Errno> {
        linkat(CWD, self.path(), dir, name, AtFlags::SYMLINK_FOLLOW)
    }

    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode);
        Ok(chmodat(CWD, self.path(), mode, AtFlags::empty())?)
    }

    pub(crate) fn set_mtime(&self, mtime: Time) -> io::Result<()> {
        let times = Timestamps {
            last_access: Timespec {
                tv_sec: 0,
                tv_nsec: UTIME_OMIT,
            },
            last_modification: Timespec {
                tv_sec: mtime.seconds,
                tv_nsec: mtime.nanos.into(),
            },
        };
        Ok(utimensat(CWD, self.path(), &times, AtFlags::empty())?)
    }

    /// Makes it what is asked, changing only what is different: an ordinary
    /// user may set some things only to what they are.
    pub(crate) fn set(&self, to: &Traits) -> io::Result<()> {
        let now = self.node()?;
        if (now.uid, now.gid) != (to.uid, to.gid) {
            self.set_owner(to.uid, to.gid)?;
        }
        if now.kind != NodeKind::Link {
            let old = self.attributes()?;
            if old != to.attributes {
                // Attributes of what is read-only cannot be written.
                self.set_mode(now.mode | 0o600)?;
                to.attributes.write(&self.path(), &old)?;
            }
            if self.node()?.mode != to.mode {
                self.set_mode(to.mode)?;
            }
        }
        self.set_mtime(to.mtime)
    }

    fn set_owner(&self, uid: u32, gid: u32) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        match chownat(CWD, self.path(), Some(uid), Some(gid), AtFlags::empty()) {
            // A group that one is not in is the directory's doing, not ours.
            Err(Errno::PERM) if !rustix::process::geteuid().is_root() => Ok(()),
            done => Ok(done?),
        }
    }

    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.fd.as_raw_fd())
    }
}

fn node(stat: &Stat) -> Node {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => NodeKind::File,
        FileType::Directory => NodeKind::Directory,
        FileType::Symlink => NodeKind::Link,
        _ => NodeKind::Special,
    };
    Node {
        kind,
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: match kind {
            NodeKind::File => stat.st_size.unsigned_abs(),
            _ => 0,
        },
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        device: stat.st_dev,
        inode: stat.st_ino,
        links: wide(stat.st_nlink),
        target: None::<Raw>,
        attributes: String::new(),
        content: None,
    }
}

fn time(seconds: i64, nanos: impl TryInto<u32>) -> Time {
    Time {
        seconds,
        nanos: nanos.try_into().unwrap_or(0),
    }
}

/// Counts of links are wider on some machines than on others.
fn wide(number: impl Into<u64>) -> u64 {
    number.into()
}
