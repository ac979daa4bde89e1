//! What a terminal showed, as a file that can be played.
//!
//! Written as [asciicast](https://docs.asciinema.org/manual/asciicast/v2/)
//! version 2, one line per event; read as version 2 or 3. A side file has key
//! frames, so that a player can start in the middle.

mod event;
mod header;
mod index;
mod read;
mod text;
mod write;

pub use event::{Event, EventKind};
pub use header::{Header, Size};
pub use index::{Frame, Frames, Index, Spacing};
pub use read::{EventReader, first_line};
pub use write::Recorder;
