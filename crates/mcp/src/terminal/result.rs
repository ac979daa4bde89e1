//! What the tool answers, always in the same four fields.

use serde::Serialize;
use serde_json::{Map, Value, json};
use weighlock_api::{CommandView, Cut, CutTo, Run, State, TerminalView};

use super::MAX_OUTPUT_CHARS;
use crate::reply::Reply;
use crate::request::{RunStage, refusal};
use crate::say;
use crate::weighlock::word;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct ToolResult {
    pub(crate) success: bool,
    /// What a model reads.
    pub(crate) output: String,
    /// A stable word, or how the command ended, or what failed.
    pub(crate) error: Option<String>,
    /// Apart, since a mistake is one of these, too, and on every way.
    pub(crate) metadata: Box<Map<String, Value>>,
}

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "success": { "type": "boolean", "description": "It was done, and ended with 0." },
            "output": { "type": "string", "description": "What it wrote, or what went wrong." },
            "error": {
                "anyOf": [{ "type": "string" }, { "type": "null" }],
                "description": "Why it was no success.",
            },
            "metadata": { "type": "object", "description": "What programs may want to know." },
        },
        "required": ["success", "output", "error", "metadata"],
    })
}

/// How output is cut.
pub(super) fn cut() -> CutTo {
    CutTo::from(Cut::Head(MAX_OUTPUT_CHARS))
}

impl ToolResult {
    pub(super) fn done(output: impl Into<String>) -> Self {
        Self {
            success: true,
            output: output.into(),
            ..Self::default()
        }
    }

    pub(super) fn failed(output: impl Into<String>, error: impl Into<String>) -> Self {
        Self {
            success: false,
            output: output.into(),
            error: Some(error.into()),
            ..Self::default()
        }
    }

    /// The same, with more for programs.
    pub(super) fn with(mut self, more: Value) -> Self {
        if let Value::Object(more) = more {
            self.metadata.extend(more);
        }
        self
    }

    pub(super) fn reply(self) -> Reply {
        let failed = !self.success;
        Reply::new(self.output.clone(), &self).failing(failed)
    }

    /// What a run has come to.
    pub(super) fn of(view: &CommandView) -> Self {
        let run = &view.run;
        let told = match RunStage::of(run) {
            RunStage::Refused => {
                let why = refusal(run);
                Self::failed(why.what, why.code).with(json!({ "hint": why.hint }))
            }
            RunStage::Running => Self::failed(below(say::unfinished(run), view), "running"),
            RunStage::Pending => {
                let told = Self::failed(below(say::unfinished(run), view), "pending");
                match returncode(run) {
                    // It ran on a copy, and its changes are asked about.
                    Some(code) => told.with(json!({ "returncode": code })),
                    None => told,
                }
            }
            RunStage::Ended if run.state == State::TimedOut => {
                Self::timed_out(view, run.detail.timeout_ms.div_ceil(1000))
            }
            RunStage::Ended => Self::ended(view),
        };
        told.with(json!({ "id": run.short_id, "state": word(&run.state) }))
    }

    pub(super) fn timed_out(view: &CommandView, seconds: u64) -> Self {
        Self::failed(
            below(format!("Timed out after {seconds}s"), view),
            "timeout",
        )
    }

    fn ended(view: &CommandView) -> Self {
        let run = &view.run;
        if let (true, Some(127)) = (run.detail.without_shell, run.exit_code) {
            let program = run.command.split_whitespace().next().unwrap_or_default();
            let program = program.trim_matches(['\'', '"']);
            return Self::failed(format!("Command not found: {program}"), "not_found");
        }
        let output = match said(view) {
            "" => "(no output)",
            text => text,
        };
        // Who was ended by a wall should know.
        let why = match (run.state, &run.detail.reason) {
            (State::Killed | State::Lost, Some(reason)) => format!("\n[{}]", reason.text),
            _ => String::new(),
        };
        let code = returncode(run);
        Self {
            success: code == Some(0),
            output: format!("{output}{why}"),
            error: match code {
                Some(0) => None,
                Some(code) => Some(format!("Exit code {code}")),
                None => Some("Exit code None".into()),
            },
            ..Self::default()
        }
        .with(json!({ "returncode": code }))
        .with(match say::beside(run) {
            none if none.is_empty() => Value::Null,
            notes => json!({ "notes": notes }),
        })
    }
}

/// As Python counts: a signal is negative.
pub(super) fn returncode(run: &Run) -> Option<i32> {
    run.exit_code.or(run.signal.map(|signal| -signal))
}

/// Its process, if it has one.
pub(super) fn pid(terminal: &TerminalView) -> String {
    terminal.pid.map_or("N/A".into(), |pid| pid.to_string())
}

/// A terminal in short.
pub(super) fn summary(terminal: &TerminalView) -> Value {
    json!({
        "id": terminal.short_id,
        "name": terminal.name,
        "description": terminal.description,
        "command": terminal.command,
        "status": terminal.status,
        "pid": terminal.pid,
        "cwd": terminal.cwd,
        "uptime_seconds": terminal.uptime_seconds,
        "last_active": terminal.last_active,
    })
}

fn said(view: &CommandView) -> &str {
    view.text.as_deref().unwrap_or_default()
}

/// What was written so far goes below what is to be known first.
fn below(head: String, view: &CommandView) -> String {
    match said(view) {
        "" => head,
        text => format!("{head}\n{text}"),
    }
}
