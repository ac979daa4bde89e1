//! What can go wrong between a layer and the live tree.

use std::io;
use std::path::PathBuf;

/// Why changes could not be read or shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something is not what it was when the changes were looked at.
    #[error("{} changed meanwhile", .path.display())]
    Stale {
        /// What changed.
        path: PathBuf,
    },
    /// A file or directory could not be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another directory stands where a root was.
    #[error("{} is no longer the same directory", .path.display())]
    Replaced {
        /// Where it was.
        path: PathBuf,
    },
    /// There are fewer changes than that.
    #[error("there is no change number {index}")]
    NoSuch {
        /// What was asked for, from 0.
        index: usize,
    },
    /// The reader of the patch stopped reading.
    #[error("cannot write the patch")]
    Write(#[source] io::Error),
}

impl Error {
    /// Returns what makes an error of a failed read of this path.
    pub(crate) fn read<E: Into<io::Error>>(path: impl Into<PathBuf>) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |source| Self::Read {
            path,
            source: source.into(),
        }
    }
}
