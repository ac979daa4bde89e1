//! A recording as text: each line with its time.
//!
//! Full-screen programs have no lines that stay. Of them, there is what was on
//! the screen whenever it stood still, and when they left it.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use weighlock_marks::{Event, EventKind};
use weighlock_screen::{Plain, Screen, Size};

use super::recording::{label, size};

/// A screen that does not change for so long was looked at.
const STILL: Duration = Duration::from_secs(1);

/// Marks that wait for the lines before them; more is no recording of ours.
const MOST_MARKS: usize = 1000;

/// What switches to another screen and back begins like this.
const SWITCH: &str = "\x1b[?";

/// A line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TranscriptLine {
    pub(crate) time: Duration,
    pub(crate) text: String,
    /// It is a mark and was not on the screen.
    pub(crate) is_mark: bool,
}

/// Makes lines of events.
pub(crate) struct Transcript {
    plain: Plain,
    screen: Screen,
    /// The rows of a full-screen program that are already told.
    told: HashSet<String>,
    last: Duration,
    marks: VecDeque<TranscriptLine>,
    done: Vec<TranscriptLine>,
}

impl Transcript {
    pub(crate) fn new(size: Size) -> Self {
        Self {
            plain: Plain::new(),
            screen: Screen::new(size, 0),
            told: HashSet::new(),
            last: Duration::ZERO,
            marks: VecDeque::new(),
            done: vec![],
        }
    }

    /// Takes the next event. Returns the lines that no more can change.
    pub(crate) fn feed(&mut self, event: &Event) -> Vec<TranscriptLine> {
        let time = event.time.max(self.last);
        if self.screen.is_alternate() && time - self.last >= STILL {
            self.look(self.last);
        }
        self.last = time;
        match &event.kind {
            EventKind::Output(text) => pieces(text).for_each(|piece| self.output(piece)),
            EventKind::Resize(new) => self.screen.resize(size(new.width, new.height)),
            _ => {}
        }
        if let Some(text) = label(&event.kind) {
            self.mark(text);
        }
        std::mem::take(&mut self.done)
    }

    /// Returns the rest.
    pub(crate) fn finish(mut self) -> Vec<TranscriptLine> {
        if self.screen.is_alternate() {
            self.look(self.last);
        }
        self.flush();
        self.done.extend(self.marks);
        self.done
    }

    fn output(&mut self, piece: &str) {
        let was_alternate = self.screen.is_alternate();
        if was_alternate && leaves(piece) {
            self.look(self.last);
        }
        // Answers are for a program that is not there.
        let _ = self.screen.feed(piece.as_bytes());
        match (was_alternate, self.screen.is_alternate()) {
            (_, false) => {
                self.told.clear();
                let micros = u64::try_from(self.last.as_micros()).unwrap_or(u64::MAX);
                let lines = self.plain.feed_numbered(micros, piece.as_bytes());
                self.add(lines);
            }
            (false, true) => self.flush(),
            (true, true) => {}
        }
    }

    /// Tells what is new on the screen of a full-screen program.
    fn look(&mut self, time: Duration) {
        let rows: Vec<String> = self.screen.view().rows;
        for row in &rows {
            if !row.is_empty() && !self.told.contains(row) {
                self.put(time, row.clone());
            }
        }
        self.told = rows.into_iter().collect();
    }

    /// Tells the lines that could still have changed.
    fn flush(&mut self) {
        let lines = std::mem::take(&mut self.plain).finish_numbered();
        self.add(lines);
    }

    fn add(&mut self, lines: Vec<(u64, String)>) {
        for (micros, line) in lines {
            self.put(Duration::from_micros(micros), line);
        }
    }

    /// Adds a line, after the marks before it.
    fn put(&mut self, time: Duration, text: String) {
        while let Some(mark) = self.marks.pop_front_if(|mark| mark.time <= time) {
            self.done.push(mark);
        }
        let is_mark = false;
        self.done.push(TranscriptLine {
            time,
            text,
            is_mark,
        });
    }

    fn mark(&mut self, text: String) {
        let (time, is_mark) = (self.last, true);
        self.marks.push_back(TranscriptLine {
            time,
            text,
            is_mark,
        });
        if self.marks.len() > MOST_MARKS {
            self.done.extend(self.marks.pop_front());
        }
    }
}

/// Takes a text apart where another screen may be switched to, so that each
/// piece is of one screen.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?.len_utf8();
        let next = rest[first..].find(SWITCH).map(|next| next + first);
        let (piece, after) = rest.split_at(next.unwrap_or(rest.len()));
        rest = after;
        Some(piece)
    })
}

fn leaves(piece: &str) -> bool {
    ["1049l", "1047l", "47l"].iter().any(|mode| {
        piece
            .strip_prefix(SWITCH)
            .is_some_and(|rest| rest.starts_with(mode))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(events: &[(u64, EventKind)]) -> Vec<String> {
        let mut transcript = Transcript::new(size(40, 5));
        let mut entries = vec![];
        for (seconds, kind) in events {
            let time = Duration::from_secs(*seconds);
            let kind = kind.clone();
            entries.extend(transcript.feed(&Event { time, kind }));
        }
        entries.extend(transcript.finish());
        let shown = |entry: TranscriptLine| {
            let sign = if entry.is_mark { "* " } else { "" };
            format!("{} {sign}{}", entry.time.as_secs(), entry.text)
        };
        entries.into_iter().map(shown).collect()
    }

    fn output(seconds: u64, text: &str) -> (u64, EventKind) {
        (seconds, EventKind::Output(text.into()))
    }

    #[test]
    fn lines_have_the_time_at_which_they_were_finished() {
        let found = transcript(&[
            output(1, "$ "),
            output(3, "make\r\n"),
            (3, EventKind::Marker("$ make".into())),
            output(4, "10 %\r"),
            output(9, "\x1b[32m100 %\x1b[m\r\n"),
            (9, EventKind::Exit(0)),
        ]);
        assert_eq!(found, ["3 * $ make", "3 $ make", "9 * exit 0", "9 100 %"]);
    }

    #[test]
    fn of_a_full_screen_program_there_is_what_stood_still() {
        let found = transcript(&[
            output(1, "$ vi\r\n\x1b[?1049h\x1b[2J\x1b[Hone\r\ntwo"),
            output(5, "\x1b[Hx"),
            output(5, "\x1b[Hy"),
            output(8, "\x1b[Hzne\x1b[?1049l$ "),
            output(9, "exit\r\n"),
        ]);
        let expected = ["1 $ vi", "1 one", "1 two", "5 yne", "8 zne", "9 $ exit"];
        assert_eq!(found, expected);
    }

    #[test]
    fn pieces_are_the_whole() {
        let text = "a\x1b[?1049hb\x1b[?25lé\x1b[?";
        let found: Vec<&str> = pieces(text).collect();
        assert_eq!(found, ["a", "\x1b[?1049hb", "\x1b[?25lé", "\x1b[?"]);
        assert_eq!(pieces("äö").collect::<String>(), "äö");
    }
}
