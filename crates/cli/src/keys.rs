//! Single keys from a terminal, heard only when they are meant for us.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcsetattr,
};

use crate::client::Failure;
use crate::line::{LineEditor, LineState};
use crate::signals::Signals;

/// A key that comes sooner after another was meant for something else.
const QUIET: Duration = Duration::from_millis(400);

/// What comes together within this time was pasted, or is one key that sends
/// several bytes; nobody types so fast.
const TOGETHER: Duration = Duration::from_millis(25);

/// How often we look for keys.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The terminal on standard input, without echo and without lines, as long as
/// this lives.
pub(crate) struct Keys<'a> {
    before: Termios,
    signals: &'a mut Signals,
    last: Instant,
    /// Somebody wants us to end, or there is nobody any more.
    over: bool,
}

/// What was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(u8),
    Enter,
    Up,
    Down,
    /// Ctrl C, Ctrl D, the end of the terminal, or a signal to end.
    Quit,
}

/// A key, and whether it stands alone: only then may it decide anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Press {
    pub(crate) key: Key,
    pub(crate) calm: bool,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(signals: &'a mut Signals) -> Result<Self, Failure> {
        let before =
            raw().map_err(|error| Failure::new(format!("cannot use the terminal: {error}"), ""))?;
        Ok(Self {
            before,
            signals,
            last: Instant::now(),
            over: false,
        })
    }

    /// Begins a question: whatever was typed before is not an answer to it.
    pub(crate) fn forget(&mut self) {
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        self.last = Instant::now();
    }

    /// Waits for one key that stands alone.
    pub(crate) async fn key(&mut self) -> Key {
        loop {
            match self.press().await {
                // Leaving is always heard.
                Press { key: Key::Quit, .. } => return Key::Quit,
                Press {
                    key: Key::Up | Key::Down,
                    ..
                } => {}
                Press { key, calm: true } => return key,
                _ => {}
            }
        }
    }

    /// Waits for any key. The caller may drop the future.
    pub(crate) async fn press(&mut self) -> Press {
        let bytes = self.bytes().await;
        let quiet = self.last.elapsed() >= QUIET;
        tokio::time::sleep(TOGETHER).await;
        self.last = Instant::now();
        Press {
            key: bytes.as_deref().map_or(Key::Quit, meaning),
            calm: quiet && bytes.is_some_and(|bytes| bytes.len() == 1) && !is_ready(),
        }
    }

    /// Reads one line, which may be changed before Enter; none when it was
    /// given up with Ctrl C or Escape.
    pub(crate) async fn line(&mut self, question: &str, filled: &str) -> Option<String> {
        self.forget();
        let mut line = LineEditor::new(filled);
        loop {
            let columns = crate::term::size().1;
            let room = columns.saturating_sub(question.chars().count() + 1).max(8);
            let _ = write!(io::stderr(), "\r\x1b[K{question}{}", line.shown(room));
            let typed = line.take(&self.bytes().await?);
            if typed != LineState::More {
                let _ = writeln!(io::stderr());
                return (typed == LineState::Enter).then(|| line.text());
            }
        }
    }

    /// Waits for the rest of a key that sends several bytes, for as long as
    /// that takes on its way.
    pub(crate) async fn whole(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        if matches!(bytes[..], [.., 27] | [.., 27, b'[' | b'O']) {
            let rest = tokio::time::timeout(TOGETHER, self.bytes()).await;
            bytes.extend(rest.ok().flatten().unwrap_or_default());
        }
        bytes
    }

    /// Waits for what is typed; nothing, from then on, when there will be no
    /// more.
    pub(crate) async fn bytes(&mut self) -> Option<Vec<u8>> {
        while !self.over && !is_ready() {
            tokio::select! {
                _ = self.signals.next() => self.over = true,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
        let mut buffer = [0; 256];
        match rustix::io::read(io::stdin().as_fd(), &mut buffer) {
            Ok(read @ 1..) if !self.over => Some(buffer[..read].to_vec()),
            _ => {
                self.over = true;
                None
            }
        }
    }
}

impl Drop for Keys<'_> {
    fn drop(&mut self) {
        // What was typed for us is not for the command.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}

/// Sets the terminal up, and returns how it was.
fn raw() -> io::Result<Termios> {
    let stdin = io::stdin();
    let before = tcgetattr(&stdin)?;
    let mut raw = before.clone();
    raw.local_modes
        .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
    raw.special_codes[SpecialCodeIndex::VMIN] = 0;
    raw.special_codes[SpecialCodeIndex::VTIME] = 0;
    // What was typed ahead is thrown away with it.
    tcsetattr(&stdin, OptionalActions::Flush, &raw)?;
    Ok(before)
}

fn meaning(bytes: &[u8]) -> Key {
    match bytes {
        [] | [3 | 4, ..] => Key::Quit,
        [27, b'[' | b'O', b'A', ..] => Key::Up,
        [27, b'[' | b'O', b'B', ..] => Key::Down,
        [b'\r' | b'\n', ..] => Key::Enter,
        [byte, ..] => Key::Char(*byte),
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
