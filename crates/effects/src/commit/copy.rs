//! Copies the bytes of a file, as cheaply as the file systems allow.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom as Position, Write};

use rustix::fs::{SeekFrom, copy_file_range, ftruncate, ioctl_ficlone, seek};
use rustix::io::Errno;

/// Copied at once where the kernel does not do it; more is not faster.
const CHUNK_BYTES: usize = 256 * 1024;

/// Makes the content of `to`, which is empty, that of `from`. Holes stay holes.
pub(crate) fn copy(from: &File, to: &File) -> io::Result<()> {
    if ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    let size = from.metadata()?.len();
    let mut at = 0;
    while at < size {
        let start = match seek(from, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL) => at,
            Err(error) => return Err(error.into()),
        };
        let end = seek(from, SeekFrom::Hole(start)).unwrap_or(size);
        range(from, to, start, end)?;
        at = end;
    }
    Ok(ftruncate(to, size)?)
}

fn range(from: &File, to: &File, start: u64, end: u64) -> io::Result<()> {
    let (mut read, mut written) = (start, start);
    while read < end {
        let length = usize::try_from(end - read).unwrap_or(usize::MAX);
        let length = length.min(1 << 30);
        match copy_file_range(from, Some(&mut read), to, Some(&mut written), length) {
            Ok(0) => break,
            Ok(_) => {}
            Err(Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                return by_hand(from, to, read, end);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn by_hand(mut from: &File, mut to: &File, start: u64, end: u64) -> io::Result<()> {
    from.seek(Position::Start(start))?;
    to.seek(Position::Start(start))?;
    let mut left = end - start;
    let mut buffer = vec![0; CHUNK_BYTES];
    while left > 0 {
        let most = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        let length = from.read(&mut buffer[..most])?;
        if length == 0 {
            break;
        }
        to.write_all(&buffer[..length])?;
        left -= length as u64;
    }
    Ok(())
}
