//! A run as the doors show it.

mod approval;
mod changes;
mod explanation;
mod reason;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_confine::{Access, Holds, Network, Rung};
use weighlock_exec::{Cause, Exit, Fate, Size, Status, Totals};
use weighlock_store::{Command, State};
use weighlock_walls::{Denial, FileAccess, RunWalls, Sandbox};

pub use self::approval::{AnswerView, ApprovalView, Situation, Tried};
pub use self::changes::{ChangesView, ConflictInfo};
pub(crate) use self::changes::{rank, shown};
pub use self::explanation::{
    Explanation, GrantView, OptionView, PartView, PolicyView, ReasonView, RuleInForce, RuleView,
    TokenView,
};
pub(crate) use self::reason::OURSELVES;
pub use self::reason::Reason;
use crate::id;
use crate::time;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Unique, and sorted by time of creation.
    pub command_id: String,
    /// What people type; any beginning of it that is unique will do.
    pub short_id: String,
    /// What it belongs together with.
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
    /// It is not what the audit says of it: somebody has edited the database.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub altered: bool,
}

/// What has no column in the store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Detail {
    /// What the requester said it is for.
    pub description: Option<String>,
    /// The token by which the requester was known, as it is labelled, or else
    /// its first characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The version of the server's rules that it was judged by; none where they
    /// were never saved here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<i64>,
    /// What was asked for, where a person has put another text in its place.
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
    /// What it could use.
    pub limits: Option<LimitsView>,
    /// From start to end.
    pub duration_ms: Option<f64>,
    /// Exit codes of the last pipeline, where bash could tell.
    pub pipestatus: Option<Vec<i32>>,
    /// Why it was blocked, ended or lost, or has not begun.
    pub reason: Option<Reason>,
    /// What was still running when the shell had ended.
    pub left_running: Vec<LeftRunning>,
    /// What it used.
    pub usage: Option<Used>,
    /// Where it ran, and behind which walls.
    pub sandbox: Option<SandboxView>,
    /// What it changed on a copy.
    pub changes: Option<ChangesView>,
    /// The terminal that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalDetail>,
    /// Nobody waits for it.
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
    /// Where the shell that goes on was afterwards.
    pub cwd_after: Option<String>,
    /// Which walls a failed run has met, as its output suggests.
    pub denials: Vec<Denial>,
    /// How much output there was.
    pub output: OutputView,
    /// What the requester should know.
    pub warnings: Vec<String>,
}

/// The terminal of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalDetail {
    /// What it is called in its session.
    pub name: String,
    /// Characters in a line, when it was opened.
    pub columns: u16,
    /// Lines, when it was opened.
    pub rows: u16,
}

impl TerminalDetail {
    /// How large it was when it was opened.
    pub(crate) fn size(&self) -> Size {
        Size {
            columns: self.columns,
            rows: self.rows,
        }
    }
}

/// What is said of files that a run changed on a copy.
pub(crate) const COPY: &str = "copy";

/// The sandbox of a run, and what the kernel enforced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SandboxView {
    /// Its name.
    pub name: String,
    /// The directory that it could use; none where only the system was seen.
    pub directory: Option<String>,
    /// What it could do there: `read`, `write`, `copy` where what it wrote went
    /// to a copy, or `none` without a directory.
    pub files: String,
    /// `off` or `on`.
    pub network: String,
    /// Files on the sandbox's list of secret files that it could not read,
    /// since nobody had allowed it to; relative to the directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<String>,
    /// How strong the walls were: `full`, `shared-proc` or `landlock`.
    pub level: Option<String>,
    /// Each wall, layer by layer.
    pub layers: Vec<LayerView>,
}

impl SandboxView {
    /// Describes a sandbox before it is known what the kernel enforces.
    pub(crate) fn of_sandbox(sandbox: &Sandbox, directory: &Path) -> Self {
        Self {
            name: sandbox.name.clone(),
            directory: Some(directory.to_string_lossy().into_owned()),
            files: match sandbox.files {
                Access::Read => "read",
                Access::Write => "write",
            }
            .into(),
            network: match sandbox.network {
                Network::Off => "off",
                Network::On => "on",
            }
            .into(),
            ..Self::default()
        }
    }

    /// Describes the walls of one run.
    pub(crate) fn of_run(sandbox: &Sandbox, walls: &RunWalls) -> Self {
        let dir = walls.directory.as_ref();
        Self {
            directory: dir.map(|dir| dir.to_string_lossy().into_owned()),
            files: match walls.files {
                FileAccess::None => "none",
                FileAccess::Read => "read",
                FileAccess::Write => "write",
                FileAccess::Copy => COPY,
            }
            .into(),
            closed: walls.closed.clone(),
            ..Self::of_sandbox(sandbox, Path::new(""))
        }
    }
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

impl From<&weighlock_confine::Limits> for LimitsView {
    fn from(limits: &weighlock_confine::Limits) -> Self {
        Self {
            memory_bytes: limits.memory_bytes,
            processes: limits.processes,
            open_files: limits.open_files,
            file_bytes: limits.file_bytes,
            disk_bytes: limits.disk_bytes,
            disk_files: limits.disk_files,
        }
    }
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

/// How much output a run had.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OutputView {
    /// Bytes of both streams, kept or not.
    pub bytes: u64,
    /// Newlines of both streams.
    pub lines: u64,
    /// Bytes of standard output.
    pub stdout_bytes: u64,
    /// Bytes of standard error.
    pub stderr_bytes: u64,
    /// Bytes that are on disk and can be read.
    pub kept_bytes: u64,
    /// Bytes left out between the beginning and the newest end.
    pub dropped_bytes: u64,
    /// Bytes that could not be stored, and why.
    pub lost_bytes: u64,
    /// See `lost_bytes`.
    pub lost_because: Option<String>,
    /// Not text.
    pub binary: bool,
    /// It was removed to make room.
    pub removed: bool,
    /// For cutting it to a reader's measure.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) totals: Totals,
}

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

