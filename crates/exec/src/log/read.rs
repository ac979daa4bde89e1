//! Reading a log, while it is written and after.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use regex::bytes::Regex;

use super::format::{HEADER, MAGIC, RECORD, Record, Stream, base_of, data_path, index_path};
use super::write::StreamCounter;
use crate::status::Totals;

/// One run's output on disk. Opening costs nothing; every call looks anew, so
/// that it sees what has been written since.
#[derive(Debug, Clone)]
pub struct Log {
    dir: PathBuf,
}

/// A stretch of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// What one stream said.
    Piece(Piece),
    /// Bytes that are not kept.
    Gap {
        /// Absolute offset of the first missing byte.
        from: u64,
        /// Absolute offset of the first byte that is there again.
        to: u64,
    },
}

/// Bytes of one stream, in the order they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Absolute offset of the first byte.
    pub offset: u64,
    /// Sequence number of the chunk it belongs to.
    pub sequence: u64,
    /// When the chunk came, since the run's start.
    pub micros: u64,
    /// Newlines before the chunk.
    pub line: u64,
    /// Where it came out.
    pub stream: Stream,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// One line of the output of both streams together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1.
    pub number: u64,
    /// Absolute offset of its first byte.
    pub offset: u64,
    /// When its first byte came, since the run's start.
    pub micros: u64,
    /// Where its first byte came out.
    pub stream: Stream,
    /// Without the newline.
    pub bytes: Vec<u8>,
    /// There is, or may be, more of the line than is here.
    pub cut: bool,
}

/// A range of lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    /// The lines that are there.
    pub lines: Vec<Line>,
    /// Lines asked for that are not kept: first and last number.
    pub missing: Option<(u64, u64)>,
}

/// A place in what one stream said, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InStream {
    /// After so many from the beginning.
    After(u64),
    /// So many before the end.
    Last(u64),
}

/// Longest piece of one line that is handed out; the rest is reached by offset.
const MAX_LINE: usize = 64 * 1024;

/// How much is read at a time when scanning.
const STEP: usize = 1024 * 1024;

/// Where a line begins.
#[derive(Clone, Copy)]
struct LineStart {
    offset: u64,
    number: u64,
    /// What comes before it is not kept, so its beginning may be missing.
    cut: bool,
}

struct SegmentIndex {
    base: u64,
    first: u64,
    records: Vec<Record>,
}

