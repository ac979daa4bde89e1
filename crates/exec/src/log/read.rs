//! Reading a log, while it is written and after.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use regex::bytes::Regex;

use super::format::{HEADER, MAGIC, RECORD, Record, Stream, base_of, data_path, index_path};

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
    /// The line is longer than what is here.
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

/// Longest piece of one line that is handed out; the rest is reached by offset.
const MAX_LINE: usize = 64 * 1024;

/// How much is read at a time when scanning.
const STEP: usize = 1024 * 1024;

struct Segment {
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
    /// of what has been written.
    pub fn read(&self, from: u64, limit: usize) -> io::Result<Vec<Item>> {
        let bases = self.bases()?;
        let start = bases
            .partition_point(|&base| base <= from)
            .saturating_sub(1);
        let (mut items, mut at, mut room) = (vec![], from, limit);
        for &base in &bases[start.min(bases.len())..] {
            let Some(segment) = self.segment(base)? else {
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
        let Some((offset, number)) = self.seek(from)? else {
            return Ok(found);
        };
        let last = from.saturating_add(count as u64 - count.min(1) as u64);
        if number > from {
            found.missing = Some((from, last.min(number - 1)));
        }
        self.scan(offset, number, |line| {
            if line.number > last || found.lines.len() >= count {
                return false;
            }
            found.lines.push(line);
            found.lines.len() < count
        })?;
        if let Some(end) = self.gap_after(&found, last)? {
            found.missing = Some(end);
        }
        Ok(found)
    }

    /// Finds lines that match, from a line number on, at most `most`.
    pub fn find(&self, pattern: &Regex, from: u64, most: usize) -> io::Result<Vec<Line>> {
        let mut found = vec![];
        let Some((offset, number)) = self.seek(from.max(1))? else {
            return Ok(found);
        };
        self.scan(offset, number, |line| {
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
            let data = File::open(data_path(&self.dir, base))?;
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

    /// Calls `each` with every line from a position on until it returns false.
    fn scan(&self, offset: u64, number: u64, mut each: impl FnMut(Line) -> bool) -> io::Result<()> {
        let (mut at, mut number) = (offset, number);
        let mut open: Option<Line> = None;
        loop {
            let items = self.read(at, STEP)?;
            if items.is_empty() {
                break;
            }
            for item in items {
                let piece = match item {
                    Item::Gap { to, .. } => {
                        if let Some(mut line) = open.take() {
                            line.cut = true;
                            if !each(line) {
                                return Ok(());
                            }
                        }
                        let Some((offset, next)) = self.seek_offset(to)? else {
                            return Ok(());
                        };
                        (at, number) = (offset, next);
                        break;
                    }
                    Item::Piece(piece) => piece,
                };
                at = piece.offset + piece.bytes.len() as u64;
                let mut offset = piece.offset;
                for part in piece.bytes.split_inclusive(|&byte| byte == b'\n') {
                    let line = open.get_or_insert_with(|| Line {
                        number,
                        offset,
                        micros: piece.micros,
                        stream: piece.stream,
                        bytes: vec![],
                        cut: false,
                    });
                    let text = part.strip_suffix(b"\n").unwrap_or(part);
                    let room = MAX_LINE - line.bytes.len();
                    line.cut |= text.len() > room;
                    line.bytes.extend_from_slice(&text[..text.len().min(room)]);
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

    /// Finds where a line begins: its offset and its number, which is later
    /// than asked when the line itself is not kept.
    fn seek(&self, line: u64) -> io::Result<Option<(u64, u64)>> {
        let before = line - 1;
        let mut start = None;
        for base in self.bases()? {
            let Some(segment) = self.segment(base)? else {
                continue;
            };
            let Some(first) = segment.records.first() else {
                continue;
            };
            if first.line == 0 && before == 0 {
                return Ok(Some((base, 1)));
            }
            if first.line >= before {
                // The newline that begins it came before this segment.
                return match start {
                    Some(segment) => self.seek_in(&segment, before, base),
                    None => self.seek_offset(base),
                };
            }
            start = Some(segment);
        }
        match start {
            Some(segment) => self.seek_in(&segment, before, u64::MAX),
            None => Ok(None),
        }
    }

    /// Finds the position after the `before`-th newline, in `segment` or else
    /// at the first line that begins at or after `next`.
    fn seek_in(&self, segment: &Segment, before: u64, next: u64) -> io::Result<Option<(u64, u64)>> {
        let at = segment
            .records
            .partition_point(|record| record.line < before)
            .saturating_sub(1);
        let record = segment.records[at];
        let bytes = self.bytes(segment.base, record)?;
        let nth = (before - record.line) as usize;
        match memchr::memchr_iter(b'\n', &bytes).nth(nth - 1) {
            Some(found) => Ok(Some((record.offset + found as u64 + 1, before + 1))),
            // The line begins in a gap after this segment, or does not exist.
            None if next == u64::MAX => Ok(None),
            None => self.seek_offset(next),
        }
    }

    /// Returns the first whole line that begins at or after the start of a
    /// segment.
    fn seek_offset(&self, base: u64) -> io::Result<Option<(u64, u64)>> {
        let Some(segment) = self.segment(base)? else {
            return Ok(None);
        };
        for record in &segment.records {
            let bytes = self.bytes(base, *record)?;
            if let Some(found) = memchr::memchr(b'\n', &bytes) {
                return Ok(Some((record.offset + found as u64 + 1, record.line + 2)));
            }
        }
        Ok(None)
    }

    /// Returns the missing lines after the last one found, if a gap ate them.
    fn gap_after(&self, found: &Lines, last: u64) -> io::Result<Option<(u64, u64)>> {
        let next = match found.lines.last() {
            Some(line) if line.number < last => line.number + 1,
            _ => return Ok(None),
        };
        Ok(match self.seek(next)? {
            Some((_, number)) if number > next => Some((next, last.min(number - 1))),
            _ => None,
        })
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
    fn segment(&self, base: u64) -> io::Result<Option<Segment>> {
        let bytes = match fs::read(index_path(&self.dir, base)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes?,
        };
        if bytes.len() < HEADER || bytes[..8] != MAGIC {
            return Ok(None);
        }
        let first = u64::from_le_bytes(bytes[8..HEADER].try_into().expect("8 bytes"));
        let records = bytes[HEADER..]
            .chunks_exact(RECORD)
            .map_while(Record::decode)
            .collect();
        Ok(Some(Segment {
            base,
            first,
            records,
        }))
    }

    /// Reads what a segment has from an offset on, at most `room` bytes.
    fn pieces(&self, segment: &Segment, from: u64, room: usize) -> io::Result<Vec<Piece>> {
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

impl Segment {
    fn end(&self) -> u64 {
        self.records.last().map_or(self.base, Record::end)
    }
}
