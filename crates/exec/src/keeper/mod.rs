//! The keeper process: one per run, small, single-threaded.

mod keep;
mod line;
mod pipes;
mod pipestatus;

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use weighlock_confine::{Fork, forget_children, fork};

/// Serves as nursery on standard input: forks a keeper for every message until
/// the server is gone. The process must be single-threaded.
pub fn serve_nursery() -> io::Result<()> {
    // Out of the server's session: Ctrl C at its terminal is not for us.
    let _ = rustix::process::setsid();
    forget_children(true);
    // Read once, for all keepers.
    let _ = crate::status::boot();
    while let Some((line, cwd)) = receive()? {
        if let Ok(Fork::Child) = fork() {
            forget_children(false);
            keep::keep(line, cwd);
        }
    }
    Ok(())
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
