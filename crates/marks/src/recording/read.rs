//! Reads a recording.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::event::Event;
use super::header::{EventClock, Header};
use super::index::Frame;
use crate::Error;

/// A longer line is not read. Other recorders write what a program wrote at
/// once, which is rarely more than a few pages of text.
const LINE_BYTES: u64 = 16 * 1024 * 1024;

/// A longer first line is none: what is in it describes a terminal.
const FIRST_BYTES: u64 = 1024 * 1024;

/// Reads events one by one. A last line that was cut off is the end.
#[derive(Debug)]
pub struct EventReader {
    path: PathBuf,
    file: BufReader<File>,
    header: Header,
    clock: EventClock,
    /// Where the next line begins in the file.
    position: u64,
    /// The time of the event before.
    last: Duration,
    /// Lines read, for telling which one makes no sense.
    lines: u64,
    line: Vec<u8>,
    ended: bool,
}

impl EventReader {
    /// Opens a recording and reads its first line.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| unread(path, source))?;
        let mut file = BufReader::new(file);
        let (line, header, clock) = begin(&mut file, path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            header,
            clock,
            position: line.len() as u64,
            last: Duration::ZERO,
            lines: 1,
            line,
            ended: false,
        })
    }

    /// What the recording is of.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Goes to a key frame; the events after it come next.
    pub fn seek(&mut self, frame: &Frame) -> Result<(), Error> {
        self.file
            .seek(SeekFrom::Start(frame.position))
            .map_err(|source| unread(&self.path, source))?;
        self.position = frame.position;
        self.last = frame.time;
        self.ended = false;
        Ok(())
    }

    /// Where the next event begins in the file, for a key frame.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether times count from the beginning.
    pub(super) fn absolute(&self) -> bool {
        self.clock == EventClock::Start
    }

    fn read(&mut self) -> Result<Option<Event>, Error> {
        loop {
            let whole = next_line(&mut self.file, &mut self.line)
                .map_err(|source| unread(&self.path, source))?;
            self.position += self.line.len() as u64;
            self.lines += 1;
            let line = str::from_utf8(&self.line).map(str::trim);
            if whole && matches!(line, Ok(line) if line.is_empty() || line.starts_with('#')) {
                continue;
            }
            return match (line.ok().and_then(Event::parse), whole) {
                (Some(event), _) => Ok(Some(self.timed(event))),
                (None, false) => Ok(None),
                (None, true) => Err(Error::Line {
                    path: self.path.clone(),
                    line: self.lines,
                }),
            };
        }
    }

    fn timed(&mut self, mut event: Event) -> Event {
        if self.clock == EventClock::Before {
            event.time = event.time.saturating_add(self.last);
        }
        self.last = event.time;
        event
    }
}

impl Iterator for EventReader {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let event = self.read().transpose();
        self.ended = !matches!(event, Some(Ok(_)));
        event
    }
}

/// Reads the first line of a stream that can be read only once, and returns it
/// if it begins a recording.
pub fn first_line(from: &mut impl BufRead, path: &Path) -> Result<Vec<u8>, Error> {
    begin(from, path).map(|(line, ..)| line)
}

fn begin(from: &mut impl BufRead, path: &Path) -> Result<(Vec<u8>, Header, EventClock), Error> {
    let mut line = vec![];
    let read = from.take(FIRST_BYTES).read_until(b'\n', &mut line);
    read.map_err(|source| unread(path, source))?;
    let parsed = match str::from_utf8(&line) {
        Ok(text) if text.ends_with('\n') => Header::parse(text),
        _ if line.len() as u64 == FIRST_BYTES => Err("its first line is too long".into()),
        _ => Err("its first line is cut off".into()),
    };
    let (header, clock) = parsed.map_err(|reason| Error::Foreign {
        path: path.to_owned(),
        reason,
    })?;
    Ok((line, header, clock))
}

/// Reads a line and returns whether its end was there.
fn next_line(file: &mut BufReader<File>, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    file.take(LINE_BYTES).read_until(b'\n', line)?;
    if line.len() as u64 == LINE_BYTES {
        return Err(io::Error::other("a line is too long"));
    }
    Ok(line.last() == Some(&b'\n'))
}

fn unread(path: &Path, source: io::Error) -> Error {
    let path = path.to_owned();
    Error::Read { path, source }
}
