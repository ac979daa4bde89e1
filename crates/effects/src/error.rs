//! What can go wrong between a layer and the live tree.

use std::io;
use std::path::PathBuf;

/// Why changes could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another directory stands where a root was.
    #[error("{} is no longer the directory that it was", .path.display())]
    Replaced {
        /// Where it was.
        path: PathBuf,
    },
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
