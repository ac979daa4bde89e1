//! What a run would change: from copy-on-write layers to [`Changes`], which
//! are shown, committed exactly as shown, and undone.
//!
//! A run sees each directory that it may write through a [`Layer`]. Afterwards
//! [`Changes::scan`] reads from the layer alone what is different; nothing of
//! it has reached the live tree. Only [`commit`] does that, and it takes a
//! permit that names the hash of what was seen.

mod anchors;
mod blob;
mod body;
mod changes;
mod compare;
mod content;
mod diff;
mod error;
mod git;
mod node;
mod notes;
mod patch;
mod secret;

pub use changes::{Change, Changes, Kind, Refusal, Root, Source};
pub use diff::{FileDiff, Hunk, Line, More, Page, Shape, Side};
pub use error::Error;
pub use node::{Node, NodeKind, Raw, Time};
pub use secret::mask;
