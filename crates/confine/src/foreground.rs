//! What is in the foreground of a terminal, and whether it waits to be typed
//! at.

use std::fs;

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

/// Whether it waits for its input and nothing else: by reading it, or by
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
    match number {
        libc::SYS_read => argument(1) == Some(0),
        // Of the first descriptor alone.
        libc::SYS_pselect6 => argument(1) == Some(1),
        libc::SYS_ppoll => argument(2) == Some(1),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => argument(1) == Some(1),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => argument(2) == Some(1),
        _ => false,
    }
}
