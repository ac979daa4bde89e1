//! A line that says how far something is, where that takes a while.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// What is over sooner needs no such line.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the line is written: as often as numbers can be read.
const EVERY: Duration = Duration::from_millis(200);

/// The line, which goes away with this.
pub(crate) struct ProgressLine {
    wanted: bool,
    began: Instant,
    last: Option<Instant>,
}

impl ProgressLine {
    /// One on standard error, if somebody sees it.
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            wanted: wanted && std::io::stderr().is_terminal(),
            began: Instant::now(),
            last: None,
        }
    }

    /// Waits for something, and says for what.
    pub(crate) async fn during<T>(&mut self, what: &str, deed: impl Future<Output = T>) -> T {
        tokio::pin!(deed);
        let mut tick = tokio::time::interval(EVERY);
        loop {
            tokio::select! {
                biased;
                done = &mut deed => return done,
                _ = tick.tick() => self.show(what),
            }
        }
    }

    fn show(&mut self, what: &str) {
        let due = self.last.is_none_or(|last| last.elapsed() >= EVERY);
        if self.wanted && due && self.began.elapsed() >= PATIENCE {
            let _ = write!(std::io::stderr(), "\r\x1b[K… {what}");
            self.last = Some(Instant::now());
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.last.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
