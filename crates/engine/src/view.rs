//! A run as the doors show it.

mod changes;
mod reason;

use std::path::Path;

use serde::{Deserialize, Serialize};
use weighlock_confine::{Access, Holds, Network, Rung};
use weighlock_exec::{Cause, Exit, Fate, Size, Status, Totals};
use weighlock_store::{Command, State};
use weighlock_walls::{FileAccess, RunWalls, Sandbox};

pub(crate) use self::changes::{ChangesRecord, rank, shown};
pub(crate) use self::reason::OURSELVES;
use crate::id;
use crate::time;
pub(crate) use weighlock_api::{
    AnswerView, ApprovalView, COPY, ChangesView, ConflictInfo, Detail, Explanation, GrantView,
    LayerView, LeftRunning, LimitsView, Load, OptionView, OutputView, PartView, PolicyView, Reason,
    ReasonView, RuleInForce, RuleView, Run, SandboxView, Situation, TerminalDetail, TokenView,
    Tried, Used,
};

/// Returns how large a terminal was when it was opened.
pub(crate) fn opened_size(terminal: &TerminalDetail) -> Size {
    Size {
        columns: terminal.columns,
        rows: terminal.rows,
    }
}

/// Describes a sandbox before it is known what the kernel enforces.
pub(crate) fn sandbox_view(sandbox: &Sandbox, directory: &Path) -> SandboxView {
    SandboxView {
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
        ..SandboxView::default()
    }
}

/// Describes the walls of one run.
pub(crate) fn walls_view(sandbox: &Sandbox, walls: &RunWalls) -> SandboxView {
    let dir = walls.directory.as_ref();
    SandboxView {
        directory: dir.map(|dir| dir.to_string_lossy().into_owned()),
        files: match walls.files {
            FileAccess::None => "none",
            FileAccess::Read => "read",
            FileAccess::Write => "write",
            FileAccess::Copy => COPY,
        }
        .into(),
        closed: walls.closed.clone(),
        ..sandbox_view(sandbox, Path::new(""))
    }
}

/// Describes what a run may use.
pub(crate) fn limits_view(limits: &weighlock_confine::Limits) -> LimitsView {
    LimitsView {
        memory_bytes: limits.memory_bytes,
        processes: limits.processes,
        open_files: limits.open_files,
        file_bytes: limits.file_bytes,
        disk_bytes: limits.disk_bytes,
        disk_files: limits.disk_files,
    }
}

/// Makes a run of what the store has of it.
pub(crate) trait RunRecord {
    /// Reads the record of a command.
    fn from_command(command: Command) -> Self;
}

impl RunRecord for Run {
    fn from_command(command: Command) -> Self {
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
            status: command.state.status().into(),
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

/// What the engine knows of a run's detail.
pub(crate) trait DetailRecord {
    /// Returns how much of its output there is on disk: with the plain file, if
    /// it has one.
    fn bytes_on_disk(&self) -> u64;

    /// Takes over what the keeper knows.
    fn learn(&mut self, status: &Status, stopped_by: Option<&str>);
}

impl DetailRecord for Detail {
    fn bytes_on_disk(&self) -> u64 {
        let file = self.output_file.as_ref().map(std::fs::metadata);
        self.output.kept_bytes + file.map_or(0, |file| file.map_or(0, |file| file.len()))
    }

    fn learn(&mut self, status: &Status, stopped_by: Option<&str>) {
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
        count_output(&mut self.output, &status.output);
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
        self.reason = reason::why(self, end.cause, end.ended_processes, stopped_by)
            .or_else(|| reason::fatal_signal(self, end.exit));
    }
}

/// Takes over how much output there was.
pub(crate) fn count_output(output: &mut OutputView, totals: &Totals) {
    output.bytes = totals.bytes();
    output.lines = totals.lines();
    output.stdout_bytes = totals.stdout.bytes;
    output.stderr_bytes = totals.stderr.bytes;
    output.lost_bytes = totals.lost_bytes;
    output.lost_because.clone_from(&totals.lost_because);
    output.binary = totals.stdout.binary || totals.stderr.binary;
    output.totals = totals.clone();
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
