//! Where keepers come from.
//!
//! The server may be large, and forking a large process is slow. So it starts
//! one small process that does nothing but fork keepers: the nursery.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use weighlock_confine::{Patience, Primitive, Unheard, hear};

/// The word after the nursery's own by which its program is asked to try what
/// the kernel grants, and tell.
pub(crate) const PROBE: &str = "probe";

/// The same for one layer over one directory; both come before it.
pub(crate) const TRY_LAYER: &str = "try-layer";
pub(crate) const TRY_LENT_LAYER: &str = "try-lent-layer";

/// How long all tries may take. Each has a second, and takes milliseconds.
const PROBE_FOR: Patience = Patience {
    time: Duration::from_secs(10),
    bytes: 1024 * 1024,
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

    /// Returns the word that it and all keepers have in their command lines.
    pub fn word(&self) -> Option<&str> {
        self.args.first().map(String::as_str)
    }

    /// Makes a keeper and returns the line to it.
    pub(crate) fn launch(&self) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        self.with(|running| send(&running.socket, theirs.as_fd()))?;
        Ok(ours)
    }

    /// Tries each thing that walls are made of, in a small process as keepers
    /// are. Blocks for some tens of milliseconds.
    pub fn probe(&self) -> io::Result<Vec<Primitive>> {
        self.hear(&[PROBE])
    }

    /// Tries whether a directory can be shown through a layer, which holds an
    /// empty `upper` and `work`; the error says why not. `lent`: root owns both,
    /// and a run gets them as another user's. Blocks as `probe`.
    pub fn try_layer(&self, dir: &Path, layer: &Path, lent: bool) -> Result<(), String> {
        let not_text = || "its path is not text".to_owned();
        let dir = dir.to_str().ok_or_else(not_text)?;
        let layer = layer.to_str().ok_or_else(not_text)?;
        let word = if lent { TRY_LENT_LAYER } else { TRY_LAYER };
        let tried: io::Result<Option<String>> = self.hear(&[dir, layer, word]);
        match tried {
            Ok(None) => Ok(()),
            Ok(Some(why)) => Err(why),
            Err(error) => Err(error.to_string()),
        }
    }

    fn hear<T: serde::de::DeserializeOwned>(&self, words: &[&str]) -> io::Result<T> {
        let args = self.args.iter().map(String::as_str);
        let args: Vec<&str> = args.chain(words.iter().copied()).collect();
        let program = self.program.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        match hear(program, &args, &[], PROBE_FOR) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(Unheard::Start(error)) => Err(error),
            Err(Unheard::Late) => Err(io::ErrorKind::TimedOut.into()),
            Err(Unheard::TooMuch) => Err(io::ErrorKind::InvalidData.into()),
        }
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

fn send(socket: &OwnedFd, line: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let lines = [line];
    rights.push(SendAncillaryMessage::ScmRights(&lines));
    sendmsg(
        socket,
        &[IoSlice::new(b"k")],
        &mut rights,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}
