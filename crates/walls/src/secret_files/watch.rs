//! Has the kernel tell what appears below a directory.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::statfs;
use rustix::io::Errno;

use crate::effects::mounted_below;

/// What is told: names that appear, and directories that go elsewhere.
const TOLD: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW)
    .union(WatchFlags::EXCL_UNLINK);

/// File systems whose every change this kernel makes itself: ext, XFS, btrfs,
/// tmpfs, overlayfs, ZFS, F2FS, bcachefs. Others change behind its back.
const LOCAL: &[i64] = &[
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x794c_7630,
    0x2fc1_2fc1,
    0xf2f5_2010,
    0xca45_1a4e,
];

/// Bytes of events that are read at once.
const BUFFER: usize = 16 * 1024;

/// A name that has appeared, relative to the directory.
pub(super) struct Appeared {
    pub(super) path: PathBuf,
    pub(super) is_dir: bool,
}

/// The watched directories, relative.
pub(super) struct Watch {
    fd: OwnedFd,
    dirs: HashMap<i32, PathBuf>,
}

impl Watch {
    /// Begins to watch; `None` where the kernel would not tell everything.
    pub(super) fn new(dir: &Path) -> Option<Self> {
        if !is_local(dir) || mounted_below(dir).is_some() {
            return None;
        }
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        Some(Self {
            fd,
            dirs: HashMap::new(),
        })
    }

    /// Adds a directory. Returns whether all are watched.
    pub(super) fn add(&mut self, at: &Path, relative: &Path) -> bool {
        // The rest is for the user's other programs.
        if self.dirs.len() >= limit() / 4 {
            return false;
        }
        match inotify::add_watch(&self.fd, at, TOLD) {
            Ok(number) => {
                self.dirs.insert(number, relative.to_owned());
                true
            }
            // It is gone again, or nobody may look into it.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => true,
            Err(_) => false,
        }
    }

    /// Returns what has appeared; `None` where that cannot be said any more.
    pub(super) fn appeared(&mut self) -> Option<Vec<Appeared>> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&self.fd, &mut buffer);
        let mut appeared = vec![];
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Some(appeared),
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            let told = event.events();
            let is_dir = told.contains(ReadFlags::ISDIR);
            if told.contains(ReadFlags::IGNORED) {
                self.dirs.remove(&event.wd());
                continue;
            }
            // Watches go with a directory that is moved, and would tell of names
            // at a place that they are not at.
            let moved = is_dir && told.contains(ReadFlags::MOVED_FROM);
            if moved || told.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
                return None;
            }
            if !told.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                continue;
            }
            let dir = self.dirs.get(&event.wd())?;
            let name = event.file_name()?;
            appeared.push(Appeared {
                path: dir.join(OsStr::from_bytes(name.to_bytes())),
                is_dir,
            });
        }
    }
}

fn is_local(dir: &Path) -> bool {
    statfs(dir).is_ok_and(|stat| LOCAL.contains(&stat.f_type))
}

/// Watches that a user may have.
fn limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
        let limit = limit.ok().and_then(|limit| limit.trim().parse().ok());
        limit.unwrap_or(0)
    })
}
