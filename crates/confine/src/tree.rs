//! A command with everything it starts, which can be ended as a whole.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpid, pidfd_send_signal, set_child_subreaper};
use serde::{Deserialize, Serialize};

use crate::cgroup::{Bounds, Cgroup, Held};
use crate::enforced::Enforced;
use crate::fork::{Cloned, clone};
use crate::init::{self, InitStart};
use crate::line::{InitChannel, InitPlan, Note, Notice};
use crate::machine::Alarm;
use crate::members::{self, Member};
use crate::privilege::{is_root, lender, own};
use crate::profile::{Network, Profile, Rung};
use crate::report::{self, enforced};
use crate::seccomp::{SeccompFilter, Sockets};
use crate::terminal::Size;
use crate::watch::{Exceeded, Watch};

/// How long the first process inside may take to get ready. It only makes a
/// handful of system calls; past this something is badly wrong.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// How long a sweep may try to end processes that keep forking.
const SWEEP_FOR: Duration = Duration::from_secs(5);

/// What to start.
pub struct ProgramSpec {
    /// Path of the program and its arguments; not empty.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// A file for the command to find, where there are private directories.
    pub note: Option<Note>,
    /// How large a terminal it has, if it has one of its own.
    pub terminal: Option<Size>,
}

/// A program that was started.
pub struct Grown {
    /// All of its processes.
    pub tree: Tree,
    /// What stands around them.
    pub walls: Enforced,
    /// Our end of its terminal, if it has one.
    pub terminal: Option<OwnedFd>,
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

/// Why no tree could be grown. Nothing ran.
#[derive(Debug)]
pub enum Error {
    /// The kernel grants less than is demanded.
    Weak {
        /// What there is.
        rung: Rung,
        /// Why it is no more.
        why: String,
    },
    /// Something that the walls are made of could not be had.
    Build(String),
    /// It may not start.
    Withheld(io::Error),
    /// The kernel gave no process or descriptor.
    Prepare(io::Error),
}

/// One command's processes.
pub struct Tree {
    init: Pid,
    init_fd: OwnedFd,
    line: InitChannel,
    rung: Rung,
    cgroup: Option<Cgroup>,
    watch: Option<Watch>,
}

/// The first process of a tree to be, with all that can be built ahead of
/// need. Dropped, it goes away.
pub struct Spare {
    tree: Tree,
    /// Why the walls can be no stronger.
    why: Option<String>,
}

/// A tree whose walls are being built.
struct PendingTree {
    tree: Tree,
    why: Option<String>,
    held: Option<Held>,
}

/// Learns and makes what is the same for all runs; processes forked later have
/// it already. The caller must be single-threaded.
pub fn get_ready() {
    Cgroup::look_around();
    SeccompFilter::get(Sockets::All);
    if is_root() {
        lender();
    }
}

impl Spare {
    /// Builds ahead what this kernel grants, found by trying. The caller must
    /// be single-threaded.
    pub fn prepare() -> Result<Self, Error> {
        Self::with(Network::Off)
    }

    fn with(network: Network) -> Result<Self, Error> {
        let root = is_root();
        let (start, namespaces) = if root {
            (InitStart::AsRoot, NAMESPACES)
        } else {
            (InitStart::AsUser(own()), NAMESPACES | libc::CLONE_NEWUSER)
        };
        let namespaces = match network {
            Network::Off => namespaces | libc::CLONE_NEWNET,
            Network::On => namespaces,
        };
        match Tree::sprout(start, namespaces, network) {
            Ok(tree) => Ok(Self {
                why: (tree.rung < Rung::Full)
                    .then(|| "the kernel grants no fresh /proc where the host's is masked".into()),
                tree,
            }),
            Err(refused) => Ok(Self {
                tree: Tree::sprout(InitStart::Bare { root }, 0, network).map_err(Error::Prepare)?,
                why: Some(refused.to_string()),
            }),
        }
    }

    /// Returns how strong the walls will be.
    pub fn rung(&self) -> Rung {
        self.tree.rung
    }

