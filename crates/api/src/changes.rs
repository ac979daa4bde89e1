//! What runs changed on a copy, and drafts of sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Run, State};

/// What became of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangesState {
    /// They wait on a copy.
    Held,
    /// They are in the live tree.
    Applied,
    /// They are gone.
    Discarded,
    /// They were applied, and taken back.
    Undone,
}

impl ChangesState {
    /// Returns the state's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Applied => "applied",
            Self::Discarded => "discarded",
            Self::Undone => "undone",
        }
    }
}

/// The undecided changes of one session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Draft {
    /// The session.
    pub session_id: String,
    /// The sandbox, by id.
    pub sandbox_id: Option<String>,
    /// Whose they are.
    pub requested_by: String,
    /// The runs, the oldest first: they are applied in this order.
    pub runs: Vec<DraftRun>,
}

/// The undecided changes of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DraftRun {
    /// The run.
    pub command_id: String,
    /// What people type.
    pub short_id: String,
    /// What ran.
    pub command: String,
    /// A summary of its changes.
    pub changes: ChangesView,
    /// The question about them, if it is still open.
    pub approval_id: Option<String>,
    /// When they are discarded if nobody decides.
    pub kept_until: String,
}

/// All that a run changed, a page of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangesInfo {
    /// The run; none for a whole draft.
    pub command_id: Option<String>,
    /// What it comes to.
    #[serde(flatten)]
    pub view: ChangesView,
    /// A headline: what was tried on the copy, and how it ended.
    pub header: String,
    /// The directory that paths are relative to.
    pub directory: Option<String>,
    /// The changes, deletions first.
    pub changes: Vec<ChangeInfo>,
    /// Conflicts that prevent applying them.
    pub conflicts: Vec<ConflictInfo>,
    /// Runs that were built on these changes, and go with them.
    pub needed_by: Vec<String>,
    /// Where the next page starts, if there is one.
    pub next: Option<usize>,
}

/// One changed path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeInfo {
    /// Its number, by which its diff is asked for.
    pub index: usize,
    /// Relative to the directory, or whole where it is elsewhere.
    pub path: String,
    /// Its previous name.
    pub from: Option<String>,
    /// `created`, `modified`, `deleted`, `renamed`, `mode`, `link` or `times`.
    pub kind: String,
    /// What it is: `file`, `directory`, `link`.
    pub is: String,
    /// Lines added, where it is text.
    pub added: Option<u64>,
    /// Lines removed, where it is text.
    pub removed: Option<u64>,
    /// Bytes before.
    pub size_before: Option<u64>,
    /// Bytes after.
    pub size_after: Option<u64>,
    /// Rights before, in octal.
    pub mode_before: Option<String>,
    /// Rights after, in octal.
    pub mode_after: Option<String>,
    /// Why it is not simply applied: that other programs run it, say.
    pub mark: Option<String>,
    /// What else changes, a line for each: owner, extended attributes, or the
    /// time of modification where nothing else does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<String>,
    /// How many other names the file has (hard links), in the sandbox or outside.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_names: u64,
}

/// What a run changed on a copy, in short.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChangesView {
    /// `none`, `held`, `applied`, `discarded` or `undone`.
    pub state: String,
    /// Names exactly what would be, or was applied.
    pub hash: String,
    /// Its effect in short: "2 files change, 1 is deleted".
    pub summary: String,
    /// How many are new.
    pub created: u64,
    /// How many have another content.
    pub modified: u64,
    /// How many are gone.
    pub deleted: u64,
    /// How many have another name.
    pub renamed: u64,
    /// How many have other rights or attributes, or are or were links.
    pub other: u64,
    /// The first of them, as people read them: `M src/main.rs`. At most 20.
    pub paths: Vec<String>,
    /// The result of the command itself, while a person decides about its
    /// changes and after.
    pub ended_as: Option<State>,
    /// Set when it had network access, whose effects are not among the changes:
    /// the hosts that the command names.
    pub network: Option<Vec<String>>,
    /// Runs whose changes were not applied when it saw them.
    pub built_on: Vec<String>,
    /// Who applied them: a person, or `policy`.
    pub applied_by: Option<String>,
    /// The run that took them back.
    pub undone_by: Option<String>,
    /// They can be taken back.
    pub can_undo: bool,
}

/// Something that is not as the run saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConflictInfo {
    /// Relative to the directory, or whole where it is elsewhere.
    pub path: String,
    /// What happened to it.
    pub why: String,
}

/// Which of the changed paths.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub struct ChangeListParams {
    /// Start at this index: `next` of the previous page.
    #[serde(default)]
    pub from: usize,
    /// How many, at most 500.
    pub limit: Option<usize>,
}

/// Which lines of a diff.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffParams {
    /// Start at this line of the diff.
    #[serde(default)]
    pub offset: u64,
    /// How many lines, at most 5000; 1000 if not given.
    pub limit: Option<u64>,
    /// Show likely secrets.
    #[serde(default)]
    pub reveal: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DraftParams {
    /// Only of this session, by id.
    pub session: Option<String>,
}

/// What waits for a decision, session by session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DraftList {
    /// The drafts.
    pub drafts: Vec<Draft>,
}

/// What to do with a session's draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettleDraft {
    /// Applied in order, or thrown away.
    pub changes: Settle,
    /// The hash of the draft as it was shown; if the draft has changed, the
    /// request is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The reason that the requester sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What to do with changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Settle {
    /// They are applied.
    Commit,
    /// They are thrown away.
    Discard,
}

/// The runs that something was done with, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunList {
    /// The runs.
    pub commands: Vec<Run>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ChangesView {
    /// Returns how many paths change.
    pub fn count(&self) -> u64 {
        self.created + self.modified + self.deleted + self.renamed + self.other
    }
}
