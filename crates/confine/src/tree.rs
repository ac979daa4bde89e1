//! A command with everything it starts, which can be ended as a whole.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, getegid, geteuid, getpid, pidfd_send_signal, set_child_subreaper,
};
use serde::{Deserialize, Serialize};

use crate::fork::{Cloned, clone};
use crate::init::{self, Identity, Wanted};
use crate::members::{self, Member};

/// How long the first process inside may take to get ready. It only makes a
/// handful of system calls; past this something is badly wrong.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// How long a sweep may try to end processes that keep forking.
const SWEEP_FOR: Duration = Duration::from_secs(5);

/// What makes sure that nothing of a run stays behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// The kernel ends everything inside when the first process dies.
    PidNamespace,
    /// Orphans come back to the keeper, which ends what it finds below itself.
    /// Weaker: nothing stops a process from signalling the keeper.
    Subreaper,
}

/// What to start.
pub struct Program {
    /// Path of the program and its arguments; not empty.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Descriptors 0, 1 and 2; there are no others.
    pub stdin: OwnedFd,
    /// See `stdin`.
    pub stdout: OwnedFd,
    /// See `stdin`.
    pub stderr: OwnedFd,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// What a process and its reaped descendants used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode.
    pub user_micros: u64,
    /// CPU time in the kernel.
    pub system_micros: u64,
    /// The largest resident size of any one process.
    pub peak_bytes: u64,
}

/// What the first process inside reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The walls stand; the command is about to start.
    Ready,
    /// The walls could not be built (errno); nothing was started.
    Unready(i32),
    /// The program could not be started (errno).
    Failed(i32),
    /// The command itself ended; others may be left.
    Exited(Exit, Usage),
    /// Nothing is left inside. What all of it used.
    Empty(Usage),
}

/// Why no tree could be grown.
#[derive(Debug)]
pub enum Error {
    /// Not even the weakest containment could be had.
    Contain(io::Error),
    /// The kernel gave no pipe or descriptor.
    Prepare(io::Error),
}

/// One command's processes.
pub struct Tree {
    init: Pid,
    init_fd: OwnedFd,
    notices: OwnedFd,
    containment: Containment,
}

impl Tree {
    /// Starts a program in the strongest containment that this kernel grants,
    /// found by trying. The caller must be single-threaded; its working
    /// directory becomes the program's.
    pub fn spawn(mut program: impl FnMut() -> io::Result<Program>) -> Result<Self, Error> {
        let root = geteuid().is_root();
        let mut last = None;
        for (namespaces, containment) in rungs(root) {
            match Self::try_spawn(namespaces, containment, program().map_err(Error::Prepare)?) {
                Ok(tree) => return Ok(tree),
                Err(error) => last = Some(error),
            }
        }
        Err(Error::Contain(last.expect("there is at least one rung")))
    }

    fn try_spawn(
        namespaces: libc::c_int,
        containment: Containment,
        program: Program,
    ) -> io::Result<Self> {
        let (notices, out) = pipe_with(PipeFlags::CLOEXEC)?;
        let map = (namespaces & libc::CLONE_NEWUSER != 0).then(|| Identity {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
        });
        if containment == Containment::Subreaper {
            set_child_subreaper(Some(getpid()))?;
        }
        let Some(Cloned { pid, pidfd }) = clone(namespaces)? else {
            drop(notices);
            init::serve(Wanted { containment, map }, program, &out);
        };
        drop((out, program));
        let tree = Self {
            init: pid,
            init_fd: pidfd,
            notices,
            containment,
        };
        match tree.first_notice() {
            Ok(()) => Ok(tree),
            Err(error) => {
                tree.kill();
                while !matches!(wait(Some(pid), true), Ok(Some(_)) | Err(_)) {}
                Err(error)
            }
        }
    }

    fn first_notice(&self) -> io::Result<()> {
        if !readable_within(self.notices.as_fd(), READY_WITHIN)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match self.notice()? {
            Some(Notice::Ready) => Ok(()),
            Some(Notice::Unready(errno)) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Returns how the tree is held together.
    pub fn containment(&self) -> Containment {
        self.containment
    }

    /// Becomes readable when there is a notice.
    pub fn notices(&self) -> BorrowedFd<'_> {
        self.notices.as_fd()
    }

    /// Becomes readable when the first process inside has ended.
    pub fn init(&self) -> BorrowedFd<'_> {
        self.init_fd.as_fd()
    }

    /// Returns the pid of the first process inside, as the host sees it.
    pub fn pid(&self) -> u32 {
        self.init.as_raw_nonzero().get().cast_unsigned()
    }

    /// Reads the next notice; `None` when there will be none any more.
    pub fn notice(&self) -> io::Result<Option<Notice>> {
        let mut bytes = [0; Notice::SIZE];
        // Notices are far smaller than PIPE_BUF, so they are written whole.
        match rustix::io::read(&self.notices, &mut bytes)? {
            Notice::SIZE => Ok(Notice::decode(&bytes)),
            _ => Ok(None),
        }
    }

    /// Lists what is inside, the first process left out, at most so many.
    pub fn members(&self, most: usize) -> Vec<Member> {
        let mut found = members::below(getpid(), most.saturating_add(1));
        found.retain(|member| member.pid != self.pid());
        found.truncate(most);
        found
    }

    /// Sends signals to everything inside, the first process left out, at most
    /// to so many, and returns to how many.
    pub fn signal(&self, signals: &[Signal], most: usize) -> usize {
        let members = self.members(most);
        members.iter().for_each(|member| member.signal(signals));
        members.len()
    }

