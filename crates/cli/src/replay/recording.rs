//! What there is to know about a recording before it is played.

use std::time::Duration;

use weighlock_marks::{Error, Event, EventKind, EventReader, Header};
use weighlock_screen::Size;

use super::source::RecordingFile;
use crate::client::Failure;

/// Nobody jumps through more; a file of nothing but marks must not fill the
/// memory.
const MOST_MARKS: usize = 100_000;

/// More than a window is wide.
const LABEL_CHARS: usize = 300;

/// A recording, looked through once.
pub(crate) struct ScannedRecording {
    source: RecordingFile,
    pub(super) size: Size,
    pub(super) total: Duration,
    pub(super) marks: Vec<Marker>,
}

/// A place worth finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(super) time: Duration,
    pub(super) label: String,
}

impl ScannedRecording {
    pub(crate) fn open(source: RecordingFile) -> Result<Self, Failure> {
        let mut recording = Self {
            size: size(0, 0),
            total: Duration::ZERO,
            marks: vec![],
            source,
        };
        let reader = recording.reader()?;
        let Header { size: first, .. } = *reader.header();
        recording.size = size(first.width, first.height);
        for event in reader {
            let event = event.map_err(|error| recording.failure(error))?;
            recording.note(&event);
        }
        Ok(recording)
    }

    /// Begins to read from the start.
    pub(crate) fn reader(&self) -> Result<EventReader, Failure> {
        EventReader::open(&self.source.path).map_err(|error| self.failure(error))
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// Says what could not be read, by the name that the person knows.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        failure(&self.source.name, error)
    }

    fn note(&mut self, event: &Event) {
        self.total = self.total.max(event.time);
        if self.marks.len() < MOST_MARKS
            && let Some(label) = label(&event.kind)
        {
            let time = self.total;
            self.marks.push(Marker { time, label });
        }
    }
}

/// Returns what a mark says, if the event is one.
pub(super) fn label(kind: &EventKind) -> Option<String> {
    match kind {
        EventKind::Marker(label) => Some(label.chars().take(LABEL_CHARS).collect()),
        EventKind::Resize(size) => Some(format!("size {}×{}", size.width, size.height)),
        EventKind::Exit(code) => Some(format!("exit {code}")),
        EventKind::Output(_) | EventKind::Input(_) | EventKind::Other { .. } => None,
    }
}

/// Returns the nearest size that a screen can have.
pub(super) fn size(width: u16, height: u16) -> Size {
    let fits = |most: u16| Size::new(width.clamp(2, most), height.clamp(1, most));
    fits(1000).expect("a size that a screen can have")
}

/// Says what could not be read, by a name.
pub(super) fn failure(name: &str, error: Error) -> Failure {
    match error {
        Error::Foreign { reason, .. } => Failure::new(
            format!("{name} is not a recording: {reason}"),
            "recordings are asciicast files of version 2 or 3; `--export` writes one",
        ),
        Error::Line { line, .. } => Failure::new(
            format!("cannot understand line {line} of {name}"),
            format!(
                "what is before it can be played: head -n {} FILE > whole.cast",
                line - 1
            ),
        ),
        Error::Read { source, .. } | Error::Write { source, .. } => Failure::new(
            format!("cannot read {name}: {source}"),
            "name a terminal (weighlock term list), a run (weighlock runs) or a file.cast",
        ),
    }
}
