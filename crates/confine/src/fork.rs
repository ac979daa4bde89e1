//! Two ways to split a single-threaded process.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use rustix::process::{Pid, RawPid};

/// Which of the two processes we are after a [`fork`].
pub enum Fork {
    /// The old one.
    Parent(Pid),
    /// The new one.
    Child,
}

/// Splits this process. It must have a single thread, or the child could find
/// the allocator locked by a thread that does not exist there.
pub fn fork() -> io::Result<Fork> {
    assert_single_threaded();
    // SAFETY: with one thread, the child owns a complete copy of every lock
    // and may go on like any other process.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid).map_or(Fork::Child, Fork::Parent)),
    }
}

/// Ends this process at once: no handlers, no destructors. A fork has nothing
/// of its own to tidy up, and running what it copied costs page faults.
pub fn exit(code: i32) -> ! {
    // SAFETY: does not return and touches no memory.
    unsafe { libc::_exit(code) }
}

/// Resets the signal actions and mask that our parent process set. A signal
/// that is ignored stays ignored in everything we start, and no shell can trap
/// it. Only writing to a closed pipe stays an error for us.
pub fn reset_signals() {
    for signal in (1..=64).filter(|&signal| signal != libc::SIGPIPE) {
        // SAFETY: the default action runs no code of ours. It fails for the
        // few signals that have no other action, which is as well.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: the set is initialised before it is used, and outlives the call.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Lets a write to a pipe that nobody reads end this process, as is usual
/// outside of Rust.
pub fn die_of_broken_pipes() {
    // SAFETY: the default action runs no code of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Closes every descriptor above 2 that our parent process left open.
///
/// The caller must not have opened anything yet: an owned descriptor would come
/// to mean another file.
pub fn close_inherited() {
    // SAFETY: nothing in this process owns a descriptor above 2 yet, which is
    // what the caller has to see to.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// Lets the kernel forget children as they end (`true`), or keep them until
/// they are waited for (`false`), as is usual.
pub fn forget_children(forget: bool) {
    let action = if forget { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: neither action runs any code of ours.
    unsafe { libc::signal(libc::SIGCHLD, action) };
}

/// What [`clone`] made: the new process, as a number and as a descriptor that
/// cannot come to mean another process.
pub(crate) struct Cloned {
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
}

/// Splits this process and puts the child into new namespaces. Returns `None`
/// in the child.
pub(crate) fn clone(namespaces: libc::c_int) -> io::Result<Option<Cloned>> {
    assert_single_threaded();
    let mut pidfd: RawFd = -1;
    // SAFETY: all fields are integers, for which zero is a valid value.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = namespaces as u64 | libc::CLONE_PIDFD as u64;
    args.pidfd = (&raw mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: no memory is shared (no CLONE_VM) and no stack is given, so this
    // is fork with namespaces; `args` and `pidfd` outlive the call. glibc's
    // cached thread id is stale in the child, which uses no thread functions.
    let mut pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of_val(&args)) };
    if pid == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
        // Containers refuse it so, since their filter cannot see what is asked.
        let flags = args.flags | args.exit_signal;
        // SAFETY: as above; the older call takes the place for the descriptor
        // as its third argument on all architectures that we build for.
        pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, &raw mut pidfd, 0, 0) };
    }
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(Cloned {
            pid: Pid::from_raw(pid as RawPid).expect("a child has a positive pid"),
            // SAFETY: the kernel has just made this descriptor for us alone.
            pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) },
        })),
    }
}

fn assert_single_threaded() {
    // The test harness has threads of its own; there the children only call
    // what does not allocate under a lock held elsewhere, or exec at once.
    // It takes some 20 µs, and processes are made ahead of need.
    #[cfg(not(test))]
    assert_eq!(
        std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count),
        1,
        "fork needs a single-threaded process"
    );
}
