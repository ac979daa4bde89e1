//! Limits that administrators set, and what is stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much is kept, and what would be removed now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kept {
    /// Output of runs, of which recordings are made.
    pub outputs: KeptPart,
    /// What applied changes need to be undone.
    pub undo: KeptPart,
    /// Undecided changes.
    pub drafts: KeptPart,
    /// Cached recordings; the server makes them again on request.
    pub recordings: KeptPart,
}

/// How much of one thing is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptPart {
    /// How many.
    pub count: u64,
    /// How large they are together.
    pub bytes: u64,
    /// When the oldest was made.
    pub oldest: Option<String>,
    /// How many of them the limits would remove now.
    pub removed: u64,
    /// How large those are together.
    pub removed_bytes: u64,
}

/// Limits that administrators set while the server runs; absent ones come from
/// the configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerLimits {
    /// How long a question waits for a person.
    pub expire_seconds: Option<u64>,
    /// People may allow commands beforehand.
    pub always: Option<bool>,
    /// The time limit of a run when none is asked for.
    pub timeout_default_seconds: Option<u64>,
    /// The longest that can be asked for.
    pub timeout_max_seconds: Option<u64>,
    /// How long output, and with it recordings, is kept.
    pub output_days: Option<u64>,
    /// How much output of all runs together is kept.
    pub output_mib: Option<u64>,
    /// How long applied changes can be undone.
    pub undo_days: Option<u64>,
    /// How much is kept for that.
    pub undo_mib: Option<u64>,
    /// How long undecided changes are kept.
    pub draft_days: Option<u64>,
}

/// The limits in force, and where each comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitsInForce {
    /// The limits in force.
    pub now: ServerLimits,
    /// What administrators have set.
    pub set: ServerLimits,
    /// The values of the configuration file.
    pub file: ServerLimits,
}

/// What the caller may do, and what exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Features {
    /// Ask for commands to be run.
    pub run: bool,
    /// Look at what concerns more than oneself.
    pub look: bool,
    /// Answer questions.
    pub decide: bool,
    /// Stop others' runs; pause and resume.
    pub operate: bool,
    /// Look at everything: the whole audit, the health of the machine.
    pub review: bool,
    /// Change rules, sandboxes, people and tokens.
    pub administer: bool,
    /// Allow commands beforehand.
    pub always: bool,
    /// Requesters may not approve their own requests.
    pub four_eyes: bool,
    /// A command of high risk needs two people.
    pub two_for_high_risk: bool,
    /// How long a question waits.
    pub expire_seconds: u64,
    /// The time limit of a run when none is asked for.
    pub timeout_default_seconds: u64,
    /// The longest that can be asked for.
    pub timeout_max_seconds: u64,
    /// Characters of output that the requester of a run gets.
    pub output_chars: usize,
}

/// Limits to try, to see what they would remove; absent ones stay as they are.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeptParams {
    /// How long output is kept.
    pub output_days: Option<u64>,
    /// How much of it.
    pub output_mib: Option<u64>,
    /// How long applied changes can be undone.
    pub undo_days: Option<u64>,
    /// How much is kept for that.
    pub undo_mib: Option<u64>,
    /// How long undecided changes are kept.
    pub draft_days: Option<u64>,
}
