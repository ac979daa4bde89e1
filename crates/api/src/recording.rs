//! Recordings of runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is in a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingIndex {
    /// How long it is, in seconds.
    pub duration: f64,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Places that somebody may look for.
    pub marks: Vec<RecordingMark>,
    /// Times from which it can be played at once, in seconds.
    pub frames: Vec<f64>,
    /// The run goes on, and so does its recording.
    pub open: bool,
}

/// A place in a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingMark {
    /// When, in seconds.
    pub time: f64,
    /// What kind of thing: `command`, `approval`, `taken`, `given_back`,
    /// `resized` or `exit`.
    pub kind: String,
    /// In words.
    pub text: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordingParams {
    /// Begin at this time, in seconds: with the screen as it was then.
    pub at: Option<f64>,
    /// Show what seems to be a secret.
    #[serde(default)]
    pub reveal: bool,
}
