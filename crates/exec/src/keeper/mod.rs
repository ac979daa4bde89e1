//! The keeper process: one per run, small, single-threaded.

mod begin;
mod keep;
mod line;
mod mask;
mod output_file;
mod pipes;
mod pipestatus;
mod terminal;

pub(crate) use begin::IN_ITS_PLACE;
pub use keep::MANY_PROCESSES;
pub use mask::hide;

use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::pipe::{PipeFlags, pipe_with};
use weighlock_confine::{Fork, Spare, exit, forget_children, fork, get_ready, reset_signals};

use crate::nursery::{PROBE, TRY_LAYER, TRY_LENT_LAYER};
use crate::status::Keeper;

/// The name of a keeper's socket in its run's directory, which is there once
/// its server is gone.
pub(crate) const KEEPER_SOCKET: &str = "keeper.sock";

/// Keepers that are there before they are needed, with the walls that every
/// run has: making them takes longer than a short command does. Enough for the
/// few calls that agents make at once; each takes about 1 MiB.
const SPARES: usize = 4;

/// With so many left, others are made once a run that has begun is over: making
/// one takes as much of the machine as a short command does.
const ENOUGH: usize = 2;

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
        Some(word) if word == TRY_LAYER || word == TRY_LENT_LAYER => {
            let layer = words.next_back().unwrap_or_default();
            let dir = words.next_back().unwrap_or_default();
            reset_signals();
            let lent = word == TRY_LENT_LAYER;
            let tried = weighlock_confine::probe_layer(dir.as_ref(), layer.as_ref(), lent);
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
    let mut made: Vec<ForkedKeeper> = vec![];
    loop {
        while is_one_wanted(&made) {
            let (end, place) = pipe_with(PipeFlags::CLOEXEC)?;
            match fork() {
                Ok(Fork::Child) => {
                    drop((end, made));
                    wait_for_work(place);
                }
                Ok(Fork::Parent(_)) => made.push(ForkedKeeper { end, waits: true }),
                // The ones there are may still serve.
                Err(_) if !made.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        if !wait_for_need(&mut made)? {
            return Ok(());
        }
    }
}

/// A keeper that was made, until it leaves its place to another.
struct ForkedKeeper {
    /// Of a pipe whose other end is its place.
    end: OwnedFd,
    /// It has nothing to do yet.
    waits: bool,
}

fn is_one_wanted(made: &[ForkedKeeper]) -> bool {
    let waiting = made.iter().filter(|one| one.waits).count();
    waiting < ENOUGH || made.len() < SPARES
}

fn tell(found: &impl serde::Serialize) -> io::Result<()> {
    io::stdout().write_all(&serde_json::to_vec(found)?)?;
    io::stdout().flush()
}

/// Waits until a keeper has something to do, of which it says a byte, or has
/// left its place or died: then nobody holds the other end of its pipe. Returns
/// false when the server is gone.
fn wait_for_need(made: &mut Vec<ForkedKeeper>) -> io::Result<bool> {
    // The server's messages are for the spare keepers; we only see it go.
    let server = PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::empty());
    let ends = { made.iter() }.map(|one| {
        let flags = match one.waits {
            true => PollFlags::IN,
            false => PollFlags::empty(),
        };
        PollFd::new(&one.end, flags)
    });
    let mut fds: Vec<_> = [server].into_iter().chain(ends).collect();
    while let Err(error) = poll(&mut fds, None) {
        if error != rustix::io::Errno::INTR {
            return Err(error.into());
        }
    }
    let found: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
    let mut found = found.into_iter();
    let server_gone = found.next().is_some_and(|server| !server.is_empty());
    made.retain_mut(|one| {
        let found = found.next().unwrap_or(PollFlags::empty());
        one.waits &= !found.contains(PollFlags::IN);
        !found.intersects(PollFlags::HUP | PollFlags::ERR)
    });
    Ok(!server_gone)
}

/// Builds what can be built ahead, waits for one message and serves as the
/// keeper it asks for.
fn wait_for_work(place: OwnedFd) -> ! {
    forget_children(false);
    let this = Keeper::this();
    let spare = Spare::prepare();
    match (receive(), this) {
        (Ok(Some(line)), Ok(this)) => keep::keep(line, spare, this, place),
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
