//! Background tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::State;

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskView {
    /// Its name; can be used wherever a run's id can.
    pub task_id: String,
    /// The run that it is.
    pub command_id: String,
    /// What people type.
    pub short_id: String,
    /// What runs.
    pub command: String,
    /// What it is for.
    pub description: Option<String>,
    /// `running`, `completed`, `failed`, `stopped` or `waiting`.
    pub status: String,
    /// The exact state of its run.
    pub state: State,
    /// Its shell has ended, but other processes continue.
    pub adopted: bool,
    /// How it ended.
    pub exit_code: Option<i32>,
    /// Whose it is.
    pub requested_by: String,
    /// The session.
    pub session_id: Option<String>,
    /// The sandbox, by id.
    pub sandbox_id: Option<String>,
    /// A plain file with its output, for who asked on this machine.
    pub output_file: Option<String>,
    /// When it was started.
    pub started_at: Option<String>,
    /// When its shell ended.
    pub ended_at: Option<String>,
    /// When it is ended at the latest.
    pub until: Option<String>,
    /// After this time without output it is ended.
    pub idle_ms: Option<u64>,
    /// Bytes it has written.
    pub output_bytes: u64,
    /// Ports that it listens on.
    pub ports: Vec<u16>,
    /// Time that its processes have computed for.
    pub cpu_ms: u64,
    /// Their resident memory.
    pub memory_bytes: u64,
    /// Its processes, as the host sees them.
    pub processes: Vec<ProcessView>,
}

/// A process of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessView {
    /// Its number.
    pub pid: u32,
    /// The one that started it, if that is of the task.
    pub parent: Option<u32>,
    /// Its command line.
    pub command: String,
    /// Time that it has computed for.
    pub cpu_ms: u64,
    /// Its resident memory.
    pub memory_bytes: u64,
}

/// What a task has written since the last request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskOutput {
    /// The current state of the task.
    pub task: TaskView,
    /// Its output, both streams in order; bytes that are not text are replaced.
    pub output: String,
    /// The byte that this begins at.
    pub from: u64,
    /// The byte to go on from.
    pub next: u64,
    /// There is more output already: ask again.
    pub more: bool,
    /// Bytes of it that are not kept.
    pub lost_bytes: u64,
}

/// All tasks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskList {
    /// The oldest first.
    pub tasks: Vec<TaskView>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub struct TaskListParams {
    /// Only of this session, by id.
    pub session: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputParams {
    /// Wait until the task has ended.
    #[serde(default)]
    pub block: bool,
    /// How long to wait for that, in milliseconds: 30 seconds by default, at
    /// most 10 minutes.
    pub timeout_ms: Option<u64>,
    /// Byte offset to start at; by default where the last call of the same
    /// reader ended.
    pub from: Option<u64>,
    /// Distinguishes several readers of the same principal.
    #[schemars(length(max = 100))]
    pub reader: Option<String>,
}
