//! From what something in a layer was copied up, as the kernel noted it.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use weighlock_confine::FileHandle;

/// Where the kind of the handle is in the mark, and where the handle begins:
/// after its version, a magic number, its length, flags, and the file system.
const KIND: usize = 4;
const HANDLE: usize = 21;

/// Returns whether what stands at a name is another thing than the mark says.
/// Where file systems have no handles, nobody knows.
pub(super) fn names_another(mark: &[u8], dir: impl AsFd, name: &OsStr) -> bool {
    let (Some(kind), Some(bytes)) = (mark.get(KIND), mark.get(HANDLE..)) else {
        return false;
    };
    FileHandle::of(dir, name).is_ok_and(|now| now.kind != i32::from(*kind) || now.bytes != bytes)
}
