//! Finds text in a recording.

use std::time::Duration;

use weighlock_marks::EventReader;

use super::recording::ScannedRecording;
use super::transcript::{Transcript, TranscriptLine};
use crate::client::Failure;

/// Nobody reads a longer list.
pub(super) const MOST_HITS: usize = 1000;

/// Events that are searched before somebody looks for keys again.
const STEP_EVENTS: usize = 1000;

/// What is shown before a hit that is far to the right.
const BEFORE_CHARS: usize = 20;

/// More than a window is wide.
const LINE_CHARS: usize = 300;

/// A line in which the text was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) time: Duration,
    pub(super) line: String,
}

/// A search that is under way.
pub(super) struct RecordingSearch {
    pub(super) query: String,
    reader: EventReader,
    /// None when everything was searched.
    transcript: Option<Transcript>,
    hits: Vec<Hit>,
    /// How far it is.
    pub(super) time: Duration,
}

impl RecordingSearch {
    pub(super) fn new(recording: &ScannedRecording, query: &str) -> Result<Self, Failure> {
        Ok(Self {
            query: query.to_owned(),
            reader: recording.reader()?,
            transcript: Some(Transcript::new(recording.size)),
            hits: vec![],
            time: Duration::ZERO,
        })
    }

    /// Searches a part. Returns all that was found, by time, when that was
    /// the last one.
    pub(super) fn step(
        &mut self,
        recording: &ScannedRecording,
    ) -> Result<Option<Vec<Hit>>, Failure> {
        for _ in 0..STEP_EVENTS {
            let event = self.reader.next().transpose();
            let event = event.map_err(|error| recording.failure(error))?;
            let entries = match (&event, &mut self.transcript) {
                (Some(event), Some(transcript)) => transcript.feed(event),
                _ => self.transcript.take().map_or(vec![], Transcript::finish),
            };
            self.take(entries);
            self.time = event.as_ref().map_or(self.time, |event| event.time);
            if event.is_none() || self.hits.len() >= MOST_HITS {
                let mut hits = std::mem::take(&mut self.hits);
                hits.sort_by_key(|hit| hit.time);
                return Ok(Some(hits));
            }
        }
        Ok(None)
    }

    fn take(&mut self, entries: Vec<TranscriptLine>) {
        let lower = self.query.to_lowercase();
        for entry in entries {
            let found = entry.text.to_lowercase().find(&lower);
            if let Some(at) = found.filter(|_| self.hits.len() < MOST_HITS) {
                let time = entry.time;
                let line = around(&entry.text, at);
                self.hits.push(Hit { time, line });
            }
        }
    }
}

/// Returns the part of a line around a place. In lower case, bytes may be
/// others; then it is a bit off.
fn around(line: &str, at: usize) -> String {
    let before = line
        .char_indices()
        .take_while(|(index, _)| *index < at)
        .count();
    let skipped = match before {
        0..=60 => 0,
        far => far - BEFORE_CHARS,
    };
    let sign = if skipped > 0 { "…" } else { "" };
    let rest: String = line.chars().skip(skipped).take(LINE_CHARS).collect();
    format!("{sign}{rest}")
}
