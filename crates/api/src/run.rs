//! Runs of commands.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ChangesView, CutTo, OutputView, Review, Settle};

/// The exact state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The policy blocked it.
    Blocked,
    /// A person rejected it.
    Rejected,
    /// A person has been asked.
    Waiting,
    /// All work, or its agent's, is paused.
    Held,
    /// Nobody answered in time.
    Expired,
    /// The requester took it back or left.
    Withdrawn,
    /// It runs.
    Running,
    /// It ended with exit code 0.
    Succeeded,
    /// It ended with another exit code, or could not be started.
    Failed,
    /// A time limit ended it.
    TimedOut,
    /// A signal ended it.
    Killed,
    /// Its end is unknown; `reason` says why.
    Lost,
}

impl State {
    /// Returns the coarse status that follows from the state.
    pub fn status(self) -> RunStatus {
        match self {
            Self::Waiting | Self::Held => RunStatus::Pending,
            Self::Running => RunStatus::Approved,
            Self::Blocked | Self::Rejected | Self::Expired | Self::Withdrawn => RunStatus::Rejected,
            Self::Succeeded => RunStatus::Executed,
            Self::Failed | Self::TimedOut | Self::Killed | Self::Lost => RunStatus::Failed,
        }
    }

    /// Returns the state's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Rejected => "rejected",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Killed => "killed",
            Self::Lost => "lost",
        }
    }

    /// Returns the state that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        serde_json::from_value(word.into()).ok()
    }
}

/// One thing that a wall stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// Stable word: `fs.write`, `fs.read`, `fs.secret`, `fs.setid`, `network`, `syscall`,
    /// `memory`, `processes`, `open_files`, `file_size` or `tmp_full`.
    pub code: String,
    /// The path, host or program, when the message named one. Paths are
    /// absolute.
    pub object: Option<String>,
    /// One sentence: what was stopped, and by which wall.
    pub text: String,
    /// What a person could change.
    pub remedy: String,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Unique, and sorted by time of creation.
    pub command_id: String,
    /// What people type; any unique prefix works.
    pub short_id: String,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// The sandbox, by id.
    pub sandbox_id: Option<String>,
    /// The question that a person was asked about it.
    pub approval_id: Option<String>,
    /// Its requester runs it, and reports: `external`; otherwise `weighlock`.
    pub executor: String,
    /// The text that was judged, and run if it was allowed.
    pub command: String,
    /// The working directory, resolved.
    pub cwd: String,
    /// Coarse: `pending`, `approved`, `rejected`, `executed` or `failed`.
    pub status: String,
    /// Exact.
    pub state: State,
    /// Set when the command ended by itself.
    pub exit_code: Option<i32>,
    /// Set when a signal ended it.
    pub signal: Option<i32>,
    /// Who asked.
    pub requested_by: String,
    /// Who allowed it, if a person was asked.
    pub approved_by: Option<String>,
    /// When it was asked for.
    pub created_at: String,
    /// When something about it changed last.
    pub updated_at: String,
    /// When it was started.
    pub started_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
    /// The rest.
    #[serde(flatten)]
    pub detail: Detail,
    /// Something of it may still be running.
    pub open: bool,
    /// The row contradicts the audit: somebody has edited the database.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub altered: bool,
}

/// What has no column in the store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Detail {
    /// The purpose that the requester gave.
    pub description: Option<String>,
    /// The label of the requester's token, or else its first characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The version of the server's rules that it was judged by; none where they
    /// were never saved here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<i64>,
    /// The original command, if a person edited it.
    pub original: Option<String>,
    /// What read the command: `sh` or `bash`.
    pub shell: String,
    /// Its words were started as they are, and no shell has read them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_shell: bool,
    /// The hard limit.
    pub timeout_ms: u64,
    /// The limit for silence.
    pub idle_ms: Option<u64>,
    /// The limits of the run.
    pub limits: Option<LimitsView>,
    /// From start to end.
    pub duration_ms: Option<f64>,
    /// Exit codes of the last pipeline, where bash could tell.
    pub pipestatus: Option<Vec<i32>>,
    /// Why it was blocked, ended or lost, or has not begun.
    pub reason: Option<Reason>,
    /// Processes still running when the shell ended.
    pub left_running: Vec<LeftRunning>,
    /// Resources that it used.
    pub usage: Option<Used>,
    /// Where it ran, and behind which walls.
    pub sandbox: Option<SandboxView>,
    /// What it changed on a copy.
    pub changes: Option<ChangesView>,
    /// The terminal that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalDetail>,
    /// No client waits for it.
    pub background: bool,
    /// A plain file that its output is also written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_file: Option<String>,
    /// The terminal at whose shell it was typed: the id of its run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_terminal: Option<String>,
    /// Where that shell was when it was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_dir: Option<String>,
    /// The directory of the shell afterwards.
    pub cwd_after: Option<String>,
    /// Which walls probably made a run fail, judged by its output.
    pub denials: Vec<Denial>,
    /// How much output there was.
    pub output: OutputView,
    /// What the requester should know.
    pub warnings: Vec<String>,
}

/// The terminal of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalDetail {
    /// Its name in its session.
    pub name: String,
    /// Characters in a line, when it was opened.
    pub columns: u16,
    /// Lines, when it was opened.
    pub rows: u16,
}

