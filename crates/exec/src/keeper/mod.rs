//! The keeper process: one per run, small, single-threaded.

mod keep;
mod line;
mod pipes;
mod pipestatus;

pub use keep::MANY_PROCESSES;

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::pipe::{PipeFlags, pipe_with};
use weighlock_confine::{Fork, exit, forget_children, fork};

use crate::status::Keeper;

/// Keepers that are there before they are needed: forking one takes a good
/// part of what a short command takes in all.
const SPARES: usize = 2;

/// Serves as nursery on standard input: has keepers ready for the messages
/// that come there, until the server is gone. The process must be
/// single-threaded.
pub fn serve_nursery() -> io::Result<()> {
    // Out of the server's session: Ctrl C at its terminal is not for us.
    let _ = rustix::process::setsid();
    forget_children(true);
    // Read once, for all keepers.
    let _ = crate::status::boot();
    let (taken, tell) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut spares = 0;
    loop {
        while spares < SPARES {
            match fork() {
                Ok(Fork::Child) => {
                    drop(taken);
                    wait_for_work(tell);
                }
                Ok(Fork::Parent(_)) => spares += 1,
                // The ones there are may still serve.
                Err(_) if spares > 0 => break,
                Err(error) => return Err(error),
            }
        }
        if !wait_for_need(&taken)? {
            return Ok(());
        }
        let mut signs = [0; SPARES];
        spares -= rustix::io::read(&taken, &mut signs)?.min(spares);
    }
}

/// Waits until a spare keeper was taken; false when the server is gone.
fn wait_for_need(taken: &OwnedFd) -> io::Result<bool> {
    let server = rustix::stdio::stdin();
    let mut fds = [
        PollFd::new(taken, PollFlags::IN),
        // Its messages are for the spare keepers; we only see it go.
        PollFd::from_borrowed_fd(server, PollFlags::empty()),
    ];
    loop {
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => continue,
            done => drop(done?),
        }
        if !fds[1].revents().is_empty() {
            return Ok(false);
        }
        return Ok(true);
    }
}

/// Waits for one message and serves as the keeper it asks for.
fn wait_for_work(tell: OwnedFd) -> ! {
    let this = Keeper::this();
    match (receive(), this) {
        (Ok(Some((line, cwd))), Ok(this)) => {
            let _ = rustix::io::write(&tell, b"t");
            drop(tell);
            forget_children(false);
            keep::keep(line, cwd, this)
        }
        _ => exit(0),
    }
}

fn receive() -> io::Result<Option<(UnixStream, OwnedFd)>> {
    loop {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            rustix::stdio::stdin(),
            &mut [IoSliceMut::new(&mut byte)],
            &mut rights,
            RecvFlags::CMSG_CLOEXEC,
        );
        match received {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(message) if message.bytes > 0 => {}
            _ => return Ok(None),
        }
        let mut fds = rights
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            })
            .flatten();
        // Out of descriptors, say: the server sees its line cut.
        if let (Some(line), Some(cwd)) = (fds.next(), fds.next()) {
            return Ok(Some((line.into(), cwd)));
        }
    }
}
