//! The keeper's end of the log.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::format::{HEADER, MAGIC, RECORD, Record, Stream, data_path, index_path};
use crate::status::{StreamTotals, Totals};
use crate::text::CharCount;

/// A bounded log has this many segments; what is dropped goes in such steps.
const SEGMENTS: u64 = 16;

/// The first quarter of the bound is kept for good, the rest is the newest.
const HEAD_SEGMENTS: usize = 4;

/// Chunks of one stream that come this close together share a record, so that
/// a program that writes byte by byte does not make an index larger than its
/// output.
const SAME_RECORD_MICROS: u64 = 2_000;

/// No record is larger, so that a reader never has to load more at once.
const MAX_RECORD: u64 = 1024 * 1024;

/// A stream with a NUL byte this early is not text.
const BINARY_WITHIN: u64 = 64 * 1024;

/// Writes the log of one run and counts what passes.
pub(crate) struct LogWriter {
    dir: PathBuf,
    segment_bytes: u64,
    bases: VecDeque<u64>,
    open: Option<OpenSegment>,
    /// Absolute position in the output, stored or not.
    offset: u64,
    line: u64,
    sequence: u64,
    streams: [StreamCounter; 2],
    lost_bytes: u64,
    lost_because: Option<String>,
}

struct OpenSegment {
    data: File,
    index: File,
    bytes: u64,
    records: u64,
    last: Option<Record>,
}

#[derive(Default)]
pub(super) struct StreamCounter {
    bytes: u64,
    lines: u64,
    chars: CharCount,
    binary: bool,
}

/// Records the output of a command that ran elsewhere, and replaces any log
/// that is in the directory.
pub fn record(dir: &Path, stdout: &[u8], stderr: &[u8], bound: u64) -> io::Result<Totals> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir_all(dir)?,
    }
    let mut writer = LogWriter::new(dir, bound);
    writer.append(Stream::Stdout, stdout, 0);
    writer.append(Stream::Stderr, stderr, 0);
    Ok(writer.totals())
}

impl LogWriter {
    /// Prepares to log into `dir`. Makes no file before the first byte: most
    /// commands say little or nothing.
    pub(crate) fn new(dir: &Path, bound: u64) -> Self {
        Self {
            dir: dir.to_owned(),
            segment_bytes: (bound / SEGMENTS).max(1),
            bases: VecDeque::new(),
            open: None,
            offset: 0,
            line: 0,
            sequence: 0,
            streams: Default::default(),
            lost_bytes: 0,
            lost_because: None,
        }
    }

    /// Takes a chunk. What cannot be stored is counted and reported, never an
    /// error: a full disk does not end the command.
    pub(crate) fn append(&mut self, stream: Stream, mut bytes: &[u8], micros: u64) {
        self.streams[stream as usize].count(bytes);
        while !bytes.is_empty() {
            let (stored, skipped) = match self.store(stream, bytes, micros) {
                Ok(stored) => (stored, 0),
                Err(error) => {
                    self.give_up();
                    self.lost_because.get_or_insert_with(|| error.to_string());
                    (0, bytes.len())
                }
            };
            let done = stored + skipped;
            self.lost_bytes += skipped as u64;
            self.offset += done as u64;
            self.line += newlines(&bytes[..done]);
            bytes = &bytes[done..];
        }
    }

    /// Returns how much came so far.
    pub(crate) fn totals(&self) -> Totals {
        let [stdout, stderr] = &self.streams;
        Totals {
            stdout: stdout.totals(),
            stderr: stderr.totals(),
            lost_bytes: self.lost_bytes,
            lost_because: self.lost_because.clone(),
        }
    }

    /// Stores as much as fits into the open segment, at least one byte.
    fn store(&mut self, stream: Stream, bytes: &[u8], micros: u64) -> io::Result<usize> {
        if self
            .open
            .as_ref()
            .is_none_or(|open| open.size() >= self.segment_bytes)
        {
            self.roll()?;
        }
        let room = self.segment_bytes;
        let (offset, line) = (self.offset, self.line);
        let open = self.open.as_mut().expect("roll opens a segment");
        let room = room.saturating_sub(open.size()).clamp(1, MAX_RECORD);
        let part = &bytes[..bytes.len().min(room as usize)];
        let stored = open.data.write(part)?;
        if stored == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let record = Record {
            offset,
            line,
            micros,
            len: stored as u32,
            stream,
        };
        self.sequence += u64::from(open.record(record)?);
        Ok(stored)
    }

    /// Opens the next segment and drops the oldest one past the bound.
    fn roll(&mut self) -> io::Result<()> {
        self.open = None;
        if self.bases.len() as u64 >= SEGMENTS {
            let base = self.bases.remove(HEAD_SEGMENTS).expect("past the head");
            remove(&self.dir, base)?;
        }
        let made = OpenSegment::create(&self.dir, self.offset, self.sequence);
        if made.is_err() {
            let _ = remove(&self.dir, self.offset);
        }
        self.open = Some(made?);
        self.bases.push_back(self.offset);
        Ok(())
    }

    /// Closes a segment that takes no more. An empty one goes: a flood onto a
    /// full disk would leave as many as it has chunks.
    fn give_up(&mut self) {
        if let Some(open) = self.open.take()
            && open.last.is_none()
            && let Some(base) = self.bases.pop_back()
        {
            let _ = remove(&self.dir, base);
        }
    }
}

/// Removes a segment. The index goes first: a reader trusts only what is
/// indexed.
fn remove(dir: &Path, base: u64) -> io::Result<()> {
    let index = fs::remove_file(index_path(dir, base));
    fs::remove_file(data_path(dir, base))?;
    index
}

impl OpenSegment {
    fn create(dir: &Path, base: u64, sequence: u64) -> io::Result<Self> {
        let data = File::create_new(data_path(dir, base))?;
        let mut index = File::create_new(index_path(dir, base))?;
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..].copy_from_slice(&sequence.to_le_bytes());
        index.write_all(&header)?;
        Ok(Self {
            data,
            index,
            bytes: 0,
            records: 0,
            last: None,
        })
    }

    /// Bytes on disk, index included.
    fn size(&self) -> u64 {
        self.bytes + HEADER as u64 + self.records * RECORD as u64
    }

    /// Indexes what was just written; returns whether that took a new record.
    fn record(&mut self, mut record: Record) -> io::Result<bool> {
        self.bytes += u64::from(record.len);
        let joins = self.last.filter(|last| {
            last.stream == record.stream
                && record.micros - last.micros < SAME_RECORD_MICROS
                && u64::from(last.len) + u64::from(record.len) <= MAX_RECORD
        });
        if let Some(last) = joins {
            record = Record {
                len: last.len + record.len,
                ..last
            };
        } else {
            self.records += 1;
        }
        let at = HEADER as u64 + (self.records - 1) * RECORD as u64;
        self.index.write_all_at(&record.encode(), at)?;
        self.last = Some(record);
        Ok(joins.is_none())
    }
}

impl StreamCounter {
    pub(super) fn count(&mut self, bytes: &[u8]) {
        if !self.binary && self.bytes < BINARY_WITHIN {
            self.binary = memchr::memchr(0, bytes).is_some();
        }
        self.bytes += bytes.len() as u64;
        self.lines += newlines(bytes);
        self.chars.feed(bytes);
    }

    /// Counts bytes that nobody has seen.
    pub(super) fn skip(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    pub(super) fn totals(&self) -> StreamTotals {
        StreamTotals {
            bytes: self.bytes,
            lines: self.lines,
            chars: self.chars.total(),
            binary: self.binary,
        }
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
