//! From what something in a layer was copied up, as the kernel noted it.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use weighlock_confine::FileHandle;

/// Where the kind of the handle is in the mark, and where the handle begins:
/// after its version, a magic number, its length, flags, and the file system.
const KIND: usize = 4;
const HANDLE: usize = 21;

/// Returns whether what stands at a name is another thing than the mark says;
/// nothing where that says nothing, or the file system has no handles.
pub(super) fn names_another(mark: &[u8], dir: impl AsFd, name: &OsStr) -> Option<bool> {
    let (kind, bytes) = (mark.get(KIND)?, mark.get(HANDLE..)?);
    let now = FileHandle::of(dir, name).ok()?;
    Some(now.kind != i32::from(*kind) || now.bytes != bytes)
}
