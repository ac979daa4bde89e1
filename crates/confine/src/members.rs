//! Finds processes by walking the kernel's own list of children.

use std::collections::HashSet;
use std::fs;
use std::io::Read;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Enough to recognise a process by; some have megabytes of arguments.
const MAX_COMMAND_LINE: u64 = 1024;

/// One process inside a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Member {
    /// As the host sees it.
    pub pid: u32,
    /// When it started, in clock ticks since boot: with the pid, its identity.
    started: u64,
}

impl Member {
    fn find(pid: u32) -> Option<Self> {
        Some(Self {
            pid,
            started: started(pid)?,
        })
    }

    /// Returns its command line, or its name where that is empty. Only the
    /// beginning of a long one.
    pub fn command(&self) -> String {
        let mut line = vec![];
        if let Ok(file) = fs::File::open(format!("/proc/{}/cmdline", self.pid)) {
            let _ = file.take(MAX_COMMAND_LINE).read_to_end(&mut line);
        }
        let words: Vec<_> = line
            .split(|&byte| byte == 0)
            .filter(|word| !word.is_empty())
            .map(String::from_utf8_lossy)
            .collect();
        if words.is_empty() {
            let name = fs::read_to_string(format!("/proc/{}/comm", self.pid));
            return name.unwrap_or_default().trim().to_owned();
        }
        words.join(" ")
    }

    /// Sends signals, unless the pid means another process by now.
    pub(crate) fn signal(&self, signals: &[Signal]) {
        let Some(pid) = Pid::from_raw(self.pid.cast_signed()) else {
            return;
        };
        // Once the descriptor is open, the pid cannot be reused unnoticed.
        if let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
            && started(self.pid) == Some(self.started)
        {
            for signal in signals {
                let _ = pidfd_send_signal(&process, *signal);
            }
        }
    }
}

/// Lists the living descendants of a process, at most so many.
pub(crate) fn below(root: Pid, most: usize) -> Vec<Member> {
    let mut found = vec![];
    walk(root, |pid| {
        found.extend(Member::find(pid));
        found.len() < most
    });
    found.sort_by_key(|member| member.pid);
    found
}

/// Lists the descendants of a process, dead ones that nobody has buried too.
pub(crate) fn pids_below(root: Pid, most: usize) -> Vec<u32> {
    let families = families_below(root, most).into_iter();
    families.map(|(_, pid)| pid).collect()
}

/// Lists the descendants of a process, each with its parent, dead ones that
/// nobody has buried too. Those of one parent are in the kernel's own order:
/// the eldest first, and orphans that it was given behind them.
pub(crate) fn families_below(root: Pid, most: usize) -> Vec<(Pid, u32)> {
    let (mut found, mut seen) = (vec![], HashSet::new());
    let mut todo = vec![root];
    while let Some(parent) = todo.pop() {
        for child in children(parent) {
            if found.len() == most {
                return found;
            }
            if seen.insert(child) {
                found.push((parent, child));
                todo.extend(Pid::from_raw(child.cast_signed()));
            }
        }
    }
    found
}

/// Visits each descendant of a process once, until `visit` returns false.
fn walk(root: Pid, mut visit: impl FnMut(u32) -> bool) {
    let mut seen = HashSet::new();
    let mut todo = children(root);
    while let Some(pid) = todo.pop() {
        if !seen.insert(pid) {
            continue;
        }
        if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
            todo.extend(children(pid));
        }
        if !visit(pid) {
            return;
        }
    }
}

/// Returns how many processes there are below one, and the memory they have
/// resident together. Shared pages count for each.
pub fn load_below(pid: u32) -> (usize, u64) {
    let Some(root) = Pid::from_raw(pid.cast_signed()) else {
        return (0, 0);
    };
    let members = below(root, usize::MAX);
    let bytes = members
        .iter()
        .filter_map(|member| resident_bytes(member.pid));
    (members.len(), bytes.sum())
}

/// Returns the memory that a process has resident.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let sizes = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = sizes.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Ends one process, unless the pid means another by now.
pub fn kill(pid: u32, started: u64) {
    Member { pid, started }.signal(&[Signal::KILL]);
}

/// Ends every process whose environment has `tag` (`NAME=value`). For what a
/// keeper left behind that was itself killed while it had no namespace.
pub fn kill_tagged(tag: &str) -> usize {
    let mut ended = 0;
    for pid in all() {
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else {
            continue;
        };
        if environment
            .split(|&byte| byte == 0)
            .any(|variable| variable == tag.as_bytes())
            && let Some(member) = Member::find(pid)
        {
            member.signal(&[Signal::KILL]);
            ended += 1;
        }
    }
    ended
}

/// Ends every living process of a session and returns how many there were.
/// The caller has not reaped its leader, so that the number means this session.
pub(crate) fn kill_session(leader: Pid) -> usize {
    let id = leader.as_raw_nonzero().get();
    let members = all().filter_map(Member::find);
    let inside: Vec<_> = members
        .filter(|member| session(member.pid) == Some(id))
        .collect();
    for member in &inside {
        member.signal(&[Signal::KILL]);
    }
    inside.len()
}

/// Returns the session of a living process; 0 for one from outside of our
/// PID namespace.
pub(crate) fn session(pid: u32) -> Option<i32> {
    field(pid, 6)
}

/// Returns whether a thread waits for something, and is not stopped.
pub(crate) fn sleeps(thread: u32) -> bool {
    state_and_rest(thread, |state, _| state == "S") == Some(true)
}

fn all() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Lists the children of a process, those of all its threads.
pub(crate) fn children(pid: Pid) -> Vec<u32> {
    let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
    fs::read_dir(tasks)
        .into_iter()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok())
        .flat_map(|list| {
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// Returns when a living process started, in clock ticks since boot; with the
/// pid this is its identity. Zombies have ended.
pub fn started(pid: u32) -> Option<u64> {
    field(pid, 22)
}

/// Returns a field of a living process's `stat`, numbered as in proc(5) and
/// above 3, which is the state.
pub(crate) fn field<T: std::str::FromStr>(pid: u32, number: usize) -> Option<T> {
    let [value] = fields(pid, [number])?;
    Some(value)
}

/// Returns several of them, as they were at one moment.
pub(crate) fn fields<T: std::str::FromStr, const N: usize>(
    pid: u32,
    numbers: [usize; N],
) -> Option<[T; N]> {
    state_and_rest(pid, |state, rest| {
        if matches!(state, "Z" | "X") {
            return None;
        }
        let read = |number: usize| rest.clone().nth(number - 4)?.parse().ok();
        let values: Vec<T> = numbers.into_iter().filter_map(read).collect();
        values.try_into().ok()
    })?
}

/// Reads the `stat` of a process or thread: its state, and the fields after.
fn state_and_rest<T>(
    pid: u32,
    read: impl FnOnce(&str, std::str::SplitAsciiWhitespace<'_>) -> T,
) -> Option<T> {
    // One read of known size: this is on the path of every start.
    let mut bytes = [0; 1024];
    let mut file = fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    let length = file.read(&mut bytes).ok()?;
    let stat = std::str::from_utf8(&bytes[..length]).ok()?;
    // The name in parentheses may contain anything, even parentheses.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?;
    Some(read(state, fields))
}
