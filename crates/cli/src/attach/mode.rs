//! The person's own terminal, while we use all of it.

use std::io::{self, Write};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::client::Failure;

/// The other screen, empty.
const ENTER: &str = "\x1b[?1049h\x1b[2J\x1b[H";

/// All that we may have set, as it was; and the screen from before.
const LEAVE: &str = "\x1b[0m\x1b[?1l\x1b[?2004l\x1b[?25h\x1b[?1049l";

/// Every key comes at once and nothing is shown by itself, as long as this
/// lives.
pub(super) struct Mode {
    before: Termios,
}

impl Mode {
    pub(super) fn enter() -> Result<Self, Failure> {
        let failed = |error: rustix::io::Errno| {
            Failure::new(format!("cannot use the terminal: {error}"), "")
        };
        let before = tcgetattr(io::stdin()).map_err(failed)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).map_err(failed)?;
        write(ENTER);
        Ok(Self { before })
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        write(LEAVE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Whoever has closed the window misses nothing.
fn write(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}
