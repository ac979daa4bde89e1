//! What could not be done.

use std::io;
use std::path::PathBuf;

/// What could not be done, and why.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A recording or an index could not be written.
    #[error("cannot write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    /// A recording or an index could not be read.
    #[error("cannot read {}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The file is something else.
    #[error("{} is not a recording: {reason}", .path.display())]
    Foreign { path: PathBuf, reason: String },
    /// A line in the middle of a recording makes no sense.
    #[error("cannot understand line {line} of {}", .path.display())]
    Line { path: PathBuf, line: u64 },
}
