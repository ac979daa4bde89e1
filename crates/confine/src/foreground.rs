//! What is in the foreground of a terminal, and whether it waits to be typed
//! at.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use rustix::process::Pid;

use crate::members;

/// How many processes of one terminal are looked at.
const MOST: usize = 256;

/// Who would take what is typed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taker {
    /// The process that the run began with, which is blocked reading: a shell
    /// itself, and nothing that it started.
    First,
    /// Something that it has started. That is more than [`waits_for_input`]
    /// knows, as many programs wait for other things, too.
    Started,
    /// Nobody that is in the foreground.
    Nobody,
}

/// Returns the process that a keeper's run at a terminal began with, as the
/// host sees it.
pub fn first_inside(keeper: u32) -> Option<u32> {
    let init = eldest_child(keeper)?;
    let first = eldest_child(init)?;
    leads(first).then_some(first)
}

/// Returns whether what is in the foreground of a run's terminal is blocked
/// reading from it.
pub fn waits_for_input(keeper: u32) -> bool {
    RunProcesses::of(keeper).is_some_and(|inside| inside.all().any(waits))
}

/// Returns who would take what is typed now.
pub fn takes_input(keeper: u32) -> Taker {
    let Some((first, inside)) = RunProcesses::with_first(keeper) else {
        return Taker::Nobody;
    };
    if waits(first) {
        return Taker::First;
    }
    // Who is first was known before: a shell that begins to read meanwhile is
    // no program that it has started.
    let mut others = inside.all().filter(|&pid| pid != first);
    match others.any(|pid| is_in_front(pid) && listens(pid)) {
        true => Taker::Started,
        false => Taker::Nobody,
    }
}

/// Returns whether it is the process that the run began with which is blocked
/// reading from its terminal.
pub fn first_waits_for_input(keeper: u32) -> bool {
    first_inside(keeper).is_some_and(waits)
}

/// Returns whether only the process that the run began with would take what is
/// typed now, and at once: it has handled every signal that it was sent.
pub fn only_first_takes_input(keeper: u32) -> bool {
    let Some((first, inside)) = RunProcesses::with_first(keeper) else {
        return false;
    };
    let Some(terminal) = terminal_of(first) else {
        return false;
    };
    let mut others = inside.all().filter(|&pid| pid != first);
    // One that is in no session of the terminal's can read it all the same.
    is_in_front(first)
        && (listens(first) || may_listen(first))
        && !others.any(|pid| listens_at(pid, terminal))
}

/// What there is inside of a run, found in one walk.
struct RunProcesses {
    keeper: Pid,
    families: Vec<(Pid, u32)>,
}

impl RunProcesses {
    fn of(keeper: u32) -> Option<Self> {
        let keeper = Pid::from_raw(keeper.cast_signed())?;
        let families = members::families_below(keeper, MOST);
        Some(Self { keeper, families })
    }

    /// The same, with the process that the run began with.
    fn with_first(keeper: u32) -> Option<(u32, Self)> {
        let inside = Self::of(keeper)?;
        let init = inside.eldest_of(inside.keeper)?;
        let first = inside.eldest_of(Pid::from_raw(init.cast_signed())?)?;
        leads(first).then_some((first, inside))
    }

    fn eldest_of(&self, parent: Pid) -> Option<u32> {
        let mut families = self.families.iter();
        families.find(|(of, _)| *of == parent).map(|(_, pid)| *pid)
    }

    fn all(&self) -> impl Iterator<Item = u32> {
        self.families.iter().map(|(_, pid)| *pid)
    }
}

/// Whether a process leads its session. Once the first has ended, the eldest is
/// an orphan, and hardly does.
fn leads(pid: u32) -> bool {
    members::session(pid) == Some(pid.cast_signed())
}

/// Returns the working directory of the process that a keeper's run began
/// with, by the path that it has there.
pub fn directory_inside(keeper: u32) -> Option<PathBuf> {
    let first = first_inside(keeper)?;
    fs::read_link(format!("/proc/{first}/cwd")).ok()
}

fn waits(pid: u32) -> bool {
    is_in_front(pid) && reads(pid)
}

/// The child that a process had first. Pids begin anew once all were given, and
/// start times are coarse; but the kernel adds each child, and each orphan that
/// becomes one, to the end of its list.
fn eldest_child(pid: u32) -> Option<u32> {
    let pid = Pid::from_raw(pid.cast_signed())?;
    members::children(pid).into_iter().next()
}

/// Fields of `stat`, numbered as in proc(5).
const GROUP: usize = 5;
const TERMINAL: usize = 7;
const FRONT_GROUP: usize = 8;

/// Whether a process is in the foreground group of its terminal.
fn is_in_front(pid: u32) -> bool {
    let known: Option<[i32; 3]> = members::fields(pid, [GROUP, TERMINAL, FRONT_GROUP]);
    known.is_some_and(|[group, terminal, front]| terminal != 0 && group == front)
}

/// Whether it waits for its terminal and nothing else: by reading it, or by
/// waiting until there is something, as programs do that edit lines.
fn reads(pid: u32) -> bool {
    if is_in_read(pid) {
        return true;
    }
    let all = waited_for(pid, pid);
    all.is_some_and(|all| !all.is_empty() && all.iter().all(|&fd| is_terminal(pid, fd)))
}

