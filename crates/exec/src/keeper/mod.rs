//! The keeper process: one per run, small, single-threaded.

mod begin;
mod keep;
mod line;
mod output_file;
mod pipes;
mod pipestatus;
mod terminal;

pub(crate) use begin::IN_ITS_PLACE;
pub use keep::MANY_PROCESSES;

use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::pipe::{PipeFlags, pipe_with};
use weighlock_confine::{Fork, Spare, exit, forget_children, fork, get_ready, reset_signals};

use crate::nursery::{PROBE, TRY_LAYER};
use crate::status::Keeper;

/// The name of a keeper's socket in its run's directory, which is there once
/// its server is gone.
pub(crate) const KEEPER_SOCKET: &str = "keeper.sock";

/// Keepers that are there before they are needed, with the walls that every
/// run has: making them takes longer than a short command does. Enough for the
/// few calls that agents make at once; each takes about 1 MiB.
const SPARES: usize = 4;

/// Serves as nursery on standard input: has keepers ready for the messages
/// that come there, until the server is gone. The process must be
/// single-threaded.
///
/// Started with one word more, it tells what the kernel grants instead; see
/// [`crate::Nursery::probe`].
pub fn serve_nursery() -> io::Result<()> {
    let mut words = std::env::args_os();
    match words.next_back() {
        Some(word) if word == PROBE => {
            reset_signals();
            return tell(&weighlock_confine::probe());
        }
        Some(word) if word == TRY_LAYER => {
            let layer = words.next_back().unwrap_or_default();
            let dir = words.next_back().unwrap_or_default();
            reset_signals();
            let tried = weighlock_confine::probe_layer(dir.as_ref(), layer.as_ref());
            return tell(&tried.err());
        }
        _ => {}
    }
    // Out of the server's session: Ctrl C at its terminal is not for us.
    let _ = rustix::process::setsid();
    reset_signals();
    forget_children(true);
    // Once, for all keepers.
    let _ = crate::status::boot();
    get_ready();
    let mut spares = vec![];
    loop {
        while spares.len() < SPARES {
            let (gone, here) = pipe_with(PipeFlags::CLOEXEC)?;
            match fork() {
                Ok(Fork::Child) => {
                    drop((gone, spares));
                    wait_for_work(here);
                }
                Ok(Fork::Parent(_)) => spares.push(gone),
                // The ones there are may still serve.
                Err(_) if !spares.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        if !wait_for_need(&mut spares)? {
            return Ok(());
        }
    }
}

fn tell(found: &impl serde::Serialize) -> io::Result<()> {
    io::stdout().write_all(&serde_json::to_vec(found)?)?;
    io::stdout().flush()
}

/// Waits until a spare keeper was taken or has died: then nobody holds the
/// other end of its pipe. Returns false when the server is gone.
fn wait_for_need(spares: &mut Vec<OwnedFd>) -> io::Result<bool> {
    // The server's messages are for the spare keepers; we only see it go.
    let server = PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::empty());
    let ends = spares
        .iter()
        .map(|spare| PollFd::new(spare, PollFlags::empty()));
    let mut fds: Vec<_> = [server].into_iter().chain(ends).collect();
    while let Err(error) = poll(&mut fds, None) {
        if error != rustix::io::Errno::INTR {
            return Err(error.into());
        }
    }
    let mut gone = fds.iter().map(|fd| !fd.revents().is_empty());
    let server_gone = gone.next() == Some(true);
    let gone: Vec<bool> = gone.collect();
    let mut each = gone.into_iter();
    spares.retain(|_| each.next() == Some(false));
    Ok(!server_gone)
}

/// Builds what can be built ahead, waits for one message and serves as the
/// keeper it asks for.
fn wait_for_work(here: OwnedFd) -> ! {
    forget_children(false);
    let this = Keeper::this();
    let spare = Spare::prepare();
    match (receive(), this) {
        (Ok(Some(line)), Ok(this)) => {
            drop(here);
            keep::keep(line, spare, this)
        }
        _ => {
            // Its cgroup goes with it.
            drop(spare);
            exit(0)
        }
    }
}

fn receive() -> io::Result<Option<UnixStream>> {
    loop {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
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
        if let Some(line) = fds.next() {
            return Ok(Some(line.into()));
        }
    }
}
