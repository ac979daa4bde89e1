//! The screen of a recording, at any of its times.

use std::time::Duration;

use weighlock_marks::{Error, Event, EventKind, EventReader, Frame};
use weighlock_screen::{Screen, Size, View};

use super::frames::{KeyFrame, KeyFrames};
use super::recording::size;

/// Lines above the screen that a larger one would show again.
const SCROLLBACK: usize = 200;

/// Reads events and shows them, and can be wound back.
pub(super) struct Reel {
    reader: EventReader,
    /// Read and not yet shown.
    next: Option<Event>,
    /// Where that begins in the file.
    position: u64,
    /// When the last event happened that is shown.
    time: Duration,
    screen: Screen,
    size: Size,
    frames: KeyFrames,
}

impl Reel {
    pub(super) fn new(reader: EventReader, size: Size) -> Result<Self, Error> {
        let first = KeyFrame {
            frame: Frame {
                time: Duration::ZERO,
                position: reader.position(),
                snapshot: vec![],
            },
            size,
        };
        let mut reel = Self {
            position: reader.position(),
            reader,
            next: None,
            time: Duration::ZERO,
            screen: Screen::new(size, SCROLLBACK),
            size,
            frames: KeyFrames::new(first),
        };
        reel.read()?;
        Ok(reel)
    }

    pub(super) fn view(&self) -> View {
        self.screen.view()
    }

    /// When the last event happened that is shown.
    pub(super) fn time(&self) -> Duration {
        self.time
    }

    /// When the next event happens.
    pub(super) fn next_time(&self) -> Option<Duration> {
        self.next.as_ref().map(|next| next.time)
    }

    /// Goes to the key frame from which a time is reached soonest.
    pub(super) fn wind(&mut self, time: Duration) -> Result<(), Error> {
        let KeyFrame { frame, size } = self.frames.before(time);
        if self.time <= time && frame.time <= self.time {
            return Ok(());
        }
        self.screen = Screen::new(*size, SCROLLBACK);
        // Answers are for a program that is not there.
        let _ = self.screen.feed(&frame.snapshot);
        self.size = *size;
        self.time = frame.time;
        self.reader.seek(frame)?;
        self.read()
    }

    /// Shows what happens up to a time, and of that no more than so many
    /// bytes. Returns whether that was all.
    pub(super) fn show(&mut self, until: Duration, bytes: usize) -> Result<bool, Error> {
        let mut shown = 0;
        while let Some(event) = self.next.take_if(|next| next.time <= until) {
            shown += self.apply(event);
            self.read()?;
            self.keep();
            if shown >= bytes {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns how many bytes that was.
    fn apply(&mut self, event: Event) -> usize {
        self.time = event.time;
        match event.kind {
            EventKind::Output(text) => {
                let _ = self.screen.feed(text.as_bytes());
                text.len()
            }
            EventKind::Resize(new) => {
                self.size = size(new.width, new.height);
                self.screen.resize(self.size);
                1
            }
            _ => 1,
        }
    }

    fn read(&mut self) -> Result<(), Error> {
        self.position = self.reader.position();
        self.next = self.reader.next().transpose()?;
        if let Some(next) = &mut self.next {
            // Time never goes back, whatever a file says.
            next.time = next.time.max(self.time);
        }
        Ok(())
    }

    fn keep(&mut self) {
        if !self.frames.is_due(self.position) {
            return;
        }
        let mut snapshot = self.screen.snapshot(SCROLLBACK);
        snapshot.extend(self.screen.unfinished().concat());
        self.frames.add(KeyFrame {
            frame: Frame {
                time: self.time,
                position: self.position,
                snapshot,
            },
            size: self.size,
        });
    }
}
