//! What is in the foreground of a terminal, and whether it waits to be typed
//! at.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::process::Pid;

use crate::members;

/// How many processes of one terminal are looked at.
const MOST: usize = 256;

/// Returns the process that a keeper's run began with, as the host sees it.
pub fn first_inside(keeper: u32) -> Option<u32> {
    let init = only_child(keeper)?;
    let inside = Pid::from_raw(init.cast_signed())?;
    members::children(inside).into_iter().min()
}

/// Returns whether what is in the foreground of a run's terminal is blocked
/// reading from it.
pub fn waits_for_input(keeper: u32) -> bool {
    let Some(root) = Pid::from_raw(keeper.cast_signed()) else {
        return false;
    };
    let pids = members::pids_below(root, MOST);
    pids.into_iter().any(|pid| is_in_front(pid) && reads(pid))
}

fn only_child(pid: u32) -> Option<u32> {
    let pid = Pid::from_raw(pid.cast_signed())?;
    members::children(pid).into_iter().next()
}

/// Whether a process is in the foreground group of its terminal.
fn is_in_front(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The name may hold anything, and ends with the last bracket.
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<i64>().ok());
    // State, parent, group, session, terminal, foreground group.
    match (number(2), number(4), number(5)) {
        (Some(group), Some(terminal), Some(front)) => terminal != 0 && group == front,
        _ => false,
    }
}

/// Whether it waits for its terminal and nothing else: by reading it, or by
/// waiting until there is something, as programs do that edit lines.
fn reads(pid: u32) -> bool {
    if fs::read_to_string(format!("/proc/{pid}/wchan")).is_ok_and(|at| at == "n_tty_read") {
        return true;
    }
    let Ok(call) = fs::read_to_string(format!("/proc/{pid}/syscall")) else {
        return false;
    };
    let words: Vec<&str> = call.split_ascii_whitespace().collect();
    let argument = |at: usize| {
        let word = words.get(at)?.strip_prefix("0x")?;
        u64::from_str_radix(word, 16).ok()
    };
    let Some(number) = words.first().and_then(|word| word.parse().ok()) else {
        return false;
    };
    let (Some(first), Some(second)) = (argument(1), argument(2)) else {
        return false;
    };
    let waits_for = match number {
        libc::SYS_read => Some(vec![first]),
        libc::SYS_pselect6 => selected(pid, first, second),
        libc::SYS_ppoll => polled(pid, first, second),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => selected(pid, first, second),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => polled(pid, first, second),
        _ => return false,
    };
    waits_for.is_some_and(|all| !all.is_empty() && all.iter().all(|&fd| is_terminal(pid, fd)))
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
    let file = fs::metadata(format!("/proc/{pid}/fd/{fd}"));
    file.is_ok_and(|file| MAJORS.contains(&rustix::fs::major(file.rdev())))
}
