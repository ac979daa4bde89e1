//! What can go wrong with changes.

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
    /// A file could not be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There are fewer changes than that.
    #[error("there is no change number {index}")]
    NoSuch {
        /// What was asked for, from 0.
        index: usize,
    },
    /// Whoever takes the patch took it no more.
    #[error("cannot write the patch")]
    Write(#[source] io::Error),
}
