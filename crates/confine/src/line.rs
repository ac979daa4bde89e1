//! What a keeper and the first process inside say to each other.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use crate::profile::{Profile, Rung};
use crate::terminal::Size;
use crate::tree::{Exit, Usage};

/// The longest message that comes from inside: the answer of a command has
/// [`MAX_ANSWER`] bytes at most, a few more in JSON.
const MAX_MESSAGE: usize = 64 * 1024;

/// The longest plan that goes over in a message. Most have a tenth of that; a
/// command and its environment may be larger than any message.
const MAX_PLAN: usize = 32 * 1024;

/// The most bytes that are read from the answer which a command leaves.
pub(crate) const MAX_ANSWER: usize = 4096;

/// Says that the plan is in a file.
const IN_FILE: &[u8] = b"o";

/// Says that the command may start.
const GO: &[u8] = b"g";

/// Everything that the first process inside must know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct InitPlan {
    pub(crate) profile: Profile,
    pub(crate) argv: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) note: Option<Note>,
    /// How large its terminal is, if it has one.
    pub(crate) terminal: Option<Size>,
}

/// A small file that the command finds, and one that it may leave.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Note {
    /// Where it is inside: a private directory's.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
    /// Where an answer may be when the command has ended, if one is wanted.
    pub answer: Option<PathBuf>,
}

/// What the first process inside reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// Everything that could be built ahead of need is.
    Prepared(Rung),
    /// The walls stand; the command is about to start.
    Ready(Built),
    /// The walls could not be built; nothing was started.
    Unready(String),
    /// The program could not be started (errno).
    Failed(i32),
    /// The command itself ended; others may be left.
    Exited {
        /// How.
        exit: Exit,
        /// Resources that it used.
        usage: Usage,
        /// What it left as its answer, if it was given a note.
        answer: Option<String>,
    },
    /// How many bytes all that have ended as our children had written.
    Wrote(u64),
    /// Nothing is left inside. What all of it used.
    Empty(Usage),
}

/// What stands, as far as it could come out one way or another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Built {
    /// The version of Landlock in force; 0 for none.
    pub landlock: i32,
    /// Nobody else is known inside.
    pub user_namespace: bool,
    /// The PID namespace bounds the number of processes (Linux 6.14).
    pub pids_bounded: bool,
    /// Why the host's name can be seen, if it can.
    pub hostname: Option<String>,
    /// Why the run has no home directory, if it has none.
    pub homeless: Option<String>,
}

/// One end of the line.
pub(crate) struct InitChannel(OwnedFd);

impl InitChannel {
    /// Both ends of a new line. Messages keep their borders.
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(one), Self(other)))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Hands over the plan.
    pub(crate) fn order(&self, plan: &InitPlan) -> io::Result<()> {
        let plan = serde_json::to_vec(plan)?;
        if plan.len() <= MAX_PLAN {
            return self.send(&plan, &[]);
        }
        let mut file = File::from(memfd_create("plan", MemfdFlags::CLOEXEC)?);
        file.write_all(&plan)?;
        file.rewind()?;
        self.send(IN_FILE, &[file.as_fd()])
    }

    fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            rights.push(SendAncillaryMessage::ScmRights(fds));
        }
        let bytes = [IoSlice::new(bytes)];
        sendmsg(&self.0, &bytes, &mut rights, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits for the plan; `None` when the keeper is gone.
    pub(crate) fn receive_order(&self) -> io::Result<Option<InitPlan>> {
        let (mut bytes, mut fds) = self.receive(MAX_PLAN)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes == IN_FILE {
            let file = fds.pop().ok_or(io::ErrorKind::InvalidData)?;
            bytes.clear();
            File::from(file).read_to_end(&mut bytes)?;
        }
        Ok(Some(serde_json::from_slice(&bytes)?))
    }

    /// Waits for a message, with what is handed over by it.
    fn receive(&self, most: usize) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        let mut bytes = vec![0; most];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(
            &self.0,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut rights,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        bytes.truncate(got.bytes);
        let fds = rights.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        Ok((bytes, fds.flatten().collect()))
    }

    /// Lets the command start, once all that is to bound it does, and hands
    /// over its descriptors: three, or none if it is to have a terminal.
    pub(crate) fn go(&self, stdio: &[OwnedFd]) {
        let fds: Vec<_> = stdio.iter().map(AsFd::as_fd).collect();
        // One that could not build the walls is gone, and has said why.
        let _ = self.send(GO, &fds);
    }

    /// Waits until the command may start; `None` when the keeper is gone.
    pub(crate) fn receive_go(&self) -> io::Result<Option<Vec<OwnedFd>>> {
        let (bytes, fds) = self.receive(GO.len())?;
        Ok((!bytes.is_empty()).then_some(fds))
    }

    /// Reports, in one message.
    pub(crate) fn tell(&self, news: &[Notice]) {
        self.tell_with(news, &[]);
    }

    /// Reports, and hands something over.
    pub(crate) fn tell_with(&self, news: &[Notice], with: &[BorrowedFd<'_>]) {
        // A keeper that is gone hears nothing, and we are about to follow it.
        if let Ok(bytes) = serde_json::to_vec(news) {
            let _ = self.send(&bytes, with);
        }
    }

    /// Reads one report; empty when there will be none any more.
    pub(crate) fn hear(&self) -> io::Result<Vec<Notice>> {
        Ok(self.hear_with()?.0)
    }

    /// Reads one report, and what is handed over with it.
    pub(crate) fn hear_with(&self) -> io::Result<(Vec<Notice>, Option<OwnedFd>)> {
        let (bytes, mut fds) = self.receive(MAX_MESSAGE)?;
        let news = match bytes.is_empty() {
            true => vec![],
            false => serde_json::from_slice(&bytes)?,
        };
        Ok((news, fds.pop()))
    }
}
