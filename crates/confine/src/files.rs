//! Counts the files that a run on a copy makes, and minds how many more its
//! disks can take.
//!
//! No limit of the kernel holds the number of files, and none counts it for a
//! process. How many a whole file system has is cheap to ask, so the run's own
//! are counted only when everybody together has made more than it may.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, StatVfs, StatxFlags, openat, statvfs, statx,
};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::profile::{Mount, Profile, Writes};
use crate::watch::Exceeded;

/// One part in so many of a disk's inodes is kept for others: as much as ext4
/// keeps of its blocks.
const RESERVED: u64 = 20;

/// Time stamps of files come from a clock that is this much behind at most.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// Files of others that are looked past in a directory that several use, beside
/// twice as many as are allowed.
const PATIENCE: u64 = 100_000;

/// Directories within each other that are walked through: a descriptor is held
/// for each. Nobody but an attacker has more.
const DEEPEST: usize = 256;

/// What is known of the files that a run has made.
pub(crate) struct MadeFiles {
    places: Vec<WatchedDir>,
    limit: u64,
    /// Made by everybody on the disks of all places since the run began, not
    /// minus what they removed.
    grown: u64,
    /// The run's own are counted once `grown` is more than this.
    count_past: u64,
}

/// A directory in which a run can make files that outlive its processes.
struct WatchedDir {
    dir: PathBuf,
    /// Others make files there as well: only newer ones count.
    since: Option<SystemTime>,
    /// Inodes in use on its disk at the last look. None where another place is
    /// on the same disk, or the file system does not count.
    used: Option<u64>,
}

/// How a disk stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inodes {
    /// How many more files it can take.
    pub free: u64,
    /// How many it can have in all.
    pub all: u64,
}

impl Inodes {
    /// Looks at the disk of a path; nothing where files cannot run out.
    pub fn of(path: &Path) -> Option<Self> {
        statvfs(path).ok().as_ref().and_then(Self::told)
    }

    fn told(disk: &StatVfs) -> Option<Self> {
        (disk.f_files > 0).then_some(Self {
            free: disk.f_favail,
            all: disk.f_files,
        })
    }

    /// Whether only what is kept for others is left.
    pub fn are_short(&self) -> bool {
        self.free < self.all / RESERVED
    }
}

impl MadeFiles {
    /// Begins to count. Only runs on a copy are bounded: what somebody has
    /// allowed to write directly makes its files among everybody else's.
    pub(crate) fn new(profile: &Profile) -> Self {
        let mut places: Vec<WatchedDir> = layers(profile).map(WatchedDir::own).collect();
        if let Writes::Layered { shared, .. } = &profile.home_writes {
            places.extend(shared.iter().map(|(dir, _)| WatchedDir::shared(dir)));
        }
        let mut disks = vec![];
        for place in &mut places {
            let Ok(disk) = statvfs(&place.dir) else {
                continue;
            };
            if disk.f_files > 0 && !disks.contains(&disk.f_fsid) {
                disks.push(disk.f_fsid);
                place.used = Some(used(&disk));
            }
        }
        let limit = profile.limits.disk_files;
        Self {
            places,
            limit,
            grown: 0,
            count_past: limit,
        }
    }

    /// How many more may be made before it is worth a look. Everybody's count.
    pub(crate) fn room(&self) -> u64 {
        match self.places.is_empty() {
            true => u64::MAX,
            false => self.count_past.saturating_sub(self.grown),
        }
    }

    /// Returns which limit was met, and whether much has been made since the
    /// last look.
    pub(crate) fn look(&mut self, pids: &[u32]) -> (Option<Exceeded>, bool) {
        let before = self.grown;
        let mut uncounted = !self.places.is_empty();
        for place in &mut self.places {
            let Some(last) = place.used else {
                continue;
            };
            uncounted = false;
            let Ok(disk) = statvfs(&place.dir) else {
                continue;
            };
            let now = used(&disk);
            self.grown += now.saturating_sub(last);
            place.used = Some(now);
            if Inodes::told(&disk).is_some_and(|inodes| inodes.are_short()) {
                return (Some(Exceeded::FreeInodes), true);
            }
        }
        let busy = self.grown - before > self.limit / 64;
        if !uncounted && self.grown <= self.count_past {
            return (None, busy);
        }
        let made = self.count(pids);
        self.count_past = self.grown + self.limit.saturating_sub(made);
        ((made > self.limit).then_some(Exceeded::Files), busy)
    }

    /// Counts the run's own: those that have a name, and those that only a
    /// process holds open.
    fn count(&self, pids: &[u32]) -> u64 {
        let mut made = 0;
        for place in &self.places {
            let left = self.limit.saturating_sub(made);
            // What a run has closed to us is counted as too much.
            made = match place.count(left) {
                Ok(more) => made.saturating_add(more),
                Err(_) => return u64::MAX,
            };
            if made > self.limit {
                return made;
            }
        }
        let open = pids.iter().map(|pid| {
            let list = fs::read_dir(format!("/proc/{pid}/fd"));
            list.map_or(0, |list| list.count() as u64)
        });
        made.saturating_add(open.sum())
    }
}

