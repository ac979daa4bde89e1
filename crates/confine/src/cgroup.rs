//! A run's control group: bounds on memory, processes and share of the CPU.
//!
//! One directory holds all bounds (v2) or one holds each (v1). What cannot be
//! had never fails a run: [`Held`] says what is missing, and why.

mod places;
mod sweep;

use std::fmt::Display;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use rustix::fs::{Mode, OFlags, mkdir, open};
use rustix::io::{Errno, pread, read, retry_on_intr, write};

use places::{CgroupParent, Places};
pub use sweep::sweep_cgroups;
use sweep::{Name, remove_dir};

/// More than the kernel can ever have (`PID_MAX_LIMIT`); it refuses to be told
/// a larger number.
const MOST_PROCESSES: u64 = 4 * 1024 * 1024;

/// What a group allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// With what is swapped out and what is cached.
    pub(crate) memory_bytes: u64,
    /// Threads count, too.
    pub(crate) processes: u64,
    /// From 1 to 10000; 100 is the usual share.
    pub(crate) cpu_weight: u64,
}

/// One thing for each kind of bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PerController<T> {
    pub(crate) memory: T,
    pub(crate) processes: T,
    pub(crate) cpu: T,
}

/// Which version of control groups holds each bound, or why none does.
/// `ENODEV`: the kernel offers none here.
pub(crate) type Held = PerController<Result<Version, Errno>>;

/// The two interfaces that Linux has for control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

/// Which bounds were met so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ExceededBounds {
    /// Something inside was killed for want of memory.
    pub(crate) memory: bool,
    /// Something inside could not be started.
    pub(crate) processes: bool,
}

/// The control group of one run.
pub(crate) struct Cgroup {
    groups: PerController<Result<ControlGroup, Errno>>,
    /// Those that we made: each one once, whatever it holds.
    dirs: Vec<PathBuf>,
    kills: Option<EventCounter>,
    refusals: Option<EventCounter>,
}

/// Where one kind of bound is held.
#[derive(Clone)]
struct ControlGroup {
    version: Version,
    dir: PathBuf,
}

impl Cgroup {
    /// Finds where groups can be made; processes forked later know it already.
    pub(crate) fn look_around() {
        Places::get();
    }

    /// Makes an empty group, named for this process, wherever that is allowed.
    pub(crate) fn prepare() -> Self {
        let places = Places::get();
        let name = Name::next(places.namespace);
        let mut dirs = vec![];
        let groups = places.each.as_ref().map(|place| match (place, &name) {
            (Ok(place), Some(name)) => make(place, name, &mut dirs),
            (Err(errno), _) => Err(*errno),
            // Without a start time nobody could tell whose the group is.
            (Ok(_), None) => Err(Errno::SRCH),
        });
        let counter = |group: &Result<ControlGroup, _>, open: fn(&ControlGroup) -> _| {
            open(group.as_ref().ok()?)
        };
        Self {
            kills: counter(&groups.memory, EventCounter::of_kills),
            refusals: counter(&groups.processes, EventCounter::of_refusals),
            groups,
            dirs,
        }
    }

    /// Sets the bounds, once, and returns which of them stand.
    pub(crate) fn bound(&mut self, bounds: &Bounds) -> Held {
        let ceiling = &Places::get().ceiling;
        let memory = bounds.memory_bytes.min(ceiling.memory_bytes);
        let processes = bounds.processes.min(ceiling.processes);
        attempt(&mut self.groups.memory, |group| group.bound_memory(memory));
        attempt(&mut self.groups.processes, |group| {
            put(&group.dir, "pids.max", processes.min(MOST_PROCESSES))
        });
        attempt(&mut self.groups.cpu, |group| {
            group.weigh(bounds.cpu_weight.clamp(1, 10_000))
        });
        self.held()
    }

    /// Moves a process inside, with all that it starts from now on. Returns
    /// which bounds it is under now: a group that we may make is not always
    /// one that we may use.
    ///
    /// After a quiet tenth of a second the first move on the whole machine
    /// takes some 10 ms, whatever the controller: the kernel then waits until
    /// no fork is under way on any CPU. Those right after it take 0.1 ms.
    pub(crate) fn enter(&mut self, pid: u32) -> Held {
        for dir in &self.dirs {
            if let Err(errno) = put(dir, "cgroup.procs", pid) {
                self.groups.each_mut(|group| {
                    if group.as_ref().is_ok_and(|group| group.dir == *dir) {
                        *group = Err(errno);
                    }
                });
            }
        }
        self.held()
    }

    fn held(&self) -> Held {
        self.groups.as_ref().map(|group| match group {
            Ok(group) => Ok(group.version),
            Err(errno) => Err(*errno),
        })
    }

    /// Returns what to poll: each becomes ready when a bound was met, and
    /// stays so until [`Cgroup::exceeded`] is asked. In v1 nothing is heard of
    /// processes: at least Linux 6.18 counts but does not tell.
    pub(crate) fn watched(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.kills
            .iter()
            .chain(&self.refusals)
            .map(EventCounter::polled)
    }

    /// Returns which bounds were met. Must be asked when the command has
    /// ended, too: in v1 we hear of memory a moment before the kernel kills,
    /// and not at all of processes.
    pub(crate) fn exceeded(&self) -> ExceededBounds {
        let met = |counter: &Option<EventCounter>| counter.as_ref().is_some_and(EventCounter::rose);
        ExceededBounds {
            memory: met(&self.kills),
            processes: met(&self.refusals),
        }
    }

