//! A helper program in a session of its own, heard out for a bounded time.
//!
//! For programs that run a person's own files, which may ask, wait for ever or
//! leave something running. A process group alone would not do: one that is in
//! the background of a terminal is stopped when it touches it, and what it
//! starts with job control has groups of its own.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, set_parent_process_death_signal,
    setsid,
};

use crate::members;

/// How long ended processes may take to be gone. It is usually a millisecond.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// How much a helper may take.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Past this, all of it is ended.
    pub time: Duration,
    /// The most that it may write.
    pub bytes: usize,
}

/// Why nothing was heard.
#[derive(Debug)]
pub enum Unheard {
    /// It could not be started.
    Start(io::Error),
    /// It did not end in time.
    Late,
    /// It wrote more than it may.
    TooMuch,
}

/// Runs a program and returns what it wrote before it ended. It has no
/// terminal, no input and only this environment, and starts in `/`. Nothing of
/// its session goes on after this returns; a daemon that left the session does.
pub fn hear(
    program: &str,
    args: &[&str],
    env: &[(String, String)],
    patience: Patience,
) -> Result<Vec<u8>, Unheard> {
    let until = Instant::now() + patience.time;
    let mut child = start(program, args, env).map_err(Unheard::Start)?;
    let heard = listen(&mut child, until, patience.bytes);
    end(&mut child);
    heard
}

fn start(program: &str, args: &[&str], env: &[(String, String)]) -> io::Result<Child> {
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // SAFETY: both are single system calls, which a child of a process with
    // threads may make; nothing is allocated and no lock is taken.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            // It does not outlive a server that is killed meanwhile.
            set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        });
    }
    command.spawn()
}

/// Reads until the program itself has ended. Waiting for the end of the pipe
/// would be waiting for everything that it left in the background.
fn listen(child: &mut Child, until: Instant, most: usize) -> Result<Vec<u8>, Unheard> {
    let ended =
        pidfd_open(pid(child), PidfdFlags::empty()).map_err(|e| Unheard::Start(e.into()))?;
    let mut pipe = child.stdout.take().expect("its output is piped");
    let flags = fcntl_getfl(&pipe).map_err(|e| Unheard::Start(e.into()))?;
    fcntl_setfl(&pipe, flags | OFlags::NONBLOCK).map_err(|e| Unheard::Start(e.into()))?;
    let mut heard = vec![];
    let mut open = true;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Unheard::Late);
        }
        let limit = Timespec::try_from(left).unwrap_or_default();
        let mut fds = [
            PollFd::new(&ended, PollFlags::IN),
            PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN),
        ];
        // A pipe at its end is always ready.
        let watched = if open { &mut fds[..] } else { &mut fds[..1] };
        match poll(watched, Some(&limit)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Unheard::Start(error.into())),
        }
        // Before the reading: what it wrote before its end is then in the pipe.
        let over = !fds[0].revents().is_empty();
        open = open && drain(&mut pipe, &mut heard, most)?;
        if over {
            return Ok(heard);
        }
    }
}

/// Takes what is in the pipe now; returns whether there may be more.
fn drain(pipe: &mut impl Read, heard: &mut Vec<u8>, most: usize) -> Result<bool, Unheard> {
    let mut bytes = [0; 8192];
    loop {
        match pipe.read(&mut bytes) {
            Ok(0) => return Ok(false),
            Ok(length) => heard.extend_from_slice(&bytes[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(_) => return Ok(false),
        }
        if heard.len() > most {
            return Err(Unheard::TooMuch);
        }
    }
}

/// Ends the whole session. Its leader is reaped last: until then its number
/// can mean no other session.
fn end(child: &mut Child) {
    let leader = pid(child);
    let _ = kill_process_group(leader, Signal::KILL);
    let until = Instant::now() + GONE_WITHIN;
    // Those that had job control have groups of their own, and one that was
    // forking may have been missed.
    while members::kill_session(leader) > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = child.wait();
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}
