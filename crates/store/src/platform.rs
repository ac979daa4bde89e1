//! What differs between systems: who may read a file, and writing in place.

pub(crate) use system::{keep_private, overwrite};

#[cfg(unix)]
mod system {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::unix::fs::{FileExt, OpenOptionsExt};

    /// Lets only the owner read a file that these options create.
    pub(crate) fn keep_private(options: &mut OpenOptions) -> &mut OpenOptions {
        options.mode(0o600)
    }

    /// Writes over the beginning of a file.
    pub(crate) fn overwrite(file: &File, bytes: &[u8]) -> io::Result<()> {
        file.write_all_at(bytes, 0)
    }
}

#[cfg(windows)]
mod system {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::windows::fs::FileExt;

    /// A file inherits who may read it from its directory.
    pub(crate) fn keep_private(options: &mut OpenOptions) -> &mut OpenOptions {
        options
    }

    /// Writes over the beginning of a file.
    pub(crate) fn overwrite(file: &File, bytes: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            match file.seek_write(&bytes[written..], written as u64)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => written += count,
            }
        }
        Ok(())
    }
}
