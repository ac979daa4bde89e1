//! Events: what happens, as it happens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The number of its entry in the audit; where to go on from.
    pub id: u64,
    /// `approval.created`, `run.updated` and so on; `reset` when so much was
    /// missed that everything should be looked at again.
    pub event: String,
    /// When.
    pub time: String,
    /// The exact word of the audit.
    pub kind: String,
    /// Who did it.
    pub actor: String,
    /// The run it is about.
    pub command_id: Option<String>,
    /// The approval it is about.
    pub approval_id: Option<String>,
    /// Where.
    pub sandbox_id: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StreamParams")]
pub struct EventStreamParams {
    /// Send what happened after this event first; the header `Last-Event-ID`
    /// does the same and takes precedence.
    pub after: Option<u64>,
}
