//! What the kernel itself calls a file, whatever its name.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;

/// The longest that the kernel gives (`MAX_HANDLE_SZ`).
const LONGEST: usize = 128;

/// A file's handle: stays with it through renames, and is never another's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHandle {
    /// How it is to be read; file systems have their own ways.
    pub kind: i32,
    /// The handle.
    pub bytes: Vec<u8>,
}

#[repr(C)]
struct RawHandle {
    length: libc::c_uint,
    kind: libc::c_int,
    bytes: [u8; LONGEST],
}

impl FileHandle {
    /// Returns the handle of the file with this name. Symbolic links are not
    /// followed.
    pub fn of(dir: impl AsFd, name: &OsStr) -> io::Result<Self> {
        let name = CString::new(name.as_bytes())?;
        let mut raw = RawHandle {
            length: LONGEST as libc::c_uint,
            kind: 0,
            bytes: [0; LONGEST],
        };
        let mut mount: libc::c_int = 0;
        // SAFETY: the name ends with a NUL; the kernel writes one number to
        // `mount` and, as `length` says, no more bytes than there are.
        let done = unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                dir.as_fd().as_raw_fd(),
                name.as_ptr(),
                &raw mut raw,
                &raw mut mount,
                0,
            )
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            kind: raw.kind,
            bytes: raw.bytes[..LONGEST.min(raw.length as usize)].to_vec(),
        })
    }
}
