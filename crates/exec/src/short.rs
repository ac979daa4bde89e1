//! Addresses of sockets in deep directories.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// The path of a file by way of its open directory. A socket's address has
/// room for 108 bytes, and a state directory may be deeper than that.
///
/// The path means something as long as this lives: lend it, do not give it.
pub struct ShortPath {
    path: PathBuf,
    _dir: OwnedFd,
}

impl ShortPath {
    /// Opens the directory; the file need not exist.
    pub fn new(dir: &Path, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = open(dir, flags, Mode::empty())?;
        let through = format!("/proc/self/fd/{}", dir.as_raw_fd());
        Ok(Self {
            path: Path::new(&through).join(name.as_ref()),
            _dir: dir,
        })
    }
}

impl AsRef<Path> for ShortPath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}
