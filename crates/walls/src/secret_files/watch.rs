//! Watches a directory tree for names that appear.

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

use crate::layers::find_mount_below;

/// The watched events: names that appear, and directories that move away.
const EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW)
    .union(WatchFlags::EXCL_UNLINK);

/// Magic numbers of file systems that only this kernel changes: ext, XFS, btrfs,
/// tmpfs, overlayfs, ZFS, F2FS, bcachefs. Other machines can change the others,
/// and the kernel reports no events for that.
const LOCAL_FILE_SYSTEMS: &[i64] = &[
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

/// A name that has appeared, relative to the watched tree.
pub(super) struct NewName {
    pub(super) path: PathBuf,
    pub(super) is_dir: bool,
}

/// An inotify instance for one directory tree.
pub(super) struct TreeWatch {
    fd: OwnedFd,
    /// The watched directories by watch descriptor, relative.
    dirs: HashMap<i32, PathBuf>,
}

impl TreeWatch {
    /// Begins to watch; `None` where the kernel would not report everything.
    pub(super) fn new(dir: &Path) -> Option<Self> {
        if !is_local(dir) || find_mount_below(dir).is_some() {
            return None;
        }
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        Some(Self {
            fd,
            dirs: HashMap::new(),
        })
    }

    /// Adds a directory. Returns whether every directory is watched.
    pub(super) fn add_directory(&mut self, at: &Path, relative: &Path) -> bool {
        // Leaves three quarters of them to the user's other programs.
        if self.dirs.len() >= watch_limit() / 4 {
            return false;
        }
        match inotify::add_watch(&self.fd, at, EVENTS) {
            Ok(number) => {
                self.dirs.insert(number, relative.to_owned());
                true
            }
            // It is gone again, or may not be read.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => true,
            Err(_) => false,
        }
    }

    /// Returns the names that have appeared; `None` where events were lost.
    pub(super) fn take_new(&mut self) -> Option<Vec<NewName>> {
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
            let events = event.events();
            let is_dir = events.contains(ReadFlags::ISDIR);
            if events.contains(ReadFlags::IGNORED) {
                self.dirs.remove(&event.wd());
                continue;
            }
            // Watches move with a directory, and would report names below its
            // old path.
            let moved = is_dir && events.contains(ReadFlags::MOVED_FROM);
            if moved || events.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
                return None;
            }
            if !events.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                continue;
            }
            let dir = self.dirs.get(&event.wd())?;
            let name = event.file_name()?;
            appeared.push(NewName {
                path: dir.join(OsStr::from_bytes(name.to_bytes())),
                is_dir,
            });
        }
    }
}

fn is_local(dir: &Path) -> bool {
    statfs(dir).is_ok_and(|stat| LOCAL_FILE_SYSTEMS.contains(&stat.f_type))
}

/// Returns how many watches the user may have.
fn watch_limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches");
        let limit = limit.ok().and_then(|limit| limit.trim().parse().ok());
        limit.unwrap_or(0)
    })
}