impl Log {
    /// Names the log in a run's directory, whether or not it exists.
    pub fn open(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
        }
    }

    /// Reads from an absolute offset, at most `limit` bytes. Empty at the end
    /// of the log.
    pub fn read(&self, from: u64, limit: usize) -> io::Result<Vec<Item>> {
        let bases = self.bases()?;
        let start = bases
            .partition_point(|&base| base <= from)
            .saturating_sub(1);
        let (mut items, mut at, mut room) = (vec![], from, limit);
        for &base in &bases[start.min(bases.len())..] {
            let Some(segment) = self.segment_from(base, at)? else {
                continue;
            };
            if segment.end() <= at || room == 0 {
                continue;
            }
            if base > at {
                items.push(Item::Gap { from: at, to: base });
                at = base;
            }
            for piece in self.pieces(&segment, at, room)? {
                at = piece.offset + piece.bytes.len() as u64;
                room -= piece.bytes.len();
                items.push(Item::Piece(piece));
            }
        }
        Ok(items)
    }

    /// Reads lines by number, the first being 1.
    pub fn lines(&self, from: u64, count: usize) -> io::Result<Lines> {
        let from = from.max(1);
        let mut found = Lines::default();
        let (Some(start), Some(more)) = (self.seek(from)?, count.checked_sub(1)) else {
            return Ok(found);
        };
        let last = from.saturating_add(more as u64);
        let mut next = from;
        self.scan(start, |line| {
            if line.number > next {
                let first = found.missing.map_or(next, |(first, _)| first);
                found.missing = Some((first, last.min(line.number - 1)));
            }
            next = line.number + 1;
            if line.number <= last {
                found.lines.push(line);
            }
            next <= last
        })?;
        Ok(found)
    }

    /// Finds lines that match, from a line number on, at most `most`.
    pub fn find(&self, pattern: &Regex, from: u64, most: usize) -> io::Result<Vec<Line>> {
        let mut found = vec![];
        let Some(start) = self.seek(from.max(1))? else {
            return Ok(found);
        };
        self.scan(start, |line| {
            if pattern.is_match(&line.bytes) {
                found.push(line);
            }
            found.len() < most
        })?;
        Ok(found)
    }

    /// Reads the first bytes of one stream, at most `limit`.
    pub fn head(&self, stream: Stream, limit: usize) -> io::Result<Vec<u8>> {
        let (mut bytes, mut at) = (vec![], 0);
        loop {
            let items = self.read(at, STEP)?;
            if items.is_empty() {
                return Ok(bytes);
            }
            for item in items {
                match item {
                    // What comes after a gap does not follow on the head.
                    Item::Gap { .. } => return Ok(bytes),
                    Item::Piece(piece) => {
                        at = piece.offset + piece.bytes.len() as u64;
                        if piece.stream == stream {
                            bytes.extend(piece.bytes);
                        }
                    }
                }
                if bytes.len() >= limit {
                    bytes.truncate(limit);
                    return Ok(bytes);
                }
            }
        }
    }

    /// Reads the last bytes of one stream, at most `limit`.
    pub fn tail(&self, stream: Stream, limit: usize) -> io::Result<Vec<u8>> {
        let mut parts: Vec<Vec<u8>> = vec![];
        let mut have = 0;
        let bases = self.bases()?;
        for &base in bases.iter().rev() {
            let Some(segment) = self.segment(base)? else {
                break;
            };
            let Ok(data) = File::open(data_path(&self.dir, base)) else {
                break;
            };
            for record in segment.records.iter().rev() {
                if record.stream != stream || have >= limit {
                    continue;
                }
                let take = (record.len as usize).min(limit - have);
                let mut part = vec![0; take];
                let at = record.end() - base - take as u64;
                data.read_exact_at(&mut part, at)?;
                have += take;
                parts.push(part);
            }
            if have >= limit {
                break;
            }
        }
        parts.reverse();
        Ok(parts.concat())
    }

    /// Returns the line in which the byte of one stream is that comes after so
    /// many of its first, or that begins so many of its last; none where that
    /// is not kept.
    pub fn line_of(&self, stream: Stream, place: InStream) -> io::Result<Option<u64>> {
        let mut bases = self.bases()?;
        let (mut left, from_end) = match place {
            InStream::After(bytes) => (bytes, false),
            InStream::Last(bytes) => (bytes, true),
        };
        if from_end {
            bases.reverse();
        }
        let mut end = 0;
        for base in bases {
            let Some(mut segment) = self.segment(base)? else {
                return Ok(None);
            };
            if !from_end && base > end {
                return Ok(None);
            }
            end = segment.end();
            if from_end {
                segment.records.reverse();
            }
            let of_stream = segment
                .records
                .iter()
                .filter(|record| record.stream == stream);
            for &record in of_stream {
                let length = u64::from(record.len);
                let inside = match from_end {
                    true => left <= length,
                    false => left < length,
                };
                if !inside {
                    left -= length;
                    continue;
                }
                let before = if from_end { length - left } else { left };
                let bytes = self.bytes(base, record)?;
                let bytes = &bytes[..bytes.len().min(before as usize)];
                let newlines = memchr::memchr_iter(b'\n', bytes).count() as u64;
                return Ok(Some(record.line + newlines + 1));
            }
        }
        Ok(None)
    }

    /// Returns what is kept on disk and the gap in it, if any.
    pub fn kept(&self) -> io::Result<(u64, Option<(u64, u64)>)> {
        let (mut kept, mut end, mut gap) = (0, 0, None);
        for base in self.bases()? {
            let Some(segment) = self.segment(base)? else {
                continue;
            };
            if base > end {
                gap = Some((gap.map_or(end, |(from, _)| from), base));
            }
            end = segment.end();
            kept += end - base;
        }
        Ok((kept, gap))
    }

    /// Counts what came, as far as the log can tell. For runs whose keeper
    /// left no last word.
    pub fn totals(&self) -> io::Result<Totals> {
        let mut streams: [StreamCounter; 2] = Default::default();
        let (mut at, mut last) = (0, Stream::Stdout);
        loop {
            let items = self.read(at, STEP)?;
            if items.is_empty() {
                break;
            }
            for item in items {
                match item {
                    // Nobody knows who said it; likely whoever spoke before.
                    Item::Gap { from, to } => {
                        streams[last as usize].skip(to - from);
                        at = to;
                    }
                    Item::Piece(piece) => {
                        at = piece.offset + piece.bytes.len() as u64;
                        last = piece.stream;
                        streams[last as usize].count(&piece.bytes);
                    }
                }
            }
        }
        let [stdout, stderr] = streams;
        Ok(Totals {
            stdout: stdout.totals(),
            stderr: stderr.totals(),
            ..Totals::default()
        })
    }

    /// Calls `each` with every line from a position on until it returns false.
    fn scan(&self, start: LineStart, mut each: impl FnMut(Line) -> bool) -> io::Result<()> {
        let LineStart {
            offset: mut at,
            mut number,
            mut cut,
        } = start;
        let mut open: Option<Line> = None;
        loop {
            let items = self.read(at, STEP)?;
            if items.is_empty() {
                break;
            }
            for item in items {
                let piece = match item {
                    Item::Piece(piece) => piece,
                    Item::Gap { .. } => {
                        cut = true;
                        if let Some(line) = open.take()
                            && !each(Line { cut, ..line })
                        {
                            return Ok(());
                        }
                        continue;
                    }
                };
                if cut {
                    // The first piece after a gap begins a chunk.
                    number = number.max(piece.line + 1);
                }
                at = piece.offset + piece.bytes.len() as u64;
                let mut offset = piece.offset;
                for part in piece.bytes.split_inclusive(|&byte| byte == b'\n') {
                    let line = open.get_or_insert_with(|| Line {
                        number,
                        offset,
                        micros: piece.micros,
                        stream: piece.stream,
                        bytes: vec![],
                        cut: std::mem::take(&mut cut),
                    });
                    line.extend(part);
                    offset += part.len() as u64;
                    if part.ends_with(b"\n") {
                        number += 1;
                        if let Some(line) = open.take()
                            && !each(line)
                        {
                            return Ok(());
                        }
                    }
                }
            }
        }
        if let Some(line) = open {
            each(line);
        }
        Ok(())
    }

    /// Finds where a line begins, or the first one after it that is kept.
    fn seek(&self, line: u64) -> io::Result<Option<LineStart>> {
        let before = line - 1;
        let mut candidate: Option<SegmentIndex> = None;
        for base in self.bases()? {
            let Some(segment) = self.segment(base)? else {
                continue;
            };
            let Some(first) = segment.records.first() else {
                continue;
            };
            if first.line < before {
                candidate = Some(segment);
                continue;
            }
            // The newline that begins the line came before this segment.
            let start = LineStart {
                offset: base,
                number: first.line + 1,
                cut: base > 0,
            };
            return match candidate {
                Some(segment) => Ok(self.seek_in(&segment, before)?.or(Some(start))),
                None => Ok(Some(start)),
            };
        }
        match candidate {
            Some(segment) => self.seek_in(&segment, before),
            None => Ok(None),
        }
    }

    /// Finds the position after the `before`-th newline, if the segment has it.
    fn seek_in(&self, segment: &SegmentIndex, before: u64) -> io::Result<Option<LineStart>> {
        let at = segment
            .records
            .partition_point(|record| record.line < before)
            .saturating_sub(1);
        let record = segment.records[at];
        let bytes = self.bytes(segment.base, record)?;
        let nth = (before - record.line - 1) as usize;
        let found = memchr::memchr_iter(b'\n', &bytes).nth(nth);
        Ok(found.map(|found| LineStart {
            offset: record.offset + found as u64 + 1,
            number: before + 1,
            cut: false,
        }))
    }

    fn bases(&self) -> io::Result<Vec<u64>> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            entries => entries?,
        };
        let mut bases = vec![];
        for entry in entries {
            bases.extend(entry?.file_name().to_str().and_then(base_of));
        }
        bases.sort_unstable();
        Ok(bases)
    }

    /// Loads the index of a segment; `None` when it was dropped meanwhile.
    fn segment(&self, base: u64) -> io::Result<Option<SegmentIndex>> {
        self.segment_from(base, base)
    }

    /// Reads a segment's index without the records that end before an offset: a
    /// reader that follows a run is near the end, however long the log is.
    fn segment_from(&self, base: u64, from: u64) -> io::Result<Option<SegmentIndex>> {
        let index = match File::open(index_path(&self.dir, base)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            index => index?,
        };
        let length = index.metadata()?.len() as usize;
        let mut head = [0; HEADER];
        if length < HEADER || index.read_exact_at(&mut head, 0).is_err() || head[..8] != MAGIC {
            return Ok(None);
        }
        let first = u64::from_le_bytes(head[8..].try_into().expect("8 bytes"));
        let count = (length - HEADER) / RECORD;
        let skipped = match from <= base {
            true => 0,
            false => ended_before(&index, count, from)?,
        };
        let mut bytes = vec![0; (count - skipped) * RECORD];
        index.read_exact_at(&mut bytes, (HEADER + skipped * RECORD) as u64)?;
        Ok(Some(SegmentIndex {
            base,
            first: first + skipped as u64,
            records: { bytes.chunks_exact(RECORD) }
                .map_while(Record::decode)
                .collect(),
        }))
    }

    /// Reads what a segment has from an offset on, at most `room` bytes.
    fn pieces(&self, segment: &SegmentIndex, from: u64, room: usize) -> io::Result<Vec<Piece>> {
        let data = match File::open(data_path(&self.dir, segment.base)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            data => data?,
        };
        let start = segment
            .records
            .partition_point(|record| record.end() <= from);
        let (mut pieces, mut room) = (vec![], room);
        for (at, record) in segment.records.iter().enumerate().skip(start) {
            if room == 0 {
                break;
            }
            let offset = record.offset.max(from);
            let mut bytes = vec![0; ((record.end() - offset) as usize).min(room)];
            data.read_exact_at(&mut bytes, offset - segment.base)?;
            room -= bytes.len();
            pieces.push(Piece {
                offset,
                sequence: segment.first + at as u64,
                micros: record.micros,
                line: record.line,
                stream: record.stream,
                bytes,
            });
        }
        Ok(pieces)
    }

    fn bytes(&self, base: u64, record: Record) -> io::Result<Vec<u8>> {
        let data = File::open(data_path(&self.dir, base))?;
        let mut bytes = vec![0; record.len as usize];
        data.read_exact_at(&mut bytes, record.offset - base)?;
        Ok(bytes)
    }
}

impl Line {
    /// Takes in more of the line, up to the longest that is handed out.
    fn extend(&mut self, part: &[u8]) {
        let text = part.strip_suffix(b"\n").unwrap_or(part);
        let room = MAX_LINE - self.bytes.len();
        self.cut |= text.len() > room;
        self.bytes.extend_from_slice(&text[..text.len().min(room)]);
    }
}

/// Returns how many records end before an offset, or there.
fn ended_before(index: &File, count: usize, from: u64) -> io::Result<usize> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        let mut bytes = [0; RECORD];
        index.read_exact_at(&mut bytes, (HEADER + middle * RECORD) as u64)?;
        match Record::decode(&bytes) {
            Some(record) if record.end() <= from => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}

impl SegmentIndex {
    fn end(&self) -> u64 {
        self.records.last().map_or(self.base, Record::end)
    }
}
