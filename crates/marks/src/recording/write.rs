//! Writes a recording.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::platform::keep_private;

use super::event::{Event, EventKind};
use super::header::{Header, Size};
use super::read::EventReader;
use super::text::TextDecoder;
use crate::Error;

/// Bytes of text in one event. Longer output becomes several, so that a line
/// never takes more than six times as much: `\u001b` for every byte.
const EVENT_BYTES: usize = 64 * 1024;

/// The last line of a file that we wrote is within this many bytes.
const TAIL_BYTES: u64 = 1024 * 1024;

/// Writes a recording. Each event is one write, so that a crash costs no more
/// than the line it cuts, and at most the beginning of one character.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
    /// Where the next event begins in the file.
    position: u64,
    /// What is added to the caller's times.
    offset: Duration,
    /// The time of the last event.
    last: Duration,
    output: TextDecoder,
    line: String,
}

impl Recorder {
    /// Begins a recording in a new file, readable by its owner alone.
    pub fn create(path: &Path, header: &Header) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        let file = keep_private(&mut options)
            .open(path)
            .map_err(|source| unwritten(path, source))?;
        let mut recorder = Self {
            path: path.to_owned(),
            file,
            position: 0,
            offset: Duration::ZERO,
            last: Duration::ZERO,
            output: TextDecoder::default(),
            line: header.line(),
        };
        recorder.flush()?;
        Ok(recorder)
    }

    /// Goes on with a recording, after removing a last line that was cut off.
    /// The caller's times then begin `pause` after its last event.
    pub fn resume(path: &Path, pause: Duration) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        let mut file = options
            .append(true)
            .read(true)
            .open(path)
            .map_err(|source| unwritten(path, source))?;
        // Only a file that reads as ours is written to.
        let reader = EventReader::open(path)?;
        if !reader.absolute() {
            let reason = "only version 2 can be continued".into();
            let path = path.to_owned();
            return Err(Error::Foreign { path, reason });
        }
        let (position, last) = end(&mut file).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        file.set_len(position)
            .map_err(|source| unwritten(path, source))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            position,
            offset: last + pause,
            last,
            output: TextDecoder::default(),
            line: String::new(),
        })
    }

    /// Records what the terminal showed. A character that is cut off comes
    /// with the next output.
    pub fn output(&mut self, time: Duration, bytes: &[u8]) -> Result<(), Error> {
        for bytes in bytes.chunks(EVENT_BYTES) {
            let text = self.output.feed(bytes);
            if !text.is_empty() {
                self.event(time, EventKind::Output(text))?;
            }
        }
        Ok(())
    }

    /// Records what was typed. Not for what the terminal does not echo.
    pub fn input(&mut self, time: Duration, text: &str) -> Result<(), Error> {
        self.event(time, EventKind::Input(text.to_owned()))
    }

    /// Records that the terminal has another size.
    pub fn resize(&mut self, time: Duration, size: Size) -> Result<(), Error> {
        self.event(time, EventKind::Resize(size))
    }

    /// Records a place worth finding.
    pub fn marker(&mut self, time: Duration, label: &str) -> Result<(), Error> {
        self.event(time, EventKind::Marker(label.to_owned()))
    }

    /// Ends the recording; half a character becomes a replacement.
    pub fn finish(mut self) -> Result<(), Error> {
        match self.output.finish() {
            Some(text) => self.event(
                self.last.saturating_sub(self.offset),
                EventKind::Output(text),
            ),
            None => Ok(()),
        }
    }

    /// Where the next event begins in the file, for a key frame.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns a time of the caller's as the recording counts it.
    pub fn recorded(&self, time: Duration) -> Duration {
        // A player expects times that never go back.
        (self.offset + time).max(self.last)
    }

    fn event(&mut self, time: Duration, kind: EventKind) -> Result<(), Error> {
        let time = self.recorded(time);
        Event { time, kind }.line(&mut self.line);
        self.last = time;
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Error> {
        let done = self.file.write_all(self.line.as_bytes());
        match done {
            Ok(()) => self.position += self.line.len() as u64,
            // A full disk may take a part of the line; nothing may follow it.
            Err(_) => drop(self.file.set_len(self.position)),
        }
        self.line.clear();
        done.map_err(|source| unwritten(&self.path, source))
    }
}

fn unwritten(path: &Path, source: io::Error) -> Error {
    let path = path.to_owned();
    Error::Write { path, source }
}

/// Returns where the last whole line ends, and its time.
fn end(file: &mut File) -> io::Result<(u64, Duration)> {
    let length = file.seek(SeekFrom::End(0))?;
    let start = length.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = vec![];
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    let Some(newline) = memchr::memrchr(b'\n', &tail) else {
        return Err(io::Error::other("the last line is too long"));
    };
    let whole = &tail[..newline];
    // The header has no time, nor has a line that makes no sense.
    let last = whole
        .rsplit(|&byte| byte == b'\n')
        .find_map(|line| Event::parse(str::from_utf8(line).ok()?))
        .map_or(Duration::ZERO, |event| event.time);
    Ok((start + newline as u64 + 1, last))
}