impl WatchedDir {
    fn own(layer: &Path) -> Self {
        Self {
            dir: layer.join("upper"),
            since: None,
            used: None,
        }
    }

    fn shared(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            since: Some(SystemTime::now() - CLOCK_STEP),
            used: None,
        }
    }

    /// Counts what is there, until it is more than `most`. Links are not
    /// followed, whatever the run does meanwhile.
    fn count(&self, most: u64) -> io::Result<u64> {
        let Some(top) = open(CWD, &self.dir)? else {
            return Ok(0);
        };
        // Others have left more there than is worth a walk.
        let patience = most.saturating_mul(2).saturating_add(PATIENCE);
        let (mut made, mut looked_at) = (0, 0);
        let mut above = vec![top];
        while let Some(dir) = above.last_mut() {
            let Some(entry) = dir.next() else {
                above.pop();
                continue;
            };
            let entry = entry?;
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            made += u64::from(self.is_new(dir.fd()?, name)?);
            looked_at += 1;
            if made > most || looked_at > patience {
                return Ok(made.max(looked_at));
            }
            if entry.file_type() == FileType::Directory
                && let Some(below) = open(dir.fd()?, name)?
            {
                above.push(below);
                if above.len() > DEEPEST {
                    return Err(io::ErrorKind::InvalidFilename.into());
                }
            }
        }
        Ok(made)
    }

    /// Whether the run may have made it.
    fn is_new(&self, dir: BorrowedFd<'_>, name: &CStr) -> io::Result<bool> {
        let Some(since) = self.since else {
            return Ok(true);
        };
        let times = StatxFlags::BTIME | StatxFlags::CTIME;
        let stat = match statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, times) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        // Not every file system knows when a file was made.
        let at = match StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME) {
            true => stat.stx_btime,
            false => stat.stx_ctime,
        };
        let seconds = u64::try_from(at.tv_sec).unwrap_or(0);
        let at = SystemTime::UNIX_EPOCH + Duration::new(seconds, at.tv_nsec);
        Ok(at >= since)
    }
}

/// Opens a directory; nothing if it is gone, or something else by now.
fn open(dir: BorrowedFd<'_>, path: impl Arg) -> io::Result<Option<Dir>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(dir, path, flags, Mode::empty()) {
        Ok(dir) => Ok(Some(Dir::new(dir)?)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The layers that take what a run writes.
fn layers(profile: &Profile) -> impl Iterator<Item = &Path> {
    let files = profile.files.iter().filter_map(|mount| match mount {
        Mount::Layered { layer, .. } => layer.as_deref(),
        _ => None,
    });
    let home = match &profile.home_writes {
        Writes::Layered { layer, .. } => Some(layer.as_path()),
        Writes::Kept | Writes::Refused => None,
    };
    files.chain(home)
}

fn used(disk: &StatVfs) -> u64 {
    disk.f_files.saturating_sub(disk.f_ffree)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(dir: &Path, since: Option<SystemTime>) -> WatchedDir {
        let dir = dir.to_owned();
        WatchedDir {
            dir,
            since,
            used: None,
        }
    }

    #[test]
    fn names_are_counted_at_any_depth_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        for name in ["a/1", "a/b/2", "3"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        std::os::unix::fs::symlink("/usr", dir.path().join("link")).unwrap();
        let place = place(dir.path(), None);
        assert_eq!(place.count(100).unwrap(), 6);
        assert!(place.count(2).unwrap() > 2);
    }

    #[test]
    fn where_others_make_files_only_newer_ones_count() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("old"), "").unwrap();
        let made = fs::metadata(dir.path().join("old"))
            .unwrap()
            .created()
            .unwrap();
        let place = place(dir.path(), Some(made + Duration::from_nanos(1)));
        assert_eq!(place.count(100).unwrap(), 0);
        while fs::metadata(dir.path().join("old"))
            .unwrap()
            .modified()
            .unwrap()
            <= made
        {
            fs::write(dir.path().join("old"), "again").unwrap();
        }
        fs::write(dir.path().join("new"), "").unwrap();
        assert_eq!(place.count(100).unwrap(), 1);
    }

    #[test]
    fn what_is_deeper_than_anybody_goes_counts_as_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let deep: PathBuf = std::iter::repeat_n("d", DEEPEST + 1).collect();
        fs::create_dir_all(dir.path().join(deep)).unwrap();
        assert!(place(dir.path(), None).count(u64::MAX / 4).is_err());
    }
}
