//! Where keepers come from.
//!
//! The server may be large, and forking a large process is slow. So it starts
//! one small process that does nothing but fork keepers: the nursery.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};

/// Starts keepers. Restarts itself when its process is gone.
pub struct Nursery {
    program: PathBuf,
    args: Vec<String>,
    running: Mutex<Option<Running>>,
}

struct Running {
    process: Child,
    socket: OwnedFd,
}

impl Nursery {
    /// Names the program that runs [`crate::serve_nursery`] on its standard
    /// input, and starts it.
    pub fn new(program: PathBuf, args: Vec<String>) -> io::Result<Self> {
        let nursery = Self {
            program,
            args,
            running: Mutex::new(None),
        };
        nursery.with(|_| Ok(()))?;
        Ok(nursery)
    }

    /// Makes a keeper and returns the line to it. `cwd` is the directory its
    /// command will run in.
    pub(crate) fn launch(&self, cwd: BorrowedFd<'_>) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        self.with(|running| send(&running.socket, [theirs.as_fd(), cwd]))?;
        Ok(ours)
    }

    fn with(&self, deed: impl Fn(&Running) -> io::Result<()>) -> io::Result<()> {
        let mut running = self.running.lock().unwrap_or_else(|lock| lock.into_inner());
        if let Some(running) = &*running
            && deed(running).is_ok()
        {
            return Ok(());
        }
        if let Some(mut dead) = running.take() {
            let _ = dead.process.kill();
            let _ = dead.process.wait();
        }
        let fresh = self.start()?;
        let done = deed(&fresh);
        *running = Some(fresh);
        done
    }

    fn start(&self) -> io::Result<Running> {
        // Each message is one keeper; the borders must be kept.
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let process = Command::new(&self.program)
            // What `ps` shows, also of the keepers and inside of runs.
            .arg0("weighlock-keeper")
            .args(&self.args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            // Nobody must wait for the end of the server's own pipe because a
            // keeper lives.
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Running {
            process,
            socket: ours,
        })
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        let running = self
            .running
            .get_mut()
            .unwrap_or_else(|lock| lock.into_inner());
        if let Some(running) = running {
            // Only the nursery ends; its keepers have sessions of their own.
            let _ = running.process.kill();
            let _ = running.process.wait();
        }
    }
}

fn send(socket: &OwnedFd, fds: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(
        socket,
        &[IoSlice::new(b"k")],
        &mut rights,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}
