//! What differs between systems: paths from bytes, who may read a file, and
//! reading at a place.

pub(crate) use system::{keep_private, path_from_bytes, read_exact_at};

#[cfg(unix)]
mod system {
    use std::ffi::OsString;
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    use std::path::PathBuf;

    /// Returns the path that a shell named, which may be no text.
    pub(crate) fn path_from_bytes(path: Vec<u8>) -> PathBuf {
        OsString::from_vec(path).into()
    }

    /// Lets only the owner read a file that these options create.
    pub(crate) fn keep_private(options: &mut OpenOptions) -> &mut OpenOptions {
        options.mode(0o600)
    }

    /// Fills the buffer with what begins at a place.
    pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], place: u64) -> io::Result<()> {
        file.read_exact_at(buffer, place)
    }
}

#[cfg(windows)]
mod system {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::windows::fs::FileExt;
    use std::path::PathBuf;

    /// Returns the path that a shell named, as UTF-8.
    pub(crate) fn path_from_bytes(path: Vec<u8>) -> PathBuf {
        String::from_utf8_lossy(&path).into_owned().into()
    }

    /// A file inherits who may read it from its directory.
    pub(crate) fn keep_private(options: &mut OpenOptions) -> &mut OpenOptions {
        options
    }

    /// Fills the buffer with what begins at a place.
    pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], place: u64) -> io::Result<()> {
        let mut read = 0;
        while read < buffer.len() {
            match file.seek_read(&mut buffer[read..], place + read as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => read += count,
            }
        }
        Ok(())
    }
}
