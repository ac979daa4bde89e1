//! The audit, as the server shows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a verification of the audit found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedView {
    /// The number of the last entry up to which all are right.
    pub entries: u64,
    /// The hash of the last of them.
    pub head: String,
    /// The entries up to this one were removed by retention, as a checkpoint in
    /// the chain tells.
    pub removed_to: Option<u64>,
    /// The first entry that is wrong, and how.
    pub fault: Option<FaultView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultView {
    pub seq: u64,
    pub what: String,
    /// Set when the entries are right but a row contradicts them: its table and
    /// key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
}

/// Audit entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entries {
    /// Oldest first.
    pub entries: Vec<serde_json::Value>,
    /// Ask for what follows with `after` this; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// The audit entries of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEntries {
    /// Oldest first.
    pub entries: Vec<serde_json::Value>,
    /// What the entries say about the run.
    pub steps: Vec<Steps>,
}

/// What one entry says of a run's life. The record is not repeated: what began
/// at once was requested and judged by the same entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Steps {
    /// The entry's number.
    pub seq: u64,
    /// In their order: `requested`, `verdict`, `held` while work was paused,
    /// `asked`, `decided`, `started`, `ended`.
    pub steps: Vec<String>,
}

/// Which entries to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub struct AuditListParams {
    /// Only those about this run, by its whole id.
    pub run: Option<String>,
    /// Only those about this sandbox, by id.
    pub sandbox: Option<String>,
    /// Only what this person or agent did.
    pub actor: Option<String>,
    /// Only entries about runs and questions of this person or agent.
    pub owner: Option<String>,
    /// Only this kind: `run.started`, or all of `run.`.
    pub kind: Option<String>,
    /// Only from this time on (RFC 3339).
    pub from: Option<String>,
    /// Only before this time.
    pub to: Option<String>,
    /// Only those after this number.
    #[serde(default)]
    pub after: u64,
    /// How many, at most 1000.
    pub limit: Option<usize>,
}
