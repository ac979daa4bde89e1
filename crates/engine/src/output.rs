//! Reading what a run said.

use std::sync::Arc;

use regex::bytes::Regex;
use weighlock_exec::{Excerpt, Item, Job, Line, Lines, Log, excerpt};
use weighlock_policy::Cut;

use crate::engine::Engine;
use crate::error::Error;
use crate::view::Run;

/// How much of the output is handed over at a time.
const STEP: usize = 256 * 1024;

/// Output as it comes, from any offset on.
pub struct Follow {
    engine: Arc<Engine>,
    run: Run,
    next: u64,
    until: Until,
}

/// How far to follow a run's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// What there is now.
    Now,
    /// The end of the command.
    Ended,
    /// The end of the command and of everything it left running.
    Closed,
}

impl Engine {
    /// Returns the log of a run.
    pub fn log(&self, run: &Run) -> Log {
        Log::open(&self.dir_of(&run.command_id))
    }

    /// Cuts a run's output for a reader; by the preset's rule if none is given.
    pub fn excerpt(&self, run: &Run, cut: Option<Cut>) -> Result<Excerpt, Error> {
        let cut = cut.unwrap_or_else(|| self.config.manners().cut());
        let log = self.log(run);
        excerpt(&log, &run.detail.output.totals, cut).map_err(|source| self.unreadable(run, source))
    }

    /// Reads output by line number, from 1.
    pub fn lines(&self, run: &Run, from: u64, count: usize) -> Result<Lines, Error> {
        self.log(run)
            .lines(from, count)
            .map_err(|source| self.unreadable(run, source))
    }

    /// Finds lines that match a regular expression, from a line on.
    pub fn search(
        &self,
        run: &Run,
        pattern: &str,
        from: u64,
        most: usize,
    ) -> Result<Vec<Line>, Error> {
        let pattern = Regex::new(pattern).map_err(|error| {
            Error::invalid(
                "invalid_pattern",
                format!("`{pattern}` is no regular expression: {error}"),
                "put a backslash before characters that are meant as they are",
            )
        })?;
        self.log(run)
            .find(&pattern, from, most)
            .map_err(|source| self.unreadable(run, source))
    }

    /// Starts reading from an offset on.
    pub fn follow(self: &Arc<Self>, run: Run, from: u64, until: Until) -> Follow {
        Follow {
            engine: Arc::clone(self),
            run,
            next: from,
            until,
        }
    }

    fn unreadable(&self, run: &Run, source: std::io::Error) -> Error {
        Error::File {
            path: self.dir_of(&run.command_id),
            source,
        }
    }
}

impl Follow {
    /// Returns the next stretch; `None` when there is no more.
    pub async fn next(&mut self) -> Result<Option<Vec<Item>>, Error> {
        loop {
            let live = self.engine.lives.get(&self.run.command_id);
            // Asked before reading: nothing is written after the end.
            let over = live.as_ref().is_none_or(|live| self.is_over(&live.job));
            let seen = live.as_ref().map(|live| live.job.status().output.bytes());
            let log = self.engine.log(&self.run);
            let items = log
                .read(self.next, STEP)
                .map_err(|source| self.engine.unreadable(&self.run, source))?;
            if let Some(last) = items.last() {
                self.next = end_of(last);
                return Ok(Some(items));
            }
            match live {
                Some(live) if !over => {
                    let all = self.until == Until::Closed;
                    // Not past `next` alone: what came may not have been kept.
                    let seen = seen.unwrap_or_default().max(self.next);
                    live.job.output_past(seen, all).await;
                }
                _ => return Ok(None),
            }
        }
    }

    fn is_over(&self, job: &Job) -> bool {
        match self.until {
            Until::Now => true,
            Until::Ended => job.is_over() || job.status().end.is_some(),
            Until::Closed => job.is_over(),
        }
    }
}

/// Returns the offset after a stretch of output.
pub(crate) fn end_of(item: &Item) -> u64 {
    match item {
        Item::Piece(piece) => piece.offset + piece.bytes.len() as u64,
        Item::Gap { to, .. } => *to,
    }
}
