//! Watches what no limit of the kernel holds for a whole tree.
//!
//! Where a cgroup holds memory and processes, the kernel tells when they are
//! exceeded. What is written to disks is only ever counted, and without a
//! cgroup so is the rest: by looking, often at first and when much happens.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::statfs;
use serde::{Deserialize, Serialize};

use crate::members;
use crate::profile::Limits;
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
}

/// The first look: most runs have ended by then.
const FIRST: Duration = Duration::from_millis(100);

/// The longest time between two looks. What can be filled in that time is
/// bounded by how fast disks and memory are.
const LONGEST: Duration = Duration::from_secs(2);

/// Looking takes one part in so many of the time at most.
const SHARE: u32 = 10;

/// What is known from looking.
pub(crate) struct Watch {
    limits: Limits,
    /// The kernel minds memory and processes.
    pub(crate) memory_is_held: bool,
    pub(crate) processes_are_held: bool,
    written: Written,
    /// Memory in use at the last look.
    memory: u64,
    /// Shared memory of the whole machine at the start.
    machine: u64,
    next: Instant,
    pause: Duration,
}

/// Bytes written, each counted once: what a process wrote counts as its
/// parent's when that has waited for it.
#[derive(Default)]
struct Written {
    total: u64,
    /// By those that the first process inside has reaped.
    reaped: u64,
    /// By those whose parents do not care to wait.
    lost: u64,
    /// Seen before and not now: lost, or just about to be told.
    missing: u64,
}

impl Watch {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            memory_is_held: false,
            processes_are_held: false,
            written: Written::default(),
            memory: 0,
            machine: shared_on_machine(),
            next: Instant::now() + FIRST,
            pause: FIRST,
        }
    }

    /// When to look next.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Takes note of what the first process inside tells.
    pub(crate) fn wrote(&mut self, bytes: u64) {
        self.written.reaped = self.written.reaped.max(bytes);
    }

    /// Looks, if it is time.
    pub(crate) fn look(&mut self, tree: &Tree) -> Option<Exceeded> {
        let began = Instant::now();
        if began < self.next {
            return None;
        }
        let pids = tree.pids();
        // Before a closer look, which takes long for so many.
        if !self.processes_are_held && self.is_crowded(pids.len()) {
            return Some(Exceeded::Processes);
        }
        let before = self.written.total;
        self.written
            .see(pids.iter().filter_map(|&pid| written(pid)).sum());
        let mut busy = self.written.total - before > self.limits.disk_bytes / 64;
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
            None
        }
    }

    /// The kernel refuses to make more: nearly all of them are there.
    fn is_crowded(&self, processes: usize) -> bool {
        processes as u64 * 10 >= self.limits.processes * 9
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

impl Written {
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
        let mut written = Written::default();
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
