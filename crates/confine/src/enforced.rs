//! What the kernel truly enforces around a run.

use serde::{Deserialize, Serialize};

use crate::profile::Rung;

/// The walls that stand, layer by layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// How strong they are as a whole.
    pub rung: Rung,
    /// Each layer, whether it stands or not.
    pub layers: Vec<WallLayer>,
}

/// One layer of the walls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallLayer {
    /// A stable word, such as `files`.
    pub name: String,
    /// How much of it holds.
    pub holds: Holds,
    /// By what, or why not.
    pub how: String,
}

/// How much of a layer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// All of it.
    Whole,
    /// Some of it; `how` says what does not.
    Partly,
    /// Nothing.
    Not,
    /// Nothing, and nothing was wanted.
    Unwanted,
}

impl Enforced {
    pub(crate) fn say(&mut self, name: &str, holds: Holds, how: impl Into<String>) {
        self.layers.push(WallLayer {
            name: name.into(),
            holds,
            how: how.into(),
        });
    }
}