    /// Ends everything inside. In a PID namespace all of it is gone when
    /// [`Tree::reap`] returns; otherwise when this returns.
    pub fn kill(&self) {
        if self.containment == Containment::Subreaper {
            self.sweep();
        }
        // ESRCH: it ended by itself meanwhile.
        let _ = pidfd_send_signal(&self.init_fd, Signal::KILL);
    }

    /// Stops all first, so that nothing can fork away from the sweep.
    fn sweep(&self) {
        let deadline = Instant::now() + SWEEP_FOR;
        let mut stopped = 0;
        while Instant::now() < deadline {
            let found = self.signal(&[Signal::STOP], usize::MAX);
            if found == stopped {
                break;
            }
            stopped = found;
        }
        while Instant::now() < deadline {
            if self.signal(&[Signal::KILL], usize::MAX) == 0 {
                return;
            }
            // Orphans of a killed init come to us.
            while matches!(wait_other_than(self.init), Ok(true)) {}
        }
    }

    /// Waits for the first process inside, which ends last, and returns what
    /// all of them used.
    pub fn reap(&self) -> io::Result<Usage> {
        if self.containment == Containment::Subreaper {
            // Somebody may have killed the first process and left the rest.
            self.sweep();
        }
        loop {
            match wait(Some(self.init), true) {
                Ok(Some((_, _, usage))) => return Ok(usage),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The containments to try, strongest first.
fn rungs(root: bool) -> Vec<(libc::c_int, Containment)> {
    let namespaces = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    let with_user = namespaces | libc::CLONE_NEWUSER;
    let mut rungs = vec![
        (with_user, Containment::PidNamespace),
        (0, Containment::Subreaper),
    ];
    if root {
        rungs.insert(0, (namespaces, Containment::PidNamespace));
    }
    rungs
}

/// Waits for one child or any; `None` when `block` is false and none ended.
pub(crate) fn wait(child: Option<Pid>, block: bool) -> io::Result<Option<(Pid, Exit, Usage)>> {
    let mut status = 0;
    // SAFETY: all fields are integers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let which = child.map_or(-1, |pid| pid.as_raw_nonzero().get());
    let options = if block { 0 } else { libc::WNOHANG };
    // SAFETY: both pointers are to locals that outlive the call.
    let pid = unsafe { libc::wait4(which, &raw mut status, options, &raw mut usage) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Pid::from_raw(pid).map(|pid| (pid, exit(status), used(&usage)))),
    }
}

/// Reaps one ended child that is not `init`; returns whether there was one.
fn wait_other_than(init: Pid) -> io::Result<bool> {
    for member in members::children(getpid()) {
        let pid = Pid::from_raw(member.cast_signed()).filter(|&pid| pid != init);
        if let Some(pid) = pid
            && wait(Some(pid), false)?.is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn exit(status: libc::c_int) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    }
}

/// Returns what all reaped descendants of this process used.
pub(crate) fn used_by_children() -> Usage {
    // SAFETY: all fields are integers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local that outlives the call.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    used(&usage)
}

fn used(usage: &libc::rusage) -> Usage {
    let micros = |time: libc::timeval| (time.tv_sec * 1_000_000 + time.tv_usec).cast_unsigned();
    Usage {
        user_micros: micros(usage.ru_utime),
        system_micros: micros(usage.ru_stime),
        // The kernel counts it in KiB.
        peak_bytes: usage.ru_maxrss.cast_unsigned() * 1024,
    }
}

fn readable_within(fd: BorrowedFd<'_>, time: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(time).expect("a few seconds fit");
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    Ok(poll(&mut fds, Some(&limit))? > 0)
}

impl Notice {
    /// A kind, a number, and three counters.
    const SIZE: usize = 4 + 4 + 3 * 8;

    pub(crate) fn encode(self) -> [u8; Self::SIZE] {
        let (kind, number, usage) = match self {
            Self::Ready => (0, 0, Usage::default()),
            Self::Unready(errno) => (1, errno, Usage::default()),
            Self::Failed(errno) => (2, errno, Usage::default()),
            Self::Exited(Exit::Code(code), usage) => (3, code, usage),
            Self::Exited(Exit::Signal(signal), usage) => (4, signal, usage),
            Self::Empty(usage) => (5, 0, usage),
        };
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&i32::to_ne_bytes(kind));
        bytes[4..8].copy_from_slice(&number.to_ne_bytes());
        bytes[8..16].copy_from_slice(&usage.user_micros.to_ne_bytes());
        bytes[16..24].copy_from_slice(&usage.system_micros.to_ne_bytes());
        bytes[24..].copy_from_slice(&usage.peak_bytes.to_ne_bytes());
        bytes
    }

    fn decode(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let int = |at: usize| i32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let usage = Usage {
            user_micros: long(8),
            system_micros: long(16),
            peak_bytes: long(24),
        };
        Some(match int(0) {
            0 => Self::Ready,
            1 => Self::Unready(int(4)),
            2 => Self::Failed(int(4)),
            3 => Self::Exited(Exit::Code(int(4)), usage),
            4 => Self::Exited(Exit::Signal(int(4)), usage),
            5 => Self::Empty(usage),
            _ => return None,
        })
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Contain(_) => "cannot contain the command",
            Self::Prepare(_) => "cannot prepare the command's descriptors",
        })
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Contain(error) | Self::Prepare(error) => Some(error),
        }
    }
}
