//! A terminal of the run's own, opened inside: there its name means something.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{InputModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use serde::{Deserialize, Serialize};

/// How large a terminal is, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Characters in a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

impl Size {
    /// Sets the size of a terminal through either of its ends. The kernel
    /// signals `SIGWINCH` to the programs in it.
    pub fn set(self, terminal: &OwnedFd) -> io::Result<()> {
        let size = Winsize {
            ws_row: self.rows,
            ws_col: self.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(tcsetwinsize(terminal, size)?)
    }
}

/// Both ends of a terminal.
pub(crate) struct PtyPair {
    /// The keeper's.
    pub(crate) master: OwnedFd,
    /// The command's.
    pub(crate) slave: OwnedFd,
}

impl PtyPair {
    pub(crate) fn open(size: Size) -> io::Result<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        unlockpt(&master)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let slave = ioctl_tiocgptpeer(&master, flags)?;
        // So that erasing takes a whole character.
        let mut modes = tcgetattr(&slave)?;
        modes.input_modes |= InputModes::IUTF8;
        tcsetattr(&slave, OptionalActions::Now, &modes)?;
        size.set(&slave)?;
        Ok(Self { master, slave })
    }
}

/// Makes this process the first of a session whose terminal is its input.
pub(crate) fn take() -> io::Result<()> {
    setsid()?;
    Ok(ioctl_tiocsctty(rustix::stdio::stdin())?)
}
