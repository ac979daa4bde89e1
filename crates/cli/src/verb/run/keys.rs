//! Single keys from a terminal, heard only when they are meant for us.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcsetattr,
};

use super::attend::Signals;

/// A key that comes sooner after another was meant for something else.
const QUIET: Duration = Duration::from_millis(400);

/// What comes together within this time was pasted, or is one key that sends
/// several bytes; nobody types so fast.
const TOGETHER: Duration = Duration::from_millis(25);

/// How often we look for keys.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The terminal on standard input, without echo and without lines, as long as
/// this lives.
pub(super) struct Keys<'a> {
    before: Termios,
    signals: &'a mut Signals,
    last: Instant,
}

/// What was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Char(u8),
    Enter,
    /// Ctrl C, Ctrl D, the end of the terminal, or a signal to end.
    Quit,
}

impl<'a> Keys<'a> {
    pub(super) fn new(signals: &'a mut Signals) -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut raw = before.clone();
        raw.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        // What was typed ahead is thrown away with it.
        tcsetattr(&stdin, OptionalActions::Flush, &raw)?;
        Ok(Self {
            before,
            signals,
            last: Instant::now(),
        })
    }

    /// Begins a question: whatever was typed before is not an answer to it.
    pub(super) fn forget(&mut self) {
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        self.last = Instant::now();
    }

    /// Waits for one key that stands alone.
    pub(super) async fn key(&mut self) -> Key {
        loop {
            let bytes = match self.bytes().await {
                Some(bytes) => bytes,
                None => return Key::Quit,
            };
            let quiet = self.last.elapsed() >= QUIET;
            tokio::time::sleep(TOGETHER).await;
            let alone = bytes.len() == 1 && !is_ready();
            self.last = Instant::now();
            match bytes[0] {
                // Leaving is always heard.
                3 | 4 => return Key::Quit,
                b'\r' | b'\n' if quiet && alone => return Key::Enter,
                byte if quiet && alone => return Key::Char(byte),
                _ => {}
            }
        }
    }

    /// Reads one line, which may be changed before Enter; none when it was
    /// given up with Ctrl C or Escape.
    pub(super) async fn line(&mut self, question: &str, filled: &str) -> Option<String> {
        self.forget();
        let mut line: Vec<u8> = filled.as_bytes().to_vec();
        loop {
            let shown = crate::text::safe(&String::from_utf8_lossy(&line));
            let _ = write!(io::stderr(), "\r\x1b[K{question}{shown}");
            for byte in self.bytes().await? {
                match byte {
                    3 | 4 | 27 => {
                        let _ = writeln!(io::stderr());
                        return None;
                    }
                    b'\r' | b'\n' => {
                        let _ = writeln!(io::stderr());
                        let text = String::from_utf8_lossy(&line).trim().to_owned();
                        return Some(text);
                    }
                    // Backspace takes a whole letter away, Ctrl U everything.
                    8 | 127 => while line.pop().is_some_and(|byte| byte & 0xC0 == 0x80) {},
                    21 => line.clear(),
                    byte if byte >= 32 => line.push(byte),
                    _ => {}
                }
            }
        }
    }

    /// Waits for what is typed; nothing when there will be no more.
    async fn bytes(&mut self) -> Option<Vec<u8>> {
        while !is_ready() {
            tokio::select! {
                _ = self.signals.next() => return None,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
        let mut buffer = [0; 256];
        match rustix::io::read(io::stdin().as_fd(), &mut buffer) {
            Ok(0) | Err(_) => None,
            Ok(read) => Some(buffer[..read].to_vec()),
        }
    }
}

impl Drop for Keys<'_> {
    fn drop(&mut self) {
        // What was typed for us is not for the command.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}

fn is_ready() -> bool {
    let stdin = io::stdin();
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut waiting, Some(&now)).is_ok_and(|ready| ready > 0)
}
