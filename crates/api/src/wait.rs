//! Waiting for what runs do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Run;

/// Something that a run may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// The run, by its id, or a terminal's name.
    pub id: String,
    /// What to wait for.
    #[serde(default)]
    pub until: WaitKind,
    /// For `output`: a regular expression, for one line at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// For `output`: the byte offset to search from; by default 0, so that
    /// earlier output counts too.
    #[serde(default)]
    pub from: u64,
    /// For `port`: which one; any when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// For `idle` and `stable`: how long, in milliseconds; 500 when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// What can be waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Kind")]
pub enum WaitKind {
    /// Its command has ended, or it will never begin.
    #[default]
    Exit,
    /// A line of its output matches.
    Output,
    /// It listens on a port.
    Port,
    /// It has written nothing for a time.
    Idle,
    /// Its screen has been the same for a time.
    Stable,
    /// It waits for input.
    Input,
    /// The keyboard of its terminal is free again.
    Keyboard,
}

/// What became of something that was waited for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Met {
    /// Which of those asked for, from 0.
    pub index: usize,
    /// The run.
    pub command_id: String,
    /// The condition.
    pub until: WaitKind,
    /// It has happened. If not, it never will: the run has ended.
    pub met: bool,
    /// The line that matches.
    pub line: Option<String>,
    /// Where it begins, in bytes of the output.
    pub offset: Option<u64>,
    /// The port.
    pub port: Option<u16>,
    /// The text before the cursor.
    pub prompt: Option<String>,
    /// The note left when the keyboard was given back.
    pub text: Option<String>,
}

/// What to wait for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "for": [{ "id": "dev-server", "until": "port", "port": 3000 }], "timeout_ms": 10_000,
}))]
pub struct WaitRequest {
    /// Things that runs may do.
    #[serde(rename = "for")]
    pub wanted: Vec<Wanted>,
    /// All of them; one is enough when not set.
    #[serde(default)]
    pub all: bool,
    /// How long, in milliseconds: 30 seconds when not given, 10 minutes at the
    /// most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What waiting has come to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitView {
    /// It was enough: one thing has happened, or all that were asked for.
    pub met: bool,
    /// Time was up before that.
    pub timed_out: bool,
    /// What has happened, in the order that it did, and what never will.
    pub happened: Vec<Met>,
    /// The current state of every run that the request names.
    pub runs: Vec<Run>,
}