    /// Returns why they can be no stronger; empty where they are the strongest.
    pub(crate) fn why(&self) -> &str {
        self.why.as_deref().unwrap_or_default()
    }
}

impl PendingTree {
    /// Lets the program start.
    fn go(self, plan: &InitPlan, stdio: &[OwnedFd]) -> Result<Grown, Error> {
        let Self { tree, why, held } = self;
        tree.line.go(stdio);
        match tree.first_notice().map_err(Error::Prepare)? {
            (Notice::Ready(built), terminal) => {
                let mut enforced = enforced(&plan.profile, tree.rung, why, &built);
                let namespaces = report::bounds_processes(&built);
                report::limits(&mut enforced, &plan.profile.limits, held, namespaces);
                Ok(Grown {
                    tree,
                    walls: enforced,
                    terminal,
                })
            }
            (Notice::Unready(what), _) => Err(Error::Build(what)),
            _ => Err(Error::Prepare(io::ErrorKind::InvalidData.into())),
        }
    }
}

/// What a run has of its own. Users are another matter, see [`InitStart`]; the
/// cgroup's is entered when the cgroup is.
const NAMESPACES: libc::c_int =
    libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

impl Tree {
    /// Builds the walls and starts a program inside, once it may: then `start`
    /// returns its descriptors 0, 1 and 2, or none where it has a terminal. It
    /// is asked once, while the walls are built. The caller must be
    /// single-threaded.
    pub fn spawn(
        spare: Spare,
        profile: Profile,
        program: ProgramSpec,
        start: impl FnOnce() -> io::Result<Vec<OwnedFd>>,
    ) -> Result<Grown, Error> {
        let plan = InitPlan {
            argv: program.argv,
            env: program.env,
            note: program.note,
            terminal: program.terminal,
            profile,
        };
        let usable = plan.profile.network == Network::Off;
        let spare = if usable {
            spare
        } else {
            drop(spare);
            Spare::with(plan.profile.network)?
        };
        let begun = Self::order(spare, &plan)?;
        let stdio = start().map_err(Error::Withheld)?;
        match begun.go(&plan, &stdio) {
            // It may have been made before something was mounted.
            Err(Error::Build(_)) => {
                let again = Self::order(Spare::with(plan.profile.network)?, &plan)?;
                again.go(&plan, &stdio)
            }
            other => other,
        }
    }

    /// Has the walls built, and limits what is inside; nothing runs yet.
    fn order(spare: Spare, plan: &InitPlan) -> Result<PendingTree, Error> {
        let Spare { mut tree, why } = spare;
        if tree.rung < plan.profile.minimum {
            return Err(Error::Weak {
                rung: tree.rung,
                why: why.unwrap_or_default(),
            });
        }
        tree.line.order(plan).map_err(Error::Prepare)?;
        // While the rest of the walls is built.
        let held = tree.limit(&plan.profile);
        Ok(PendingTree { tree, why, held })
    }

    /// Makes the first process and waits until it is prepared.
    fn sprout(start: InitStart, namespaces: libc::c_int, network: Network) -> io::Result<Self> {
        let (line, theirs) = InitChannel::pair()?;
        let lender = match start {
            // Where it cannot be had, root's own directories cannot be used.
            InitStart::AsRoot => lender(),
            InitStart::AsUser(_) | InitStart::Bare { .. } => None,
        };
        if let InitStart::Bare { .. } = start {
            set_child_subreaper(Some(getpid()))?;
        }
        let made = clone(namespaces)
            .map_err(|error| io::Error::other(format!("cannot enter namespaces: {error}")))?;
        let Some(Cloned { pid, pidfd }) = made else {
            drop(line);
            init::serve(start, network, lender, &theirs);
        };
        drop((theirs, lender));
        let mut tree = Self {
            init: pid,
            init_fd: pidfd,
            line,
            rung: Rung::Landlock,
            cgroup: None,
            watch: None,
        };
        match tree.first_notice()?.0 {
            Notice::Prepared(rung) => {
                tree.rung = rung;
                let mut cgroup = Cgroup::prepare();
                cgroup.enter(tree.pid());
                tree.cgroup = Some(cgroup);
                Ok(tree)
            }
            Notice::Unready(what) => Err(io::Error::other(what)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Returns the first notice from init and the descriptor that comes with
    /// it.
    fn first_notice(&self) -> io::Result<(Notice, Option<OwnedFd>)> {
        if !readable_within(self.line.fd(), READY_WITHIN)? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (news, with) = self.line.hear_with()?;
        let first = news.into_iter().next();
        Ok((first.ok_or(io::ErrorKind::UnexpectedEof)?, with))
    }

    fn has_pid_namespace(&self) -> bool {
        self.rung > Rung::Landlock
    }

    /// Becomes readable when there is a notice.
    pub fn notices(&self) -> BorrowedFd<'_> {
        self.line.fd()
    }

    /// Becomes readable when the first process inside has ended.
    pub fn init(&self) -> BorrowedFd<'_> {
        self.init_fd.as_fd()
    }

    /// Returns the pid of the first process inside, as the host sees it.
    pub fn pid(&self) -> u32 {
        self.init.as_raw_nonzero().get().cast_unsigned()
    }

    /// Reads what was told; nothing when there will be no more.
    pub fn hear(&self) -> io::Result<Vec<Notice>> {
        self.line.hear()
    }

    /// Becomes ready when a limit was met that the kernel tells about.
    pub fn watched(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.cgroup.iter().flat_map(Cgroup::watched)
    }

    /// When [`Tree::exceeded`] should be asked at the latest.
    pub fn look_again_at(&self) -> Instant {
        self.watch
            .as_ref()
            .map_or_else(|| Instant::now() + READY_WITHIN, Watch::next)
    }

    /// Returns which limit was met, as the kernel tells (when asked) or as can
    /// be seen (when it is time to look).
    pub fn exceeded(&mut self, ask: bool) -> Option<Exceeded> {
        let mut watch = self.watch.take()?;
        let looks = Instant::now() >= watch.next();
        let told = match &self.cgroup {
            Some(cgroup) if ask || looks => cgroup.exceeded(),
            _ => Default::default(),
        };
        let found = if told.memory {
            Some(Exceeded::Memory)
        } else if told.processes {
            Some(Exceeded::Processes)
        } else {
            watch.look(self)
        };
        self.watch = Some(watch);
        found
    }

    /// Stops looking for itself while nothing runs inside. Returns what must
    /// happen before [`Tree::wake`] is called; nothing if it goes on looking.
    pub fn rest(&mut self) -> Option<Alarm> {
        self.watch.as_mut()?.rest()
    }

    /// Looks again soon, if it has stopped.
    pub fn stir(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.stir();
        }
    }

