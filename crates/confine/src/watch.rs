//! Watches what no limit of the kernel holds for a whole tree.
//!
//! Where a cgroup holds memory and processes, the kernel tells when they are
//! exceeded. What is written to disks, and how many files are made there, is
//! only ever counted, and without a cgroup so is the rest: by looking, often at first and when much happens.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::statfs;
use serde::{Deserialize, Serialize};

use crate::asleep::Asleep;
use crate::files::MadeFiles;
use crate::machine::{Alarm, Machine};
use crate::members;
use crate::profile::{Limits, Profile};
use crate::tree::Tree;

/// Which limit a run has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exceeded {
    /// Memory.
    Memory,
    /// Processes.
    Processes,
    /// Bytes written to disks.
    Disk,
    /// Files made on a copy.
    Files,
    /// So few inodes are left on the disk of a copy that they are kept for
    /// others.
    FreeInodes,
}

/// The first look: most runs have ended by then.
const FIRST: Duration = Duration::from_millis(100);

/// The longest time between two looks. What can be filled in that time is
/// bounded by how fast disks and memory are.
const LONGEST: Duration = Duration::from_secs(2);

/// And while nothing inside has run since the last one and nobody minds the
/// machine for us: a sleeper may wake up and write for that long before it is
/// noticed.
const ASLEEP: Duration = Duration::from_secs(8);

/// Nothing must have run inside for so long before we rest. Programs that wait
/// for a moment, at their start say, are about to go on.
const STILL: Duration = Duration::from_secs(1);

/// While somebody does mind the machine: only for what its counts leave out,
/// which is little (what is written past the page cache to other machines).
const RESTING: Duration = Duration::from_secs(600);

/// A sleeper is worth a look when the whole machine has written this part of
/// what the run may still write. All of it would do, but for what short-lived
/// processes write, which is missed between two looks.
const PART: u64 = 8;

/// Memory that the kernel takes for a new file on a copy, about: an inode and a
/// name in the layer, and both again for what is seen of it.
const INODE_BYTES: u64 = 2048;

/// Looking takes one part in so many of the time at most.
const SHARE: u32 = 10;

/// What is known from looking.
pub(crate) struct Watch {
    limits: Limits,
    /// The kernel minds memory and processes.
    memory_is_held: bool,
    processes_are_held: bool,
    written: WriteCount,
    files: MadeFiles,
    /// Memory in use at the last look.
    memory: u64,
    /// Shared memory of the whole machine at the start; not known where the
    /// kernel minds memory.
    machine: u64,
    /// Processes at the last look.
    processes: u64,
    /// When that was, and the next is.
    looked: Instant,
    next: Instant,
    pause: Duration,
    /// Everything as it was at the last look.
    asleep: Option<Asleep>,
    /// Nothing has run since; what to wait for instead of looking.
    alarm: Option<Alarm>,
    /// Somebody waits for that, and will say so.
    resting: bool,
}

/// Bytes written, each counted once: what a process wrote counts as its
/// parent's when that has waited for it.
#[derive(Default)]
struct WriteCount {
    total: u64,
    /// By those that the first process inside has reaped.
    reaped: u64,
    /// By those whose parents do not care to wait.
    lost: u64,
    /// Seen before and not now: lost, or just about to be told.
    missing: u64,
}

impl Watch {
    pub(crate) fn new(profile: &Profile) -> Self {
        Self {
            limits: profile.limits,
            memory_is_held: false,
            processes_are_held: false,
            written: WriteCount::default(),
            files: MadeFiles::new(profile),
            memory: 0,
            machine: 0,
            processes: 0,
            looked: Instant::now(),
            next: Instant::now() + FIRST,
            pause: FIRST,
            asleep: None,
            alarm: None,
            resting: false,
        }
    }

    /// Notes who minds what.
    pub(crate) fn is_held(&mut self, memory: bool, processes: bool) {
        self.memory_is_held = memory;
        self.processes_are_held = processes;
        if !memory {
            self.machine = shared_on_machine();
        }
    }

