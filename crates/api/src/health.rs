//! The server's health.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::SandboxView;

/// Whether the engine serves, at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Always `ok`: a server that answers is healthy.
    pub status: String,
    /// The server's version.
    pub version: String,
    /// How long it has been up.
    pub uptime_seconds: f64,
    /// Runs under way.
    pub running: usize,
    /// Commands run in this directory or below it.
    pub base: String,
    /// All sandboxes.
    pub sandboxes: Vec<SandboxView>,
    /// Bytes of output on disk.
    pub output_bytes: u64,
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Everything is fine.
    Ok,
    /// Worth knowing.
    Hint,
    /// Something is not as promised.
    Problem,
}

/// One line of `weighlock doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// How it came out.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// Everything that the server reports to `weighlock doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checks {
    /// In the order they are shown.
    pub checks: Vec<Check>,
    /// Each kernel feature that walls use, as tried just now.
    #[serde(default)]
    pub primitives: Vec<PrimitiveView>,
}

/// One primitive that walls are made of, and whether the kernel grants it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrimitiveView {
    /// A stable word, such as `user-namespace`.
    pub name: String,
    /// The kernel grants it.
    pub ok: bool,
    /// What was found: a version, say.
    pub found: Option<String>,
    /// The kernel's error, as a number.
    pub errno: Option<i32>,
    /// What failed and how, with the error's name.
    pub error: Option<String>,
    /// What does not hold without it.
    pub means: String,
    /// What a person can do about it here.
    pub fix: Option<String>,
}
