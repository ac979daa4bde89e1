//! The output log of one run.
//!
//! The log is a row of segments in the run's directory, each named for the
//! absolute offset of its first byte. A segment is two files: `.out` has the
//! raw bytes of both streams in the order they came, `.idx` a fixed-size
//! record for each chunk. Byte offsets and line numbers are counted from the
//! start of the run and never change, whatever is dropped. Past the bound the
//! oldest segment after the head goes, and the gap is what no segment covers.

mod format;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use format::Stream;
pub use read::{InStream, Item, Line, Lines, Log, Piece};
pub(crate) use write::LogWriter;
pub use write::record;
