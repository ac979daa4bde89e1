//! Places in a recording from which it can be played.
//!
//! The file begins with eight bytes of magic. Each frame follows as time in
//! microseconds, position, and length of the snapshot, each as eight bytes,
//! little-endian; then the snapshot.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::platform::{keep_private, read_exact_at};

use super::event::{Event, EventKind};
use super::header::Size;
use crate::Error;

const MAGIC: [u8; 8] = *b"wlkey\0\0\x01";

/// Time, position, length.
const HEAD: usize = 24;

/// A screen with all its scrollback is far smaller.
const SNAPSHOT_BYTES: u64 = 64 * 1024 * 1024;

/// A place from which a recording can be played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// When, since the beginning of the recording.
    pub time: Duration,
    /// Where the next event begins in the recording's file.
    pub position: u64,
    /// What the screen was; its maker alone knows how to read it.
    pub snapshot: Vec<u8>,
}

impl Frame {
    /// Returns the lines of a recording that make an empty terminal show what
    /// was shown then: its size, and then these bytes.
    pub fn lines(time: Duration, (width, height): (u16, u16), shown: &[u8]) -> Vec<u8> {
        let mut lines = String::new();
        let kinds = [
            EventKind::Resize(Size { width, height }),
            EventKind::Output(String::from_utf8_lossy(shown).into_owned()),
        ];
        for kind in kinds {
            Event { time, kind }.line(&mut lines);
        }
        lines.into_bytes()
    }
}

/// How far apart key frames are. Whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spacing {
    pub bytes: u64,
    pub time: Duration,
}

impl Default for Spacing {
    /// A screen is drawn from half a megabyte in a few milliseconds.
    fn default() -> Self {
        Self {
            bytes: 512 * 1024,
            time: Duration::from_secs(30),
        }
    }
}

/// Writes key frames beside a recording.
#[derive(Debug)]
pub struct Frames {
    path: PathBuf,
    file: File,
    /// Where the next frame begins in the index.
    end: u64,
    spacing: Spacing,
    /// Time and position of the last frame.
    last: (Duration, u64),
}

impl Frames {
    /// Begins an index, or goes on with one. Frames past `recording_bytes`
    /// are of events that a crash lost, and are removed.
    pub fn open(path: &Path, spacing: Spacing, recording_bytes: u64) -> Result<Self, Error> {
        let failed = |source| unwritten(path, source);
        let mut options = OpenOptions::new();
        options.append(true).read(true).create(true);
        let mut file = keep_private(&mut options).open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() < MAGIC.len() as u64 {
            file.set_len(0).map_err(failed)?;
            file.write_all(&MAGIC).map_err(failed)?;
        }
        let index = Index::open(path, recording_bytes)?;
        let end = index.end();
        file.set_len(end).map_err(failed)?;
        let last = index.places.last();
        Ok(Self {
            path: path.to_owned(),
            file,
            end,
            spacing,
            last: last.map_or_else(Default::default, |last| (last.time, last.position)),
        })
    }

    /// Whether it is time for a key frame.
    pub fn due(&self, time: Duration, position: u64) -> bool {
        // Nothing new: the last frame serves.
        position > self.last.1
            && (position - self.last.1 >= self.spacing.bytes
                || time.saturating_sub(self.last.0) >= self.spacing.time)
    }

    /// Adds a key frame, in one write.
    pub fn add(&mut self, frame: &Frame) -> Result<(), Error> {
        let micros = frame.time.as_micros() as u64;
        let numbers = [micros, frame.position, frame.snapshot.len() as u64];
        let mut bytes: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        bytes.extend_from_slice(&frame.snapshot);
        if let Err(source) = self.file.write_all(&bytes) {
            // A full disk may take a part; nothing may follow it.
            drop(self.file.set_len(self.end));
            return Err(unwritten(&self.path, source));
        }
        self.end += bytes.len() as u64;
        self.last = (frame.time, frame.position);
        Ok(())
    }
}

/// Finds key frames. Snapshots stay in the file until asked for.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    file: File,
    places: Vec<FrameEntry>,
}

/// A frame without its snapshot.
#[derive(Debug, Clone, Copy)]
struct FrameEntry {
    time: Duration,
    position: u64,
    /// Where the snapshot is in the index.
    snapshot: u64,
    length: u64,
}

impl Index {
    /// Opens an index. A last frame that was cut off, and what lies past
    /// `recording_bytes`, is passed over.
    pub fn open(path: &Path, recording_bytes: u64) -> Result<Self, Error> {
        let failed = |source| unread(path, source);
        let file = File::open(path).map_err(failed)?;
        let places = places(&file, recording_bytes).map_err(failed)?;
        let Some(places) = places else {
            return Err(Error::Foreign {
                path: path.to_owned(),
                reason: "it is no index".into(),
            });
        };
        Ok(Self {
            path: path.to_owned(),
            file,
            places,
        })
    }

    /// Returns when the frames are.
    pub fn times(&self) -> impl Iterator<Item = Duration> + '_ {
        self.places.iter().map(|place| place.time)
    }

    /// Returns the last frame that is not after `time`.
    pub fn before(&self, time: Duration) -> Result<Option<Frame>, Error> {
        let after = self.places.partition_point(|place| place.time <= time);
        let Some(place) = after.checked_sub(1).map(|last| self.places[last]) else {
            return Ok(None);
        };
        let mut snapshot = vec![0; place.length as usize];
        read_exact_at(&self.file, &mut snapshot, place.snapshot)
            .map_err(|source| unread(&self.path, source))?;
        Ok(Some(Frame {
            time: place.time,
            position: place.position,
            snapshot,
        }))
    }

    fn end(&self) -> u64 {
        let last = self.places.last();
        last.map_or(MAGIC.len() as u64, |last| last.snapshot + last.length)
    }
}

/// Returns `None` if it is another kind of file.
fn places(file: &File, recording_bytes: u64) -> io::Result<Option<Vec<FrameEntry>>> {
    let length = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let mut magic = [0; MAGIC.len()];
    if length < MAGIC.len() as u64 || file.read_exact(&mut magic).is_err() || magic != MAGIC {
        return Ok(None);
    }
    let mut places: Vec<FrameEntry> = vec![];
    let mut at = MAGIC.len() as u64;
    while at + HEAD as u64 <= length {
        let mut head = [0; HEAD];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut head)?;
        let place = place(&head, at + HEAD as u64);
        let before = places
            .last()
            .map_or((Duration::ZERO, 0), |last| (last.time, last.position));
        let possible = place.length <= SNAPSHOT_BYTES
            && place.snapshot + place.length <= length
            && place.position <= recording_bytes
            && (place.time, place.position) >= before;
        if !possible {
            break;
        }
        at = place.snapshot + place.length;
        places.push(place);
    }
    Ok(Some(places))
}

fn place(head: &[u8; HEAD], snapshot: u64) -> FrameEntry {
    let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
    FrameEntry {
        time: Duration::from_micros(number(0)),
        position: number(8),
        snapshot,
        length: number(16),
    }
}

fn unwritten(path: &Path, source: io::Error) -> Error {
    let path = path.to_owned();
    Error::Write { path, source }
}

fn unread(path: &Path, source: io::Error) -> Error {
    let path = path.to_owned();
    Error::Read { path, source }
}