/// Whether any thread of it waits for its terminal, among other things.
fn listens(pid: u32) -> bool {
    threads(pid).any(|thread| {
        if is_in_read(thread) {
            return true;
        }
        let all = waited_for(pid, thread);
        all.is_some_and(|all| all.iter().any(|&fd| is_terminal(pid, fd)))
    })
}

/// Whether any thread of it waits for one terminal, among other things.
fn listens_at(pid: u32, terminal: (u32, u32)) -> bool {
    let is_it = |fd: &u64| match device(pid, *fd) {
        Some(OWN_TERMINAL) => terminal_of(pid) == Some(terminal),
        other => other == Some(terminal),
    };
    threads(pid).any(|thread| {
        let all = waited_for(pid, thread);
        all.is_some_and(|all| all.iter().any(is_it))
    })
}

fn threads(pid: u32) -> impl Iterator<Item = u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten().take(MOST);
    threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The device of a process's own terminal, as the kernel numbers devices.
fn terminal_of(pid: u32) -> Option<(u32, u32)> {
    let number: u32 = members::field(pid, TERMINAL)?;
    let minor = number & 0xff | number >> 12 & 0xfff00;
    (number != 0).then_some((number >> 8 & 0xfff, minor))
}

/// Whether it waits for something to read, where it cannot be seen for what:
/// Yama guards what has no namespace.
fn may_listen(pid: u32) -> bool {
    let seen = fs::read_to_string(format!("/proc/{pid}/syscall"));
    let denied = seen.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    let waits = ["select", "poll"];
    denied && members::sleeps(pid) && waits.iter().any(|call| place(pid).contains(call))
}

fn is_in_read(thread: u32) -> bool {
    place(thread) == "n_tty_read"
}

/// Where in the kernel a thread waits.
fn place(thread: u32) -> String {
    fs::read_to_string(format!("/proc/{thread}/wchan")).unwrap_or_default()
}

/// The descriptors that a thread waits for, if it does.
fn waited_for(pid: u32, thread: u32) -> Option<Vec<u64>> {
    // One that was stopped is said to be where it was before.
    if !members::sleeps(thread) {
        return None;
    }
    let call = fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall")).ok()?;
    let words: Vec<&str> = call.split_ascii_whitespace().collect();
    let argument = |at: usize| {
        let word = words.get(at)?.strip_prefix("0x")?;
        u64::from_str_radix(word, 16).ok()
    };
    let number = words.first()?.parse().ok()?;
    let (first, second) = (argument(1)?, argument(2)?);
    match number {
        libc::SYS_read | libc::SYS_readv => Some(vec![first]),
        libc::SYS_pselect6 => selected(pid, first, second),
        libc::SYS_ppoll => polled(pid, first, second),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => watched(pid, first),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => selected(pid, first, second),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => polled(pid, first, second),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => watched(pid, first),
        _ => None,
    }
}

/// The descriptors that an `epoll` watches.
fn watched(pid: u32, epoll: u64) -> Option<Vec<u64>> {
    let told = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).ok()?;
    let fds = told.lines().filter_map(|line| {
        let rest = line.strip_prefix("tfd:")?;
        rest.split_ascii_whitespace().next()?.parse().ok()
    });
    Some(fds.take(MOST_DESCRIPTORS as usize).collect())
}

/// More descriptors than this no program waits for that only reads keys.
const MOST_DESCRIPTORS: u64 = 64;

/// The descriptors in an array of `pollfd`.
fn polled(pid: u32, at: u64, count: u64) -> Option<Vec<u64>> {
    let bytes = memory(pid, at, count.min(MOST_DESCRIPTORS + 1) * 8)?;
    let entries = bytes.chunks_exact(8);
    let fds = entries.map(|entry| i32::from_ne_bytes(entry[..4].try_into().expect("4 bytes")));
    // Negative ones are passed over.
    Some(fds.filter_map(|fd| u64::try_from(fd).ok()).collect())
}

/// The descriptors in the first set of a `select`.
fn selected(pid: u32, count: u64, at: u64) -> Option<Vec<u64>> {
    let count = count.min(1024);
    let bytes = memory(pid, at, count.div_ceil(64) * 8)?;
    let is_set = |fd: &u64| {
        let byte = bytes[(fd / 8) as usize];
        byte >> (fd % 8) & 1 == 1
    };
    Some((0..count).filter(is_set).collect())
}

fn memory(pid: u32, at: u64, length: u64) -> Option<Vec<u8>> {
    let file = fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

/// Whether a descriptor of a process is a terminal such as runs have.
fn is_terminal(pid: u32, fd: u64) -> bool {
    /// Numbers that the kernel gives the devices in `/dev/pts`, and `/dev/tty`.
    const MAJORS: [u32; 9] = [5, 136, 137, 138, 139, 140, 141, 142, 143];
    device(pid, fd).is_some_and(|(major, _)| MAJORS.contains(&major))
}

/// `/dev/tty`, which is each process's own.
const OWN_TERMINAL: (u32, u32) = (5, 0);

/// The device that a descriptor of a process is.
fn device(pid: u32, fd: u64) -> Option<(u32, u32)> {
    let file = fs::metadata(format!("/proc/{pid}/fd/{fd}")).ok()?.rdev();
    Some((rustix::fs::major(file), rustix::fs::minor(file)))
}
