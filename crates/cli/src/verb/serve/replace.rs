//! Ending the server that runs.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use weighlock_engine::Engine;

use crate::client::{Failure, short};
use crate::paths::Paths;

/// A server that was asked to end does so at once; this bounds one that hangs.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// How often we look whether a server that has just been started listens.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Ends servers until none uses the state directory. A client that lost its
/// server may have started one, which has the directory before it listens.
pub(super) async fn free_state_dir(paths: &Paths) -> Result<(), Failure> {
    let until = Instant::now() + STOP_WITHIN;
    while Engine::is_in_use(&paths.state_dir) && Instant::now() < until {
        if !stop_running(paths)? {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    Ok(())
}

/// Ends the running server and returns whether there was one. The kernel names
/// the process that listens on the socket, so a stale PID cannot be hit.
pub(super) fn stop_running(paths: &Paths) -> Result<bool, Failure> {
    let Ok(line) = short(&paths.own_socket).and_then(|address| UnixStream::connect(&address))
    else {
        return Ok(false);
    };
    let stop = || -> std::io::Result<bool> {
        let server = socket_peercred(&line)?.pid;
        let server = pidfd_open(server, PidfdFlags::empty())?;
        pidfd_send_signal(&server, Signal::TERM)?;
        let limit = Timespec::try_from(STOP_WITHIN).expect("a few seconds fit");
        let mut ended = [PollFd::new(&server, PollFlags::IN)];
        Ok(poll(&mut ended, Some(&limit))? > 0)
    };
    match stop() {
        Ok(true) => Ok(true),
        Ok(false) => Err(Failure::new(
            "the server that runs was asked to end and has not; no other was started",
            "wait for it and try again, or end its process",
        )),
        Err(error) => Err(Failure::new(
            format!("cannot end the server that runs: {error}; no other was started"),
            "only the user who started it can stop it",
        )),
    }
}
