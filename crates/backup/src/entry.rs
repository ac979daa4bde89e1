//! One line of a backup's file list.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weighlock_store::hex;

/// A file, directory or symbolic link of the state directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchiveEntry {
    /// Relative to the state directory.
    pub(crate) path: String,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Time of the last change, in seconds and nanoseconds since 1970.
    pub(crate) mtime: (i64, i64),
    #[serde(flatten)]
    pub(crate) content: EntryContent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(crate) enum EntryContent {
    File {
        bytes: u64,
        sha256: String,
    },
    Dir,
    /// The target in hexadecimal, since it may be any bytes.
    Link {
        target: String,
    },
}

impl EntryContent {
    pub(crate) fn link(target: &[u8]) -> Self {
        Self::Link {
            target: hex(target),
        }
    }
}

/// Decodes a link's target.
pub(crate) fn decode_target(text: &str) -> Option<PathBuf> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes = digits.map(byte).collect::<Option<Vec<u8>>>()?;
    Some(OsString::from_vec(bytes).into())
}