    /// When to look next.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Records how many bytes the reaped processes wrote, as init reports.
    pub(crate) fn wrote(&mut self, bytes: u64) {
        self.written.reaped = self.written.reaped.max(bytes);
    }

    /// Looks, if it is time.
    pub(crate) fn look(&mut self, tree: &Tree) -> Option<Exceeded> {
        let began = Instant::now();
        if began < self.next {
            return None;
        }
        self.resting = false;
        self.alarm = self.alarm(began);
        if self.alarm.is_some() || self.asleep.as_ref().is_some_and(Asleep::is_still) {
            self.pause = (self.pause * 2).min(ASLEEP);
            self.next = began + self.pause;
            return None;
        }
        self.pause = self.pause.min(LONGEST);
        self.looked = began;
        self.asleep = Asleep::look();
        let pids = tree.pids();
        self.processes = pids.len() as u64;
        // Before a closer look, which takes long for so many.
        if !self.processes_are_held && self.is_crowded() {
            return Some(Exceeded::Processes);
        }
        let before = self.written.total;
        self.written
            .see(pids.iter().filter_map(|&pid| written(pid)).sum());
        let mut busy = self.written.total - before > self.limits.disk_bytes / 64;
        let (made, many) = self.files.look(&pids);
        busy |= many;
        let mut fat = false;
        if !self.memory_is_held {
            let grown = self.weigh(&pids);
            busy |= grown > self.limits.memory_bytes / 64;
            fat = self.memory > self.limits.memory_bytes
                && self.weigh_exactly(&pids) > self.limits.memory_bytes;
        }
        self.pause = if busy {
            FIRST
        } else {
            (self.pause * 2).min(LONGEST)
        };
        self.next = began + self.pause.max(began.elapsed() * SHARE);
        if self.written.total > self.limits.disk_bytes {
            Some(Exceeded::Disk)
        } else if fat {
            Some(Exceeded::Memory)
        } else {
            made
        }
    }

    /// Returns what to wait for if nothing has run inside for a while. The
    /// counts come first: what is done meanwhile is more than they say.
    fn alarm(&self, now: Instant) -> Option<Alarm> {
        let asleep = self.asleep.as_ref();
        let asleep = asleep.filter(|_| now >= self.looked + STILL)?;
        let since = Machine::now()?;
        let room = || Machine {
            written_bytes: self.limits.disk_bytes.saturating_sub(self.written.total) / PART,
            allocated_bytes: match self.memory_is_held {
                true => u64::MAX,
                false => self.limits.memory_bytes.saturating_sub(self.memory),
            }
            .min(self.files.room().saturating_mul(INODE_BYTES)),
            // Not everywhere does the kernel tell when it refuses to make more.
            newest: self.most_processes().saturating_sub(self.processes),
        };
        asleep.is_still().then(|| Alarm {
            since,
            room: room(),
        })
    }

    /// Leaves it to others to wait for what is returned, if there is something
    /// that can be waited for.
    pub(crate) fn rest(&mut self) -> Option<Alarm> {
        let alarm = self.alarm.take()?;
        self.resting = true;
        self.next = Instant::now() + RESTING;
        Some(alarm)
    }

    /// Looks again soon: something was heard from inside, or those who waited
    /// are gone.
    pub(crate) fn stir(&mut self) {
        if std::mem::take(&mut self.resting) {
            self.next = self.next.min(Instant::now() + LONGEST);
        }
    }

    /// Looks at once: what was waited for has come.
    pub(crate) fn wake(&mut self) {
        self.next = Instant::now();
    }

    /// The kernel refuses to make more: nearly all of them are there.
    fn is_crowded(&self) -> bool {
        self.processes >= self.most_processes()
    }

    fn most_processes(&self) -> u64 {
        (self.limits.processes * 9).div_ceil(10)
    }

