//! Submodules, as the index of a git repository lists them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use memchr::memmem;

/// The mode of an entry that is a submodule, as it is stored.
const SUBMODULE: [u8; 4] = [0, 0, 0xe0, 0];

const NOT_UNDERSTOOD: &str = "its index is not understood";

/// Where the mode is in an entry, and the flags: behind the id of an object,
/// with SHA-1.
const MODE: usize = 24;
const FLAGS: usize = 60;

/// Returns the paths of all submodules.
///
/// The mode is stored as it is in every version of the format, so that where it
/// does not occur there are none. Otherwise the entries are read, in the
/// versions that git writes unless it is told otherwise.
pub(super) fn submodules(index: &[u8]) -> Result<Vec<PathBuf>, String> {
    if memmem::find(index, &SUBMODULE).is_none() {
        return Ok(vec![]);
    }
    let number = |at: usize| {
        let bytes = index.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    if !index.starts_with(b"DIRC") || !matches!(number(4), Some(2 | 3)) {
        return Err(NOT_UNDERSTOOD.into());
    }
    let mut found = vec![];
    let mut rest = &index[12..];
    for _ in 0..number(8).unwrap_or(0) {
        let (mode, path, after) = entry(rest).ok_or(NOT_UNDERSTOOD)?;
        if mode == SUBMODULE {
            found.push(PathBuf::from(OsStr::from_bytes(path)));
        }
        rest = after;
    }
    Ok(found)
}

/// Reads one entry: its mode, its path, and what follows.
fn entry(bytes: &[u8]) -> Option<([u8; 4], &[u8], &[u8])> {
    let mode = bytes.get(MODE..MODE + 4)?.try_into().ok()?;
    let flags = u16::from_be_bytes(bytes.get(FLAGS..FLAGS + 2)?.try_into().ok()?);
    let start = FLAGS + if flags & 0x4000 == 0 { 2 } else { 4 };
    let length = memchr::memchr(0, bytes.get(start..)?)?;
    // With longer ids everything is elsewhere; the stored length says so.
    if length.min(0xfff) != usize::from(flags & 0xfff) || length == 0 {
        return None;
    }
    let size = (start + length + 8) & !7;
    Some((mode, &bytes[start..start + length], bytes.get(size..)?))
}
