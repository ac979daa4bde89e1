//! What a run would change: from copy-on-write layers to [`Changes`], which
//! are shown, committed exactly as shown, and undone.
//!
//! A run sees each directory that it may write through a [`Layer`]. Afterwards
//! [`Changes::scan`] reads from the layer alone what is different; nothing of
//! it has reached the live tree. Only [`commit`] does that, and it takes a
//! permit that names the hash of what was seen.

mod changes;
mod commit;
mod conflict;
mod look;
mod node;

pub use changes::{Change, Changes, Kind, Refusal, Root, Source};
pub use commit::{Applied, CommitError, Place, Recovered, commit, forget_images, recover};
pub use conflict::Conflict;
pub use node::{Node, NodeKind, Raw, Time};