    pub(crate) fn from_command(command: Command) -> Self {
        // Read twice, which is less work than once with the one in the other.
        let mut detail: Detail = serde_json::from_str(&command.detail).unwrap_or_default();
        let beside: Beside = serde_json::from_str(&command.detail).unwrap_or_default();
        detail.output.totals = beside.totals;
        Self {
            short_id: id::short(&command.id),
            command_id: command.id,
            session_id: command.session,
            sandbox_id: command.sandbox,
            approval_id: command.approval,
            executor: match command.external {
                true => "external",
                false => "weighlock",
            }
            .into(),
            command: command.command,
            cwd: command.cwd,
            status: command.state.status().word().into(),
            state: command.state,
            exit_code: command.exit_code,
            signal: command.signal,
            requested_by: command.requested_by,
            approved_by: command.approved_by,
            created_at: time(command.created_at),
            updated_at: time(command.updated_at),
            started_at: command.started_at.map(time),
            ended_at: command.ended_at.map(time),
            detail,
            open: command.open,
            altered: false,
        }
    }
}

/// The detail as it is stored.
#[derive(Serialize)]
struct Stored<'a> {
    #[serde(flatten)]
    detail: &'a Detail,
    totals: &'a Totals,
}

/// What is stored beside the detail.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Beside {
    totals: Totals,
}

/// Returns a command's detail with why it is as it is.
pub(crate) fn explained(command: &Command, reason: Reason) -> String {
    let mut detail = Run::from_command(command.clone()).detail;
    detail.reason = Some(reason);
    stored(&detail)
}

/// Makes a detail what the store keeps of it.
pub(crate) fn stored(detail: &Detail) -> String {
    let totals = &detail.output.totals;
    serde_json::to_string(&Stored { detail, totals }).expect("a detail is always JSON")
}

impl Detail {
    /// Returns whether what it wrote went to a copy.
    pub(crate) fn is_on_copy(&self) -> bool {
        let sandbox = self.sandbox.as_ref();
        sandbox.is_some_and(|sandbox| sandbox.files == COPY)
    }

    /// Returns how much of its output there is on disk: with the plain file, if
    /// it has one.
    pub(crate) fn bytes_on_disk(&self) -> u64 {
        let file = self.output_file.as_ref().map(std::fs::metadata);
        self.output.kept_bytes + file.map_or(0, |file| file.map_or(0, |file| file.len()))
    }

    /// Takes over what the keeper knows.
    pub(crate) fn learn(&mut self, status: &Status, stopped_by: Option<&str>) {
        if let (Some(sandbox), Some(walls)) = (&mut self.sandbox, &status.walls) {
            sandbox.level = Some(walls.rung.word().into());
            if walls.rung == Rung::Landlock {
                sandbox.closed.clear();
            }
            sandbox.layers = walls
                .layers
                .iter()
                .map(|layer| LayerView {
                    name: layer.name.clone(),
                    holds: match layer.holds {
                        Holds::Whole => "whole",
                        Holds::Partly => "partly",
                        Holds::Not => "not",
                        Holds::Unwanted => "unwanted",
                    }
                    .into(),
                    how: layer.how.clone(),
                })
                .collect();
        }
        self.output.learn(&status.output);
        let Some(end) = &status.end else {
            return;
        };
        self.duration_ms = Some(end.micros as f64 / 1000.0);
        self.pipestatus.clone_from(&end.pipestatus);
        self.usage = Some(Used {
            cpu_ms: (end.usage.user_micros + end.usage.system_micros) as f64 / 1000.0,
            peak_memory_bytes: end.usage.peak_bytes,
        });
        self.left_running = end
            .left
            .iter()
            .map(|left| LeftRunning {
                pid: left.pid,
                command: left.command.clone(),
                fate: match left.fate {
                    Fate::Ended => "ended".into(),
                    Fate::Kept => "kept".into(),
                },
            })
            .collect();
        self.reason = self
            .why(end.cause, end.ended_processes, stopped_by)
            .or_else(|| self.fatal_signal(end.exit));
    }
}

impl OutputView {
    pub(crate) fn learn(&mut self, totals: &Totals) {
        self.bytes = totals.bytes();
        self.lines = totals.lines();
        self.stdout_bytes = totals.stdout.bytes;
        self.stderr_bytes = totals.stderr.bytes;
        self.lost_bytes = totals.lost_bytes;
        self.lost_because.clone_from(&totals.lost_because);
        self.binary = totals.stdout.binary || totals.stderr.binary;
        self.totals = totals.clone();
    }
}

/// Returns what the state is after a keeper's last word.
pub(crate) fn state(status: &Status) -> (State, Option<i32>, Option<i32>) {
    let Some(end) = &status.end else {
        return (State::Running, None, None);
    };
    let (code, signal) = match end.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
    };
    let state = match (end.cause, end.exit) {
        (Cause::Hard | Cause::Idle, _) => State::TimedOut,
        (Cause::Stopped | Cause::Exceeded(_), _) | (_, Exit::Signal(_)) => State::Killed,
        (Cause::NotStarted(_), _) => State::Failed,
        (_, Exit::Code(0)) => State::Succeeded,
        (_, Exit::Code(_)) => State::Failed,
    };
    (state, code, signal)
}
