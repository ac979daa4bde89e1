//! Where the live tree is no longer what a run saw.

use serde::{Deserialize, Serialize};

use crate::node::Raw;

/// One path that others changed meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// Index of the root it is in.
    pub root: usize,
    /// Relative to the root.
    pub path: Raw,
    /// What is different, as a sentence without a full stop.
    pub why: String,
}
