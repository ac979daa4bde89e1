//! Recordings of runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The index of a recording: its length, marks and key frames.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordingIndex {
    /// How long it is, in seconds.
    pub duration: f64,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// Marks to jump to.
    pub marks: Vec<RecordingMark>,
    /// Times from which it can be played at once, in seconds.
    pub frames: Vec<f64>,
    /// The run, and its recording, continue.
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
    /// Start at this time, in seconds, with the screen of that time.
    pub at: Option<f64>,
    /// Show likely secrets.
    #[serde(default)]
    pub reveal: bool,
}
