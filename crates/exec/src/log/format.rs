//! The files of a segment.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where a byte came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The first bytes of every index file.
pub(super) const MAGIC: [u8; 8] = *b"wlidx\0\0\x01";

/// Magic, then the sequence number of the first record.
pub(super) const HEADER: usize = 16;

/// Bytes of one record.
pub(super) const RECORD: usize = 32;

/// One chunk of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    /// Absolute offset of its first byte.
    pub(super) offset: u64,
    /// Newlines before it.
    pub(super) line: u64,
    /// Time since the run's start.
    pub(super) micros: u64,
    pub(super) len: u32,
    pub(super) stream: Stream,
}

impl Record {
    pub(super) fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    pub(super) fn encode(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.line.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.micros.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.len.to_le_bytes());
        bytes[28] = self.stream as u8;
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Some(Self {
            offset: long(0),
            line: long(8),
            micros: long(16),
            len: u32::from_le_bytes(bytes[24..28].try_into().expect("4 bytes")),
            stream: match bytes[28] {
                0 => Stream::Stdout,
                1 => Stream::Stderr,
                _ => return None,
            },
        })
    }
}

pub(super) fn data_path(dir: &Path, base: u64) -> PathBuf {
    dir.join(format!("{base:020}.out"))
}

pub(super) fn index_path(dir: &Path, base: u64) -> PathBuf {
    dir.join(format!("{base:020}.idx"))
}

/// Returns the base of a segment from the name of its index file.
pub(super) fn base_of(name: &str) -> Option<u64> {
    name.strip_suffix(".idx")?.parse().ok()
}
