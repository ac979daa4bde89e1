//! Approvals: questions to people, their answers, and proposed rules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ChangesView, ConflictInfo, Explanation, NewGrant, PastCommand, ReasonView};

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has answered yet, or not enough have.
    Pending,
    /// As many people as needed said yes.
    Approved,
    /// A person said no.
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
    /// What it did on a copy is applied, and nothing is run again.
    ApplyEffect,
    /// It may run, and what is like it may from now on.
    ApproveAlways,
    /// Another text runs instead, once. What the first did on a copy is thrown
    /// away.
    ApproveEdited,
    /// It runs on the real files, with the sandbox's network; what it did on a
    /// copy is thrown away.
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
    /// For whom this person may allow it; the first is what to begin with.
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
    /// The program, where there is one.
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

/// For whom something is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScopeView {
    /// In few words.
    pub label: String,
    /// Only for this agent.
    pub agent: Option<String>,
    /// Only in this sandbox, by id.
    pub sandbox: Option<String>,
}

/// One question to a person, and its answer once there is one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// Unique, and sorted by time of creation.
    pub approval_id: String,
    /// What people type; any beginning of it that is unique will do.
    pub short_id: String,
    /// `pending`, `approved`, `rejected`, `expired`, `withdrawn` or `blocked`.
    pub state: ApprovalState,
    /// `low`, `medium` or `high`.
    pub risk: Risk,
    /// One sentence about what the command does. It is ours, not the agent's.
    pub summary: String,
    /// What the requester says that it is for: a claim.
    pub claim: Option<String>,
    /// Who asks.
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
    /// What it is given to read, as far as that is known now; at most 16 KiB.
    pub input: Option<String>,
    /// Bytes of it beyond that.
    pub more_input: usize,
    /// The requester can hand it anything to read later, which nobody sees
    /// before.
    pub input_follows: bool,
    /// What the sandbox lets it reach: `off` or `on`.
    pub network: String,
    /// What it may do with the files there: `read` or `write`.
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
    /// Names exactly what is asked about; a decision must repeat it.
    pub fingerprint: String,
    /// Grows when what is asked about has changed.
    pub version: i64,
    /// What it did on a copy: the question is whether that is applied.
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
    /// One line: how it ended, and what it comes to.
    pub header: String,
    /// What it changed, in short.
    pub changes: ChangesView,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// Hosts that it tried to reach, as far as its output tells: it was offline.
    #[serde(default)]
    pub stopped: Vec<String>,
    /// What stands in the way of applying it.
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
    /// There is nothing to wait for any more.
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
    /// What the requester is told.
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
    /// From the page before.
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
    /// From the approval: names exactly what was seen.
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
    /// What is allowed from now on, for `approve_always`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<NewGrant>,
    /// What is blocked from now on, for everybody, with `reject`: patterns as
    /// rules have them. For administrators.
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
