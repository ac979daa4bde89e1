//! Requests for runs, and the views of runs in answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{Load, Review, Run, Shell};

use crate::changes::Settle;
use crate::cut::CutTo;

/// A request to run a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "command": "git status", "wait_ms": 1000 }))]
#[schemars(example = serde_json::json!({
    "command": "npm run build", "description": "Build the project", "sandbox_id": "default",
    "background": true,
}))]
pub struct NewCommand {
    /// The text for the shell.
    pub command: String,
    /// What it is for, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The session it belongs to: its id, or the client's own name for it. By
    /// default a new session is opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The sandbox to run in, by id or name; the requester's default when not
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<String>,
    /// The working directory: the sandbox's directory or one below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment variables to add.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The profile that the agent works under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What reads the command; when not given, `sh` where all shells read it
    /// alike, and bash otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellName>,
    /// Standard input of the command; empty by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Input will follow by `POST …/stdin`.
    #[serde(default)]
    pub stdin_open: bool,
    /// Time limit of the run. A value above the maximum is lowered, and the
    /// answer says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// After this time without output the run is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<i64>,
    /// How long to wait for the end before answering with a handle; until the
    /// end when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<i64>,
    /// Return at once. The default time limit is then the maximum.
    #[serde(default)]
    pub background: bool,
    /// If it still runs when this is answered, or the requester disconnects
    /// before, it is ended unless they come back within 10 seconds, with
    /// `attend` when they look at it.
    #[serde(default)]
    pub attend: bool,
    /// Processes that the shell leaves running continue under the run's keeper.
    #[serde(default)]
    pub keep: bool,
    /// Who runs it: `weighlock`, or `external` for a requester that runs it
    /// itself once it may, and reports by `…/finalize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    /// `before`: ask a person before it runs, where it would be tried on a
    /// copy first; for commands whose point is elsewhere, such as the network.
    /// Otherwise than the sandbox says, `effects` and `none` count only of
    /// those who may decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// Try it on a copy, and ask about every change.
    #[serde(default)]
    pub preview: bool,
    /// How much of its output the answer contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutTo>,
}

/// The outcome of a command: its result, if its requester ran it; or what to do
/// with its changes on a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(example = serde_json::json!({ "exit_code": 0, "stdout": "ok\n" }))]
#[schemars(example = serde_json::json!({ "changes": "commit" }))]
pub struct FinalizeRequest {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Its exit code; required for one that its requester has run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Apply its changes, or throw them away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Settle>,
    /// From the changes as they were seen; anything else is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The reason that the requester sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Who runs a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Executor {
    /// We do, behind walls.
    Weighlock,
    /// The requester does.
    External,
}

/// A yes to the question about a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApproveRequest {
    /// The fingerprint of the question, which identifies exactly what was
    /// shown. Without it, the approval is valid only if the question has not
    /// changed since it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The reason that the requester sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A no to the question about a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RejectRequest {
    /// The reason that the requester sees, word for word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How to end a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRequest {
    /// Ask with the signal of Ctrl C instead of the one for ending.
    #[serde(default)]
    pub interrupt: bool,
    /// How long it has to end in order before it is forced: 2000 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// The available shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShellName {
    /// `/bin/sh`.
    Sh,
    /// `/bin/bash`.
    Bash,
}

/// A run and its output, shortened for the reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandView {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// Standard output.
    pub stdout: Option<String>,
    /// Standard error.
    pub stderr: Option<String>,
    /// Both together, where the preset joins them.
    pub text: Option<String>,
    /// Characters that were left out of the above.
    pub left_out_chars: u64,
    /// Of these, out of `stderr`.
    pub left_out_stderr_chars: u64,
    /// How to read the omitted output.
    pub note: Option<String>,
    /// Resources that it uses now, while it runs.
    pub load: Option<Load>,
}

/// A page of runs, newest first, without their output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandList {
    /// The runs.
    pub commands: Vec<Run>,
    /// Ask for the next page with this; absent on the last.
    pub cursor: Option<String>,
    /// The total number, if the request asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// There are more than this count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

impl From<ShellName> for Shell {
    fn from(name: ShellName) -> Self {
        match name {
            ShellName::Sh => Self::Sh,
            ShellName::Bash => Self::Bash,
        }
    }
}
