//! A question to a person, as doors show it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_store::{ApprovalState, Risk};

use super::{ChangesView, ConflictInfo, Explanation, ReasonView};

/// One question to a person, and its answer if decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// Unique, and sorted by time of creation.
    pub approval_id: String,
    /// What people type; any unique prefix works.
    pub short_id: String,
    /// `pending`, `approved`, `rejected`, `expired`, `withdrawn` or `blocked`.
    pub state: ApprovalState,
    /// `low`, `medium` or `high`.
    pub risk: Risk,
    /// One sentence about what the command does, written by weighlock and not
    /// by the agent.
    pub summary: String,
    /// The purpose that the requester gives: a claim.
    pub claim: Option<String>,
    /// The requester.
    pub requested_by: String,
    /// The profile that the agent works under.
    pub agent: Option<String>,
    /// The sandbox, by name.
    pub sandbox: String,
    /// The sandbox, by id.
    pub sandbox_id: String,
    /// The session, by id.
    pub session: Option<String>,
    /// The working directory.
    pub cwd: String,
    /// The text that would run, whole.
    pub command: String,
    /// What reads it: `sh` or `bash`.
    pub shell: String,
    /// Names of variables that the request sets.
    pub env: Vec<String>,
    /// The same with their values, but for what seems to be a secret.
    pub environment: Vec<String>,
    /// It is given something to read.
    pub has_input: bool,
    /// Its standard input, as far as it is known now; at most 16 KiB.
    pub input: Option<String>,
    /// Bytes of it beyond that.
    pub more_input: usize,
    /// The requester can send it any input later, which nobody reviews before.
    pub input_follows: bool,
    /// Network access in the sandbox: `off` or `on`.
    pub network: String,
    /// Its access to the files there: `read` or `write`.
    pub files: String,
    /// Why a person is asked, the deciding reason first.
    pub reasons: Vec<ReasonView>,
    /// How many identical requests share this question.
    pub count: u64,
    /// Their runs, the oldest first; at most 100.
    pub command_ids: Vec<String>,
    /// Whether the requester waits for the answer or went on.
    pub situation: Situation,
    /// When it was asked.
    pub created_at: String,
    /// When it ends by itself, as a no.
    pub expires_at: String,
    /// Seconds until then.
    pub expires_in_seconds: u64,
    /// When it was decided.
    pub decided_at: Option<String>,
    /// Who decided: a person, `clock` for an expiry, or who withdrew it.
    pub decided_by: Option<String>,
    /// How many people have to approve.
    pub needed: u32,
    /// What people have answered; only where one approval is asked for.
    pub answers: Vec<AnswerView>,
    /// Identifies exactly what was requested; a decision must repeat it.
    pub fingerprint: String,
    /// Increases when the request changes.
    pub version: i64,
    /// Its changes on a copy: the question is whether to apply them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Tried>,
    /// Everything about the command; only where one approval is asked for, and
    /// while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Box<Explanation>>,
}

/// What a command did on a copy, for the person who decides whether that is
/// applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tried {
    /// `trying`, `ready`, or `stale` once the live files have changed.
    pub state: String,
    /// One line: how it ended, and its effect.
    pub header: String,
    /// A summary of its changes.
    pub changes: ChangesView,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// Hosts that it tried to reach while offline, as far as its output shows.
    #[serde(default)]
    pub stopped: Vec<String>,
    /// Conflicts that prevent applying it.
    #[serde(default)]
    pub conflicts: Vec<ConflictInfo>,
    /// Runs that are applied first, since it was built on them.
    #[serde(default)]
    pub after: Vec<String>,
    /// Runs that were built on it, and go with it when it is rejected.
    #[serde(default)]
    pub needed_by: Vec<String>,
}

/// What a requester does while a person thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Situation {
    /// It waits for the answer.
    Waiting,
    /// It does other things, and will look later.
    WentOn,
    /// It is gone: nobody waits for the answer.
    Over,
}

/// What one person answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerView {
    /// Who.
    pub by: String,
    /// Yes or no.
    pub approved: bool,
    /// By what we knew them: `socket`, `token` or `signed_in`.
    pub how: String,
    /// From where.
    pub origin: String,
    /// The message to the requester.
    pub reason: Option<String>,
    /// The text that is run instead.
    pub edited: Option<String>,
    /// When.
    pub at: String,
}
