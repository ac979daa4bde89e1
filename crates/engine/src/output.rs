//! Reading what a run said.

use std::sync::Arc;

use regex::bytes::Regex;
use weighlock_exec::{
    Excerpt, Item, Job, LeftOut, Line, Lines, Log, Stream, Text, excerpt, left_out,
};
use weighlock_policy::Cut;
use weighlock_screen::{Styled, StyledLine};

use crate::core::Core;
use crate::error::Error;
use crate::live::{Lives, end_of};
use crate::view::Run;

/// How much of the output is handed over at a time.
const STEP: usize = 256 * 1024;

/// Lines that are read before those that are shown, for the colours that go on.
const LINES_BEFORE: u64 = 50;

/// How much of the output is handed over with its colours at a time.
const STYLED_BYTES: usize = 2 * 1024 * 1024;

/// Output as it comes, from any offset on.
pub struct Follow {
    outputs: Arc<Outputs>,
    run: Run,
    next: u64,
    until: Until,
}

/// A range of lines as they would be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StyledLines {
    /// Each as it was written, and as it looks.
    pub lines: Vec<(Line, StyledLine)>,
    /// Lines asked for that are not kept: first and last number.
    pub missing: Option<(u64, u64)>,
}

/// How far to follow a run's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// What is stored now.
    Now,
    /// The end of the command.
    Ended,
    /// The end of the command and of everything it left running.
    Closed,
}

/// Reads what runs said; see [`Engine::outputs`](crate::Engine::outputs).
pub struct Outputs {
    core: Arc<Core>,
    lives: Arc<Lives>,
}

impl Outputs {
    pub(crate) fn new(core: Arc<Core>, lives: Arc<Lives>) -> Self {
        Self { core, lives }
    }

    /// Returns the log of a run.
    pub fn log(&self, run: &Run) -> Log {
        Log::open(&self.core.run_dir(&run.command_id))
    }

    /// Cuts a run's output for a reader; by the preset's rule if none is given.
    pub fn excerpt(&self, run: &Run, cut: Option<Cut>) -> Result<Excerpt, Error> {
        let cut = cut.unwrap_or_else(|| self.core.config.manners().cut());
        let log = self.log(run);
        excerpt(&log, &run.detail.output.totals, cut).map_err(|source| self.unreadable(run, source))
    }

    /// Returns the gaps in the output that the requester gets.
    pub fn left_out(&self, run: &Run) -> Result<Vec<LeftOut>, Error> {
        let cut = self.core.config.manners().cut();
        left_out(&self.log(run), &run.detail.output.totals, cut)
            .map_err(|source| self.unreadable(run, source))
    }

    /// Reads output by line number, from 1, with its colours.
    pub fn styled_lines(&self, run: &Run, from: u64, count: usize) -> Result<StyledLines, Error> {
        let from = from.max(1);
        // A colour that was set shortly before still holds.
        let first = from.saturating_sub(LINES_BEFORE).max(1);
        let before = usize::try_from(from - first).unwrap_or_default();
        let found = self.lines(run, first, count.saturating_add(before))?;
        let missing = found.missing.filter(|(_, last)| *last >= from);
        let (mut styled, mut room) = (Styled::default(), STYLED_BYTES);
        let mut lines = vec![];
        for line in found.lines {
            if room == 0 {
                break;
            }
            let shown = styled.line(&line.bytes);
            if line.number >= from {
                room = room.saturating_sub(line.bytes.len());
                lines.push((line, shown));
            }
        }
        let missing = missing.map(|(first, last)| (first.max(from), last));
        Ok(StyledLines { lines, missing })
    }

    /// Returns the output lines that the requester of a run got.
    pub fn shown_lines(&self, run: &Run) -> Result<Vec<(Stream, StyledLine)>, Error> {
        let parts = match self.excerpt(run, None)?.text {
            Text::Streams { stdout, stderr } => {
                vec![(Stream::Stdout, stdout), (Stream::Stderr, stderr)]
            }
            Text::Joined(text) => vec![(Stream::Stdout, text)],
        };
        let mut lines = vec![];
        for (stream, text) in parts {
            let mut styled = Styled::default();
            let read = { text.lines() }.map(|line| (stream, styled.line(line.as_bytes())));
            lines.extend(read);
        }
        Ok(lines)
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
                format!("`{pattern}` is not a regular expression: {error}"),
                "put a backslash before special characters",
            )
        })?;
        self.log(run)
            .find(&pattern, from, most)
            .map_err(|source| self.unreadable(run, source))
    }

    /// Starts reading from an offset on.
    pub fn follow(self: &Arc<Self>, run: Run, from: u64, until: Until) -> Follow {
        Follow {
            outputs: Arc::clone(self),
            run,
            next: from,
            until,
        }
    }

    fn unreadable(&self, run: &Run, source: std::io::Error) -> Error {
        Error::file(&self.core.run_dir(&run.command_id))(source)
    }
}

impl Follow {
    /// Returns the next stretch; `None` when there is no more.
    pub async fn next(&mut self) -> Result<Option<Vec<Item>>, Error> {
        loop {
            let live = self.outputs.lives.get(&self.run.command_id);
            // Asked before reading: nothing is written after the end.
            let over = live.as_ref().is_none_or(|live| self.is_over(&live.job));
            let seen = live.as_ref().map(|live| live.job.status().output.bytes());
            let log = self.outputs.log(&self.run);
            let items = log
                .read(self.next, STEP)
                .map_err(|source| self.outputs.unreadable(&self.run, source))?;
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

/// How many bytes there are without the beginning of a character at the end.
pub fn whole_characters(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    for at in from..bytes.len() {
        match str::from_utf8(&bytes[at..]) {
            Err(error) if error.error_len().is_none() && error.valid_up_to() == 0 => return at,
            _ => {}
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::whole_characters;

    #[test]
    fn only_the_beginning_of_a_character_is_kept_back() {
        let whole = |text: &[u8]| whole_characters(text);
        assert_eq!(whole(b""), 0);
        assert_eq!(whole("aü".as_bytes()), 3);
        assert_eq!(whole(&"aü".as_bytes()[..2]), 1);
        assert_eq!(whole(&"a€".as_bytes()[..3]), 1);
        assert_eq!(whole(&"😀".as_bytes()[..3]), 0);
        assert_eq!(whole(b"a\xff"), 2);
        assert_eq!(whole(b"\xff\xff\xff"), 3);
    }
}
