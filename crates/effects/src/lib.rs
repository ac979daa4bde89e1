//! Finds what a run would change: from copy-on-write layers to [`Changes`],
//! which are shown, committed exactly as shown, and undone.
//!
//! A run sees each directory that it may write through a [`Layer`]. Afterwards
//! [`Changes::scan`] reads from the layer alone what is different; nothing of
//! it has reached the live tree. Only [`commit`] does that, and it takes a
//! permit that names the hash of the changes a person has seen.

mod about;
mod anchors;
mod attributes;
mod blob;
mod body;
mod changes;
mod commit;
mod compare;
mod conflict;
mod content;
mod diff;
mod error;
mod git;
mod hash;
mod layer;
mod look;
mod node;
mod notes;
mod open;
mod patch;
mod rename;
mod saved;
mod scan;
mod secret;

pub use changes::{Change, Changes, Kind, Refusal, Root, Source};
pub use commit::{
    Applied, CommitError, Place, Recovered, commit, forget_images, is_applied, is_unfinished,
    recover,
};
pub use conflict::Conflict;
pub use diff::{FileDiff, Hunk, Line, More, Page, Shape, Side, compare};
pub use error::Error;
pub use layer::Layer;
pub use node::{Node, NodeKind, Raw, Time};
pub use secret::mask;
