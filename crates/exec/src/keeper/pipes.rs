//! The three descriptors of a command, as its keeper holds them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{MemfdFlags, Mode, OFlags, fchmod, fcntl_setfl, memfd_create};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use super::terminal::PtyMaster;
use crate::spec::{INPUT, Stdin};

/// A read starts this small: most commands say little.
const SMALL: usize = 64 * 1024;

/// A pipe that was full at once is made this large, the most that an ordinary
/// user may ask for.
const LARGE: usize = 1024 * 1024;

/// Our ends.
pub(super) struct Pipes {
    pub(super) stdin: StdinPipe,
    pub(super) outputs: [Output; 2],
    /// The terminal that all of them are, if they are one.
    pub(super) terminal: Option<PtyMaster>,
}

/// What the command reads.
pub(super) struct StdinPipe {
    pipe: Option<File>,
    waiting: VecDeque<u8>,
    close: bool,
}

/// What the command writes.
pub(super) struct Output {
    pipe: Option<File>,
    buffer: Vec<u8>,
}

/// Opens pipes; returns the command's ends, too.
pub(super) fn open(stdin: Stdin, dir: &Path) -> io::Result<(Pipes, [OwnedFd; 3])> {
    let (stdout, stdout_end) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr, stderr_end) = pipe_with(PipeFlags::CLOEXEC)?;
    let (input, stdin_end) = match stdin {
        Stdin::Null | Stdin::Terminal(_) => (None, File::open("/dev/null")?.into()),
        Stdin::File => (None, in_memory(&dir.join(INPUT))?),
        Stdin::Pipe => {
            let (end, ours) = pipe_with(PipeFlags::CLOEXEC)?;
            can_be_reopened(&end)?;
            (Some(ours), end)
        }
    };
    can_be_reopened(&stdout_end)?;
    can_be_reopened(&stderr_end)?;
    let pipes = Pipes {
        stdin: StdinPipe::new(input.map(ours).transpose()?),
        outputs: [Output::new(stdout)?, Output::new(stderr)?],
        terminal: None,
    };
    Ok((pipes, [stdin_end, stdout_end, stderr_end]))
}

/// Serves a terminal as a command's input and output.
pub(super) fn of_terminal(master: OwnedFd) -> io::Result<Pipes> {
    let output = Output::new(master.try_clone()?)?;
    Ok(Pipes {
        stdin: StdinPipe::new(Some(ours(master.try_clone()?)?)),
        outputs: [output, Output::none()],
        terminal: Some(PtyMaster::new(master)),
    })
}

/// Lets the command open its end by name, as `/dev/stderr`, when it is not the
/// user who made it. Nobody else can: the name is in the command's own `/proc`.
fn can_be_reopened(end: &OwnedFd) -> io::Result<()> {
    Ok(fchmod(end, Mode::from_raw_mode(0o666))?)
}

/// A copy that can be opened by name inside, where the file itself is not.
fn in_memory(path: &Path) -> io::Result<OwnedFd> {
    let mut copy = File::from(memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    io::copy(&mut File::open(path)?, &mut copy)?;
    copy.rewind()?;
    Ok(copy.into())
}

/// Only our end may not block; the flag belongs to the end, not to the pipe.
fn ours(end: OwnedFd) -> io::Result<File> {
    fcntl_setfl(&end, OFlags::NONBLOCK)?;
    Ok(File::from(end))
}

impl Output {
    fn new(pipe: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            pipe: Some(ours(pipe)?),
            buffer: vec![],
        })
    }

    fn none() -> Self {
        Self {
            pipe: None,
            buffer: vec![],
        }
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads once. Empty when there is nothing now, or ever again.
    pub(super) fn read(&mut self) -> &mut [u8] {
        let Some(pipe) = &mut self.pipe else {
            return &mut [];
        };
        self.buffer.clear();
        self.buffer.reserve_exact(SMALL);
        // Not zeroed first: most commands fill little of it.
        match rustix::io::read(&*pipe, spare_capacity(&mut self.buffer)) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(read) if read > 0 => {}
            _ => self.pipe = None,
        }
        if self.buffer.len() == SMALL
            && let Some(pipe) = &self.pipe
            && fcntl_setpipe_size(pipe, LARGE).is_ok()
        {
            // A flood: fewer, larger steps from now on.
            self.buffer.reserve_exact(LARGE - SMALL);
        }
        &mut self.buffer
    }
}

impl StdinPipe {
    fn new(pipe: Option<File>) -> Self {
        Self {
            pipe,
            waiting: VecDeque::new(),
            close: false,
        }
    }

    /// Is there for polling while there is something to hand over.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        let pipe = self.pipe.as_ref()?;
        (!self.waiting.is_empty()).then(|| pipe.as_fd())
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.waiting.extend(bytes);
    }

    /// Returns whether there is something that was not handed over.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Drops what was not handed over, and returns how much that was.
    pub(super) fn forget(&mut self) -> u64 {
        let dropped = self.waiting.len() as u64;
        self.waiting.clear();
        self.settle();
        dropped
    }

    pub(super) fn close(&mut self) {
        self.close = true;
        self.settle();
    }

    /// Hands over what fits and returns how much is off our hands.
    pub(super) fn hand_over(&mut self) -> u64 {
        let mut done = 0;
        while !self.waiting.is_empty() {
            let Some(pipe) = &mut self.pipe else {
                // Nobody reads: taken as given, as a pipe to a dead reader is.
                done += self.waiting.len() as u64;
                self.waiting.clear();
                break;
            };
            match pipe.write(self.waiting.as_slices().0) {
                Ok(taken) => {
                    self.waiting.drain(..taken);
                    done += taken as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.pipe = None,
            }
        }
        self.settle();
        done
    }

    fn settle(&mut self) {
        if self.close && self.waiting.is_empty() {
            self.pipe = None;
        }
    }
}
