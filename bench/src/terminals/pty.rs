//! A bare terminal: what the kernel alone takes.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

use crate::Result;

/// A program at a terminal of its own, which ends with this value.
pub(super) struct Bare {
    /// Our end.
    pub(super) master: File,
    program: Child,
}

impl Bare {
    pub(super) fn open(command: &str) -> Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags)?;
        unlockpt(&master)?;
        let end: OwnedFd = ioctl_tiocgptpeer(&master, flags)?;
        let program = Command::new("/bin/sh")
            .args(["-c", &format!("exec {command}")])
            .stdin(end.try_clone()?)
            .stdout(end.try_clone()?)
            .stderr(end)
            .spawn()?;
        Ok(Self {
            master: master.into(),
            program,
        })
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
