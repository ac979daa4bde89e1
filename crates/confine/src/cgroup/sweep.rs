//! Removes control groups, also those that killed keepers left behind.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::rmdir;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, test_kill_process};

use super::places::Places;
use super::put;
use crate::members::started;

/// How long to wait for processes that were killed to be gone. It takes a few
/// milliseconds; a process stuck in the kernel may take forever.
const PATIENCE: Duration = Duration::from_millis(250);

/// Removes the groups of keepers that are gone, and ends what is in them.
/// Looks everywhere: the server may have been started elsewhere last time.
pub fn sweep_cgroups() {
    let places = Places::get();
    for root in places.roots() {
        sweep(root, places.namespace);
    }
}

fn sweep(root: &Path, namespace: u64) {
    let mut todo = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        for group in below(&dir) {
            match Name::of(&group) {
                None => todo.push(group),
                Some(name) if name.is_gone(namespace) => clear(&group),
                // What is below a living one is its own business.
                Some(_) => {}
            }
        }
    }
}

/// Ends what is inside and removes the group.
pub(super) fn clear(group: &Path) {
    // This process may be what a run left behind; it is not the one to judge.
    if holds_us(group) {
        return;
    }
    // Where this can be set, nothing can fork away from us.
    let _ = put(group, "pids.max", 0);
    if put(group, "cgroup.kill", 1).is_err() {
        below(group).iter().for_each(|group| clear(group));
        end_members(group);
    }
    remove_dir(group);
}

/// Says whether this process is in a group or below it.
fn holds_us(group: &Path) -> bool {
    members(group).contains(&process::id().cast_signed())
        || below(group).iter().any(|group| holds_us(group))
}

fn end_members(group: &Path) {
    let found: Vec<_> = members(group)
        .into_iter()
        .filter_map(|pid| {
            Some((
                pid,
                pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?,
            ))
        })
        .collect();
    // Once more, now that the pids cannot come to mean other processes.
    let inside = members(group);
    for (_, process) in found.iter().filter(|(pid, _)| inside.contains(pid)) {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}

/// Lists the pids in a group. Processes of other namespaces are not seen, or
/// are zero.
fn members(group: &Path) -> Vec<i32> {
    let list = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let pids = list.lines().filter_map(|pid| pid.parse().ok());
    pids.filter(|&pid| pid > 0).collect()
}

fn below(group: &Path) -> Vec<PathBuf> {
    fs::read_dir(group)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Removes a group with what was made below it, when the last process is gone.
pub(super) fn remove_dir(group: &Path) {
    let deadline = Instant::now() + PATIENCE;
    // v1 has nothing to wait for, so we ask, and ask less and less often.
    let mut pause = Duration::from_micros(100);
    while rmdir(group) == Err(Errno::BUSY) && Instant::now() < deadline {
        below(group).iter().for_each(|group| remove_dir(group));
        thread::sleep(pause);
        pause *= 2;
    }
}

/// What a group is called: `weighlock-<keeper>-<its start>-<namespace>-<number>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    keeper: u32,
    /// In clock ticks since boot: with the pid, the keeper's identity.
    started: u64,
    /// The PID namespace that `keeper` is a number of. In another one, we
    /// could not tell the living from the dead.
    namespace: u64,
    /// One keeper may make several groups.
    number: u32,
}

impl Name {
    /// Returns a name that this process has not used yet.
    pub(super) fn next(namespace: u64) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Some(Self {
            keeper: process::id(),
            started: started(process::id())?,
            namespace,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Returns what the name of a group says, if it is one of ours.
    pub(super) fn of(group: &Path) -> Option<Self> {
        let text = group.file_name()?.to_str()?;
        let mut fields = text.strip_prefix("weighlock-")?.split('-');
        let name = Self {
            keeper: fields.next()?.parse().ok()?,
            started: fields.next()?.parse().ok()?,
            namespace: fields.next()?.parse().ok()?,
            number: fields.next()?.parse().ok()?,
        };
        // Nothing else is written exactly so.
        (name.to_string() == text).then_some(name)
    }

    fn is_gone(&self, namespace: u64) -> bool {
        self.namespace == namespace
            && match started(self.keeper) {
                Some(started) => started != self.started,
                None => !is_hidden(self.keeper),
            }
    }
}

/// Says whether a process is there although `/proc` does not show it, as with
/// `hidepid`.
fn is_hidden(pid: u32) -> bool {
    let there = |pid| test_kill_process(pid) != Err(Errno::SRCH);
    !Path::new(&format!("/proc/{pid}")).exists()
        && Pid::from_raw(pid.cast_signed()).is_some_and(there)
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            keeper,
            started,
            namespace,
            number,
        } = self;
        write!(f, "weighlock-{keeper}-{started}-{namespace}-{number}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_are_ours() {
        let name = Name::next(7).unwrap();
        let dir = Path::new("/x").join(name.to_string());
        assert_eq!(Name::of(&dir), Some(name));
        for other in [
            "weighlock",
            "weighlock-1-2-3",
            "weighlock-1-2-3-4-5",
            "weighlock-01-2-3-4",
            "weighlock-+1-2-3-4",
            "weighlock-1-2-3-x",
            "xweighlock-1-2-3-4",
        ] {
            assert_eq!(Name::of(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn the_living_and_the_unknown_are_not_gone() {
        let name = Name::next(7).unwrap();
        assert!(!name.is_gone(7));
        let reused = Name {
            started: name.started + 1,
            ..name
        };
        assert!(reused.is_gone(7));
        assert!(!reused.is_gone(8), "in another namespace");
        let nobody = Name {
            keeper: i32::MAX.cast_unsigned(),
            ..name
        };
        assert!(nobody.is_gone(7));
    }
}