    /// Looks at once when [`Tree::exceeded`] is asked.
    pub fn wake(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.wake();
        }
    }

    /// Sets the limits that hold for all inside together, and returns what
    /// holds them.
    fn limit(&mut self, profile: &Profile) -> Option<Held> {
        let limits = &profile.limits;
        let mut watch = Watch::new(profile);
        let held = self.cgroup.as_mut().map(|cgroup| {
            cgroup.bound(&Bounds {
                memory_bytes: limits.memory_bytes,
                processes: limits.processes,
                cpu_weight: limits.cpu_weight,
            })
        });
        watch.is_held(
            held.is_some_and(|held| held.memory.is_ok()),
            held.is_some_and(|held| held.processes.is_ok()),
        );
        self.watch = Some(watch);
        held
    }

    /// Lists what is inside, the first process left out, at most so many.
    pub fn members(&self, most: usize) -> Vec<Member> {
        let mut found = members::below(getpid(), most.saturating_add(1));
        found.retain(|member| member.pid != self.pid());
        found.truncate(most);
        found
    }

    /// Lists the pids of all inside, the first process left out, and of those
    /// that have ended and were not waited for.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let mut found = members::pids_below(getpid(), usize::MAX);
        found.retain(|&pid| pid != self.pid());
        found
    }

    /// Records how many bytes the processes wrote that init has reaped.
    pub fn wrote(&mut self, bytes: u64) {
        if let Some(watch) = &mut self.watch {
            watch.wrote(bytes);
        }
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
        if !self.has_pid_namespace() {
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
        if !self.has_pid_namespace() {
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
    used(&of_children())
}

/// Returns how many bytes all reaped descendants of this process wrote.
pub(crate) fn written_by_children() -> u64 {
    // The kernel counts it in blocks of this size.
    of_children().ru_oublock.cast_unsigned() * 512
}

fn of_children() -> libc::rusage {
    // SAFETY: all fields are integers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local that outlives the call.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    usage
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

pub(crate) fn readable_within(fd: BorrowedFd<'_>, time: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(time).expect("a few seconds fit");
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    Ok(poll(&mut fds, Some(&limit))? > 0)
}

impl Drop for Tree {
    fn drop(&mut self) {
        // One that never began, or that failed to, goes at once.
        self.kill();
        while !matches!(wait(Some(self.init), true), Ok(Some(_)) | Err(_)) {}
        if let Some(cgroup) = self.cgroup.take() {
            cgroup.remove();
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Weak { rung, why } => {
                write!(f, "only the walls `{}` can be had here: {why}", rung.word())
            }
            Self::Build(what) => f.write_str(what),
            Self::Withheld(error) => write!(f, "it may not start: {error}"),
            Self::Prepare(error) => write!(f, "cannot make a process: {error}"),
        }
    }
}

impl std::error::Error for Error {}