    /// Finds out how much memory is used at most, and returns how much more
    /// that is than before.
    fn weigh(&mut self, pids: &[u32]) -> u64 {
        let resident = pids.iter().filter_map(|&pid| members::resident_bytes(pid));
        let now = resident.sum::<u64>() + self.shared(pids);
        let grown = now.saturating_sub(self.memory);
        self.memory = now;
        grown
    }

    /// Resident memory counts what is shared for each process; finding out
    /// what is shared takes long, and is worth it only when it matters.
    fn weigh_exactly(&self, pids: &[u32]) -> u64 {
        let all = |name| -> u64 {
            let sizes = pids.iter().filter_map(|&pid| proportional_bytes(pid, name));
            sizes.sum()
        };
        let mapped = all("Pss_Shmem:");
        // What is shared may be mapped as well.
        all("Pss:") - mapped + mapped.max(self.shared(pids))
    }

    /// Memory that is files: in the private directories, or without a name.
    fn shared(&self, pids: &[u32]) -> u64 {
        let files = pids.iter().find_map(|&pid| private_bytes(pid));
        // Looking at every descriptor takes long, too.
        let grown = shared_on_machine().saturating_sub(self.machine);
        let nameless = if grown > self.limits.memory_bytes / 2 {
            nameless_bytes(pids)
        } else {
            0
        };
        files.unwrap_or(0) + nameless
    }
}

impl WriteCount {
    fn see(&mut self, living: u64) {
        let now = living + self.reaped + self.lost;
        let missing = self.total.saturating_sub(now);
        // Twice missing is lost.
        let lost = missing.min(self.missing);
        self.lost += lost;
        self.missing = missing - lost;
        self.total = self.total.max(now + lost);
    }
}

fn written(pid: u32) -> Option<u64> {
    field(&format!("/proc/{pid}/io"), "write_bytes:")
}

fn proportional_bytes(pid: u32, name: &str) -> Option<u64> {
    // In KiB.
    Some(field(&format!("/proc/{pid}/smaps_rollup"), name)? * 1024)
}

fn shared_on_machine() -> u64 {
    field("/proc/meminfo", "Shmem:").unwrap_or(0) * 1024
}

/// What is in the memory file system that is the root of a process, if it has
/// one.
fn private_bytes(pid: u32) -> Option<u64> {
    let root = statfs(format!("/proc/{pid}/root/")).ok()?;
    let is_memory = root.f_type == libc::TMPFS_MAGIC;
    is_memory.then(|| (root.f_blocks - root.f_bfree) * root.f_bsize.cast_unsigned())
}

/// What is in files that have no name but a descriptor.
fn nameless_bytes(pids: &[u32]) -> u64 {
    let mut files = HashMap::new();
    for pid in pids {
        let list = fs::read_dir(format!("/proc/{pid}/fd"));
        for fd in list.into_iter().flatten().flatten() {
            let is_nameless = |name: &Path| name.as_os_str().as_bytes().starts_with(b"/memfd:");
            if fs::read_link(fd.path()).is_ok_and(|name| is_nameless(&name))
                && let Ok(file) = fs::metadata(fd.path())
            {
                files.insert((file.dev(), file.ino()), file.blocks() * 512);
            }
        }
    }
    files.values().sum()
}

fn field(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_counts_once_and_is_not_forgotten() {
        let mut written = WriteCount::default();
        let mut see = |living, reaped| {
            written.reaped = reaped;
            written.see(living);
            written.total
        };
        assert_eq!(see(10, 0), 10);
        // It ended, and we have not heard yet; then we have.
        assert_eq!(see(0, 0), 10);
        assert_eq!(see(0, 10), 10);
        assert_eq!(see(5, 10), 15);
        // It ended, and nobody waited for it.
        assert_eq!(see(0, 10), 15);
        assert_eq!(see(0, 10), 15);
        assert_eq!(see(5, 10), 20);
    }
}
