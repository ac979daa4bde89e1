//! The first process inside: starts the command, reaps, and says how it ended.
//!
//! In a PID namespace it is PID 1, so that its death is the death of all
//! inside. Without one it is a subreaper, so that nothing gets lost above it.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{
    DumpableBehavior, Pid, Signal, getpid, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal, setsid,
};

use rustix::system::uname;

use crate::fork::exit;
use crate::tree::{Containment, Notice, Program, used_by_children, wait};

/// Enough for the largest builds, and few enough to be ended at once.
const MAX_PIDS: &str = "4096";

/// What the keeper asked for when it made this process.
pub(crate) struct Wanted {
    pub(crate) containment: Containment,
    /// Who we were outside, when there is a user namespace to fill.
    pub(crate) map: Option<Identity>,
}

/// A user and group as the host knows them.
#[derive(Clone, Copy)]
pub(crate) struct Identity {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Prepares this process and then serves as init until nothing is left inside.
pub(crate) fn serve(wanted: Wanted, program: Program, out: &OwnedFd) -> ! {
    // A copy of the keeper's descriptors came along. The write end of the
    // command's own input is among them: kept, it would never end.
    keep_only(&[
        out.as_raw_fd(),
        program.stdin.as_raw_fd(),
        program.stdout.as_raw_fd(),
        program.stderr.as_raw_fd(),
    ]);
    match prepare(wanted, out) {
        Ok(()) => tell(out, &[Notice::Ready]),
        Err(error) => give_up(out, Notice::Unready(code(&error))),
    }
    match start(program) {
        Ok(shell) => reap_all(shell, out),
        Err(error) => give_up(out, Notice::Failed(code(&error))),
    }
}

fn prepare(wanted: Wanted, out: &OwnedFd) -> io::Result<()> {
    if let Some(user) = wanted.map {
        map(user)?;
    }
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The keeper may have died before that call; then nobody reads our pipe.
    if reader_is_gone(out)? {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    // No controlling terminal, and no way for the command to get one.
    setsid()?;
    // Raising it needs no privilege. When memory runs out, a command goes
    // before the server and its keepers do.
    let _ = fs::write("/proc/self/oom_score_adj", "500");
    // What we hold is not for the command, which may be the same user. (Root
    // can look anyway.) After the maps: their files would be out of our reach.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    match wanted.containment {
        Containment::PidNamespace => {
            // Where `/proc` is masked it cannot be mounted anew; the tree is
            // held all the same.
            if mount_proc().is_ok() {
                bound_pids();
            }
        }
        Containment::Subreaper => {
            set_child_subreaper(Some(getpid()))?;
        }
    }
    Ok(())
}

/// Maps the caller's own identity, and nothing else, into the new namespace.
fn map(user: Identity) -> io::Result<()> {
    let Identity { uid, gid } = user;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// Bounds how many processes and threads there can be inside, so that a loop
/// of forks cannot take all pids of the machine. The bound of a namespace is
/// its own since Linux 6.14; before that, writing it would change the host's.
/// Other limits will come with the other walls.
fn bound_pids() {
    if is_at_least(6, 14) {
        let _ = fs::write("/proc/sys/kernel/pid_max", MAX_PIDS);
    }
}

fn is_at_least(major: u32, minor: u32) -> bool {
    let kernel = uname();
    let release = kernel.release().to_string_lossy();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    found >= (major, minor)
}

/// Gives the namespace a `/proc` of its own, so that `ps` shows the run's
/// processes and pids there are the ones that work inside.
fn mount_proc() -> rustix::io::Result<()> {
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    mount(
        "proc",
        "/proc",
        "proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        None,
    )
}

fn start(program: Program) -> io::Result<Pid> {
    // Whatever we hold, the command gets three descriptors and no more.
    close_range(3, RawFd::MAX, libc::CLOSE_RANGE_CLOEXEC)?;
    let child = Command::new(&program.argv[0])
        .args(&program.argv[1..])
        .env_clear()
        .envs(program.env)
        .stdin(Stdio::from(program.stdin))
        .stdout(Stdio::from(program.stdout))
        .stderr(Stdio::from(program.stderr))
        .process_group(0)
        .spawn()?;
    Ok(Pid::from_raw(child.id() as i32).expect("a child has a positive pid"))
}

/// Closes all descriptors above 2 but these.
fn keep_only(kept: &[RawFd]) {
    let mut kept = kept.to_vec();
    kept.sort_unstable();
    let mut from = 3;
    for fd in kept.into_iter().filter(|&fd| fd >= 3) {
        let _ = close_range(from, fd - 1, 0);
        from = fd + 1;
    }
    let _ = close_range(from, RawFd::MAX, 0);
}

fn close_range(from: RawFd, to: RawFd, flags: libc::c_uint) -> io::Result<()> {
    if from > to {
        return Ok(());
    }
    // SAFETY: this process is a fork that ends without dropping what it was
    // copied from, so nothing here uses or closes these descriptors again.
    let done = unsafe { libc::syscall(libc::SYS_close_range, from, to, flags) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn reap_all(shell: Pid, out: &OwnedFd) -> ! {
    let mut news: Vec<Notice> = vec![];
    loop {
        // With news at hand, only what has ended already is waited for: most
        // shells leave nothing behind, and then one message tells all.
        match wait(None, news.is_empty()) {
            Ok(Some((pid, exit, usage))) if pid == shell => news.push(Notice::Exited(exit, usage)),
            Ok(Some(_)) => {}
            Ok(None) => tell(out, &std::mem::take(&mut news)),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            // No child is left: nothing inside but us. Taking the namespace
            // down takes a while, and nobody has to wait for that.
            Err(_) => {
                news.push(Notice::Empty(used_by_children()));
                tell(out, &news);
                exit(0)
            }
        }
    }
}

/// Tells the keeper, in one message. One that does not listen any more is
/// dead, and so are we, soon.
fn tell(out: &OwnedFd, news: &[Notice]) {
    let bytes: Vec<u8> = news.iter().flat_map(|notice| notice.encode()).collect();
    let _ = rustix::io::write(out, &bytes);
}

fn give_up(out: &OwnedFd, notice: Notice) -> ! {
    tell(out, &[notice]);
    exit(1)
}

fn reader_is_gone(out: &OwnedFd) -> io::Result<bool> {
    let mut fds = [PollFd::from_borrowed_fd(out.as_fd(), PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec::default()))?;
    Ok(fds[0].revents().contains(PollFlags::ERR))
}

fn code(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