/// The sandbox of a run, and what the kernel enforced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxView {
    /// Its name.
    pub name: String,
    /// The directory that it could use; none where only the system was seen.
    pub directory: Option<String>,
    /// Its access there: `read`, `write`, `copy` if it wrote to a copy, or
    /// `none` without a directory.
    pub files: String,
    /// `off` or `on`.
    pub network: String,
    /// Files on the sandbox's list of secret files that it could not read,
    /// because nobody had allowed it; relative to the directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<String>,
    /// How strong the walls were: `full`, `shared-proc` or `landlock`.
    pub level: Option<String>,
    /// Each wall, layer by layer.
    pub layers: Vec<LayerView>,
}

/// What a run could use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitsView {
    /// Memory of all its processes.
    pub memory_bytes: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// Open files of one process.
    pub open_files: u64,
    /// Size of one file.
    pub file_bytes: u64,
    /// Bytes written to disks.
    pub disk_bytes: u64,
    /// Files made on a copy.
    #[serde(default)]
    pub disk_files: u64,
}

/// One layer of the walls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerView {
    /// A stable word, such as `files`.
    pub name: String,
    /// `whole`, `partly`, `not`, or `unwanted`.
    pub holds: String,
    /// By what, or why not.
    pub how: String,
}

/// A process that outlived its shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftRunning {
    /// As the host sees it.
    pub pid: u32,
    /// Its command line.
    pub command: String,
    /// `ended`, or `kept` under the run's keeper.
    pub fate: String,
}

/// What a run used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Used {
    /// CPU time of all its processes.
    pub cpu_ms: f64,
    /// The largest resident size of any one process.
    pub peak_memory_bytes: u64,
}

/// What a run takes up now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// How many processes it has.
    pub processes: usize,
    /// Their resident memory; shared pages count for each.
    pub memory_bytes: u64,
}

/// Why something was refused or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Stable word.
    pub code: String,
    /// One sentence.
    pub text: String,
    /// The rule that decided, if one did.
    pub rule: Option<String>,
    /// Where that rule is from.
    #[serde(default)]
    pub layer: Option<String>,
    /// The part of the command that it is about, where it is about one.
    #[serde(default)]
    pub part: Option<String>,
    /// What can be done.
    pub remedy: Option<String>,
}

impl Reason {
    /// A reason that is about all of the command, and no rule's.
    pub fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            text: text.into(),
            rule: None,
            layer: None,
            part: None,
            remedy: None,
        }
    }

    /// The same, with what can be done.
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

/// Which runs to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub struct RunListParams {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those with this coarse status: `pending`, `approved`, `rejected`,
    /// `executed` or `failed`.
    pub status: Option<RunStatus>,
    /// Filters and words, as people type them: `agent:coder status:failed rm`.
    /// Keys are `agent`, `status`, `verdict`, `by`, `sandbox`, `terminal`,
    /// `since`, `until`, `exit`, `rule` and `id`; every other word is looked
    /// for in the command, whatever its case.
    pub q: Option<String>,
    /// Only those of this requester.
    pub agent: Option<String>,
    /// Only those in this sandbox, by id.
    pub sandbox: Option<String>,
    /// Only those of this session, by id.
    pub session: Option<String>,
    /// Only those that this person allowed.
    pub by: Option<String>,
    /// Only those requested at this time or later (RFC 3339).
    pub since: Option<String>,
    /// Only those requested before this time.
    pub until: Option<String>,
    /// Only those that may still be running.
    #[serde(default)]
    pub open: bool,
    /// The `next` of the previous page.
    pub cursor: Option<String>,
    /// Skips this many of the newest, where `cursor` is not known: to jump to
    /// the end of a long list.
    #[serde(default)]
    pub skip: usize,
    /// How many, at most 500.
    pub limit: Option<usize>,
    /// Also count all of them.
    #[serde(default)]
    pub count: bool,
    /// How an export is written: `jsonl` or `csv`.
    pub format: Option<ExportFormat>,
}

/// The coarse statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Status")]
pub enum RunStatus {
    Pending,
    Approved,
    Rejected,
    Executed,
    Failed,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShowParams")]
pub struct RunShowParams {
    /// How long to wait for the end, if it runs.
    pub wait_ms: Option<u64>,
    /// With `true`, the run is ended if its requester disconnects and does not
    /// return within 10 seconds, or within 1 second after hanging up on the Unix
    /// socket; with `false`, it continues.
    pub attend: Option<bool>,
    /// How much of its output the answer contains.
    pub cut: Option<CutTo>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StdinParams {
    /// This is the end of the input.
    #[serde(default)]
    pub last: bool,
}

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
    /// `attend` when they look at it; within 1 second after hanging up on the
    /// Unix socket.
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

/// How an export is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Format")]
pub enum ExportFormat {
    /// One JSON object per line: everything, exactly.
    #[default]
    Jsonl,
    /// A table for spreadsheets.
    Csv,
}

/// What [`SandboxView::files`] says of files that a run changed on a copy.
pub const COPY: &str = "copy";

impl Run {
    /// Returns what it came to: `reject` if the rules refused it, `ask` if a
    /// person was asked, `auto` if nobody was.
    pub fn verdict(&self) -> &'static str {
        match (self.state, &self.approval_id) {
            (State::Blocked, _) => "reject",
            (_, Some(_)) => "ask",
            (_, None) => "auto",
        }
    }
}

impl Detail {
    /// Returns whether what it wrote went to a copy.
    pub fn is_on_copy(&self) -> bool {
        let sandbox = self.sandbox.as_ref();
        sandbox.is_some_and(|sandbox| sandbox.files == COPY)
    }
}

impl RunStatus {
    /// Returns the status's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Executed => "executed",
            Self::Failed => "failed",
        }
    }

    /// Returns the status that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        serde_json::from_value(word.into()).ok()
    }
}
