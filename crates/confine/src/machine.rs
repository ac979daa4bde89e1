//! What the whole machine has done so far, as the kernel counts it.
//!
//! A run has written no more than the machine has, nor taken more memory, nor
//! started more. So one who reads these counts can tell for all runs in which
//! nothing seems to happen that there is nothing to see.

use std::fs;

use serde::{Deserialize, Serialize};

/// Counts that only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Bytes that were written or are about to be; most count as both.
    pub(crate) written_bytes: u64,
    /// Memory that was handed out, for files too.
    pub(crate) allocated_bytes: u64,
    /// The number of the newest process or thread, which begins again when all
    /// numbers were used.
    pub(crate) newest: u64,
}

/// When a run in which nothing happens is worth a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alarm {
    /// How it was when nothing happened in the run.
    pub(crate) since: Machine,
    /// How much more there must be, of any of it.
    pub(crate) room: Machine,
}

impl Machine {
    /// Reads the counts; nothing if the kernel does not tell.
    pub fn now() -> Option<Self> {
        let counts = fs::read_to_string("/proc/vmstat").ok()?;
        let load = fs::read_to_string("/proc/loadavg").ok()?;
        let newest = load.split_ascii_whitespace().next_back()?;
        Self::of(&counts, newest.parse().ok()?)
    }

    fn of(counts: &str, newest: u64) -> Option<Self> {
        let page = rustix::param::page_size() as u64;
        let (mut dirtied, mut put_out, mut allocated) = (None, None, None);
        for line in counts.lines() {
            let (name, count) = line.split_once(' ')?;
            let count = || count.parse::<u64>().ok();
            match name {
                // What goes through the page cache, and what goes past it.
                "nr_dirtied" => dirtied = count(),
                "pgpgout" => put_out = count(),
                // One for each kind of memory.
                _ if name.starts_with("pgalloc_") => {
                    allocated = Some(allocated.unwrap_or(0) + count()?);
                }
                _ => {}
            }
        }
        Some(Self {
            written_bytes: dirtied? * page + put_out? * 1024,
            allocated_bytes: allocated? * page,
            newest,
        })
    }
}

impl Alarm {
    /// Whether it is time.
    pub fn is_due(&self, now: &Machine) -> bool {
        let Self { since, room } = self;
        let counts = [
            (since.written_bytes, now.written_bytes, room.written_bytes),
            (
                since.allocated_bytes,
                now.allocated_bytes,
                room.allocated_bytes,
            ),
            (since.newest, now.newest, room.newest),
        ];
        counts.into_iter().any(|(since, now, room)| {
            // Less than before: it has begun again.
            now.checked_sub(since).is_none_or(|more| more >= room)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_kernel_counts() {
        let before = Machine::now().expect("Linux has counted these for long");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let now = Machine::now().unwrap();
        assert!(now.allocated_bytes > before.allocated_bytes);
        assert_ne!(now.newest, before.newest);
        assert!(now.written_bytes >= before.written_bytes);
    }

    #[test]
    fn counts_are_found_among_others() {
        let page = rustix::param::page_size() as u64;
        let told = "nr_dirty 7\nnr_dirtied 2\npgpgin 9\npgpgout 3\npgalloc_dma32 4\n\
                    pgalloc_normal 5\npgfree 8\n";
        let counted = Machine {
            written_bytes: 2 * page + 3 * 1024,
            allocated_bytes: 9 * page,
            newest: 6,
        };
        assert_eq!(Machine::of(told, 6), Some(counted));
        assert_eq!(Machine::of("pgpgout 3\npgalloc_normal 5\n", 6), None);
    }

    #[test]
    fn an_alarm_is_due_when_any_count_has_grown_by_its_room() {
        let machine = |written_bytes, allocated_bytes, newest| Machine {
            written_bytes,
            allocated_bytes,
            newest,
        };
        let alarm = Alarm {
            since: machine(100, 100, 100),
            room: machine(10, u64::MAX, 5),
        };
        assert!(!alarm.is_due(&machine(100, 100, 100)));
        assert!(!alarm.is_due(&machine(109, 1 << 60, 104)));
        assert!(alarm.is_due(&machine(110, 100, 100)));
        assert!(alarm.is_due(&machine(100, 100, 105)));
        assert!(alarm.is_due(&machine(100, 100, 3)), "all numbers were used");
    }
}
