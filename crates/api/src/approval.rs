//! Approvals: questions to people, their answers, and proposed rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ChangesView, ConflictInfo, Explanation, NewGrant, PastCommand, ReasonView};

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Not decided yet, or not approved by enough people.
    Pending,
    /// As many people as needed approved it.
    Approved,
    /// A person rejected it.
    Rejected,
    /// Nobody answered in time.
    Expired,
    /// Nothing waits for the answer any more.
    Withdrawn,
    /// The policy says no by now.
    Blocked,
}

/// How dangerous something is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Easily undone.
    Low,
    /// Worth a look.
    Medium,
    /// Worth a careful one.
    High,
}

impl Risk {
    /// Returns the risk's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Returns the place in the inbox: first things first.
    pub fn rank(self) -> i64 {
        match self {
            Self::High => 0,
            Self::Medium => 1,
            Self::Low => 2,
        }
    }

    /// Returns the risk that has a rank; the highest where none has it.
    pub fn from_rank(rank: i64) -> Self {
        match rank {
            2 => Self::Low,
            1 => Self::Medium,
            _ => Self::High,
        }
    }
}

/// What a person decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// It may run, once.
    ApproveOnce,
    /// Its changes on the copy are applied, and nothing runs again.
    ApplyEffect,
    /// Approved once, and a grant allows commands like it from now on.
    ApproveAlways,
    /// The edited text runs instead, once. Changes of the original on a copy
    /// are discarded.
    ApproveEdited,
    /// It runs on the real files, with the sandbox's network; its changes on a
    /// copy are discarded.
    RunForReal,
    /// It may not run.
    Reject,
}

/// What could be allowed from now on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleProposals {
    /// Something can be allowed beforehand.
    pub offered: bool,
    /// Why not.
    pub why: Option<String>,
    /// One for each part that is asked about.
    pub groups: Vec<RuleGroup>,
    /// The parts that are allowed already; at most 200.
    pub allowed: Vec<String>,
    /// How many commands of the past were looked at.
    pub looked_at: usize,
    /// The scopes in which this person may allow it; the first is the default.
    pub scopes: Vec<ScopeView>,
    /// The session that it belongs to, for what ends with it.
    pub session: Option<String>,
}

/// One part that is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleGroup {
    /// Its text.
    pub text: String,
    /// Bytes of the whole text: first, and one past the last.
    pub span: (usize, usize),
    /// The program, if there is one.
    pub program: Option<String>,
    /// One plain sentence.
    pub does: String,
    /// What could be allowed, the narrowest first; empty where it can only be
    /// asked about each time.
    pub choices: Vec<RuleChoice>,
    /// The choice to begin with; none to keep asking.
    pub selected: Option<usize>,
}

/// One thing that could be allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleChoice {
    /// As a grant takes it.
    pub pattern: String,
    /// What it means, in few words.
    pub label: String,
    /// How many commands of the past it is about.
    pub matched: usize,
    /// The newest of them, at most 50.
    pub commands: Vec<PastCommand>,
    /// Commands that it is about and that were rejected or blocked.
    pub refused: Vec<PastCommand>,
}

/// Whom a grant applies to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScopeView {
    /// In few words.
    pub label: String,
    /// Only for this agent.
    pub agent: Option<String>,
    /// Only in this sandbox, by id.
    pub sandbox: Option<String>,
}

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

/// A page of approvals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalList {
    /// Without explanations and answers.
    pub approvals: Vec<ApprovalView>,
    /// Ask for the next page with this; absent on the last.
    pub cursor: Option<String>,
    /// How many wait in all.
    pub waiting: u64,
}

/// Which approvals to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub struct ApprovalListParams {
    /// Only those in this state; `pending` when not given, `all` for all.
    pub status: Option<ApprovalStatusFilter>,
    /// Only in this sandbox, by id.
    pub sandbox: Option<String>,
    /// Only of this requester.
    pub agent: Option<String>,
    /// The `next` of the previous page.
    pub cursor: Option<String>,
    /// How many, at most 500.
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Status")]
pub enum ApprovalStatusFilter {
    Pending,
    Approved,
    Rejected,
    Expired,
    Withdrawn,
    Blocked,
    All,
}

/// What a person decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "kind": "reject", "fingerprint": "0123456789abcdef01234567",
    "reason": "Keep build/reports, delete only build/cache.",
}))]
pub struct DecisionRequest {
    /// Yes or no.
    pub kind: DecisionKind,
    /// The fingerprint of the approval, which identifies exactly what was
    /// shown.
    pub fingerprint: String,
    /// The reason that the requester sees, word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What has put the question, where it was not a door of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Through>,
    /// The text to run instead, for `approve_edited`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The grants to add, for `approve_always`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<NewGrant>,
    /// Patterns, as in rules, to block from now on for everybody, with
    /// `reject`. For administrators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<String>,
}

/// What puts questions to people for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Through {
    /// An agent's client, asked by the protocol that it speaks.
    Elicitation,
}

/// More time for an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExtendRequest {
    /// How much more: 600 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

impl ApprovalState {
    /// Returns the state's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Blocked => "blocked",
        }
    }

    /// Returns the state that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        serde_json::from_value(word.into()).ok()
    }
}