    /// Removes the group. One that is still in use after a moment is left for
    /// [`sweep_cgroups`].
    pub(crate) fn remove(self) {
        self.dirs.iter().for_each(|dir| remove_dir(dir));
    }
}

fn make(place: &CgroupParent, name: &Name, made: &mut Vec<PathBuf>) -> Result<ControlGroup, Errno> {
    let dir = place.dir.join(name.to_string());
    if !made.contains(&dir) {
        mkdir(&dir, Mode::from_raw_mode(0o755))?;
        made.push(dir.clone());
    }
    let version = place.version;
    Ok(ControlGroup { version, dir })
}

/// A bound that cannot be set is not held, and the reason takes its place.
fn attempt(
    group: &mut Result<ControlGroup, Errno>,
    set: impl FnOnce(&ControlGroup) -> Result<(), Errno>,
) {
    if let Ok(found) = group
        && let Err(errno) = set(found)
    {
        *group = Err(errno);
    }
}

impl ControlGroup {
    fn bound_memory(&self, bytes: u64) -> Result<(), Errno> {
        let Self { version, dir } = self;
        match version {
            Version::V1 => {
                put(dir, "memory.limit_in_bytes", bytes)?;
                // This bounds the sum of both, so it may not come first.
                put_if_there(dir, "memory.memsw.limit_in_bytes", bytes)
            }
            Version::V2 => {
                put(dir, "memory.max", bytes)?;
                put_if_there(dir, "memory.swap.max", 0)?;
                // Half of a pipeline is of no use to anybody.
                put_if_there(dir, "memory.oom.group", 1)
            }
        }
    }

    fn weigh(&self, weight: u64) -> Result<(), Errno> {
        match self.version {
            // The usual share is 1024 here.
            Version::V1 => put(&self.dir, "cpu.shares", weight * 1024 / 100),
            Version::V2 => put(&self.dir, "cpu.weight", weight),
        }
    }
}

/// A number that the kernel counts up, and a way to hear when it did.
struct EventCounter {
    /// Kept open: polling tells what changed since the last read of the same
    /// open file.
    file: OwnedFd,
    key: &'static str,
    /// Rings instead of the file, where that cannot be polled.
    bell: Option<OwnedFd>,
}

impl EventCounter {
    fn of_kills(group: &ControlGroup) -> Option<Self> {
        let ControlGroup { version, dir } = group;
        match version {
            Version::V1 => {
                let mut counter = Self::open(dir, "memory.oom_control", "oom_kill")?;
                counter.bell = Some(counter.hang_bell(dir).ok()?);
                Some(counter)
            }
            Version::V2 => Self::open(dir, "memory.events", "oom_kill"),
        }
    }

    fn of_refusals(group: &ControlGroup) -> Option<Self> {
        Self::open(&group.dir, "pids.events", "max")
    }

    fn open(dir: &Path, file: &str, key: &'static str) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let counter = Self {
            file: open(dir.join(file), flags, Mode::empty()).ok()?,
            key,
            bell: None,
        };
        // A file that was never read counts as changed.
        counter.rose();
        Some(counter)
    }

    fn hang_bell(&self, dir: &Path) -> Result<OwnedFd, Errno> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let order = format!("{} {}", bell.as_raw_fd(), self.file.as_raw_fd());
        put(dir, "cgroup.event_control", order)?;
        Ok(bell)
    }

    fn polled(&self) -> PollFd<'_> {
        match &self.bell {
            Some(bell) => PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN),
            None => PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::PRI),
        }
    }

    fn rose(&self) -> bool {
        // Before the number is read, so that a change in between rings again.
        if let Some(bell) = &self.bell {
            let _ = read(bell, &mut [0; 8]);
        }
        let mut bytes = [0; 1024];
        let length = pread(&self.file, &mut bytes, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..length]);
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .any(|(key, count)| key == self.key && count != "0")
    }
}

impl<T> PerController<T> {
    fn map<U>(self, mut change: impl FnMut(T) -> U) -> PerController<U> {
        PerController {
            memory: change(self.memory),
            processes: change(self.processes),
            cpu: change(self.cpu),
        }
    }

    fn as_ref(&self) -> PerController<&T> {
        PerController {
            memory: &self.memory,
            processes: &self.processes,
            cpu: &self.cpu,
        }
    }

    fn each_mut(&mut self, mut change: impl FnMut(&mut T)) {
        [&mut self.memory, &mut self.processes, &mut self.cpu]
            .into_iter()
            .for_each(&mut change);
    }
}

/// Writes one value to a file of the kernel's, in one call.
fn put(dir: &Path, file: &str, value: impl Display) -> Result<(), Errno> {
    // Not `fs::write`: its O_CREAT hides that a file is missing.
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = open(dir.join(file), flags, Mode::empty())?;
    let value = value.to_string();
    retry_on_intr(|| write(&file, value.as_bytes()))?;
    Ok(())
}

/// Writes a value that not every kernel knows.
fn put_if_there(dir: &Path, file: &str, value: impl Display) -> Result<(), Errno> {
    match put(dir, file, value) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// Reads a file that has one number; `None` when it says `max`.
fn number(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
