//! The person's own terminal, while we use all of it.

use std::io::{self, Write};

use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::client::Failure;
use crate::full_screen::FullScreen;

/// All that we may have set, as it was.
const LEAVE: &str = "\x1b[0m\x1b[?1l\x1b[?2004l";

/// Every key comes at once and nothing is shown by itself, as long as this
/// lives.
pub(super) struct RawMode {
    before: Termios,
    _screen: FullScreen,
}

impl RawMode {
    pub(super) fn enter() -> Result<Self, Failure> {
        let failed = |error: rustix::io::Errno| {
            Failure::new(format!("cannot use the terminal: {error}"), "")
        };
        let before = tcgetattr(io::stdin()).map_err(failed)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).map_err(failed)?;
        Ok(Self {
            before,
            _screen: FullScreen::enter(),
        })
    }

    /// Stops this process with the terminal restored, and enters raw mode again
    /// when it is continued.
    pub(super) fn stopped(self) -> Result<Self, Failure> {
        drop(self);
        let _ = kill_process(getpid(), Signal::STOP);
        Self::enter()
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Whoever has closed the window misses nothing.
        let mut out = io::stdout();
        let _ = out.write_all(LEAVE.as_bytes());
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
