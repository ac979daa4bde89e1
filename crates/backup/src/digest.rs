//! Size and hash of a file, computed while its content is copied.

use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use weighlock_store::hex;

use crate::error::Error;

/// Bytes per read: large enough that hashing, not system calls, takes the time.
const CHUNK_BYTES: usize = 256 * 1024;

/// Size and hash of a file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileDigest {
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// Copies a reader to a writer and returns the digest of the content. The paths
/// are for the error: either side may fail.
pub(crate) fn copy_and_hash(
    (from, mut source): (&Path, impl Read),
    (to, mut target): (&Path, impl Write),
) -> Result<FileDigest, Error> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        let read = match source.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map_err(Error::file(from))?,
        };
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        target.write_all(&buffer[..read]).map_err(Error::file(to))?;
        bytes += read as u64;
    }
    Ok(FileDigest {
        bytes,
        sha256: hex(&hasher.finalize()),
    })
}
