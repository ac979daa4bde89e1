//! The description of a run for an agent.

use schemars::JsonSchema;
use serde::Serialize;
use weighlock_api::{CommandView, Run, State, short_id};

use crate::reply::Reply;
use crate::request::ended_with;
use crate::say::to_agent;

/// A run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(super) struct Told {
    /// Names it for `read`, `wait` and `stop`.
    pub(super) id: String,
    /// `running`, `waiting` for a person, `held` while work is paused,
    /// `succeeded`, `failed`, `timed_out`, `killed`, `blocked`, `rejected`,
    /// `expired`, `withdrawn` or `lost`.
    pub(super) state: String,
    /// `pending`, `approved`, `rejected`, `executed` or `failed`.
    pub(super) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signal: Option<i32>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) stdout: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) stderr: String,
    /// Characters that are left out of the above; `read` has them.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) left_out_chars: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) duration_ms: Option<f64>,
    /// The byte of the output to go on from.
    pub(super) cursor: u64,
    /// Where the shell of the terminal is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    /// The terminal that it was typed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) terminal: Option<String>,
    /// What the terminal shows, while the command goes on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) screen: Vec<String>,
    /// A plain file with its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_file: Option<String>,
    /// The question that a person is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approval_id: Option<String>,
    /// What it changed, and what has become of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) changes: Option<String>,
    /// Why it is as it is, in words; a person's own are quoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) warnings: Vec<String>,
    /// How many lines there are to read, where some are left out.
    #[serde(skip)]
    pub(super) lines: u64,
}

impl Told {
    pub(super) fn new(view: CommandView) -> Self {
        let run = view.run;
        let detail = &run.detail;
        let changes = detail.changes.as_ref();
        // What a terminal has written is for terminals to read.
        let said = match detail.terminal {
            None => (view.text.or(view.stdout), view.stderr, view.left_out_chars),
            Some(_) => (None, None, 0),
        };
        let (stdout, stderr, left_out) = said;
        let denials = detail
            .denials
            .iter()
            .map(|denial| format!("{}: {}", denial.text, denial.remedy));
        Self {
            state: word(&run.state),
            status: run.status.clone(),
            exit_code: run.exit_code,
            signal: run.signal,
            stdout: stdout.unwrap_or_default(),
            stderr: stderr.unwrap_or_default(),
            left_out_chars: left_out,
            lines: detail.output.lines,
            duration_ms: detail.duration_ms,
            cursor: detail.output.bytes,
            cwd: detail.cwd_after.clone(),
            output_file: detail.output_file.clone(),
            approval_id: { run.approval_id.as_deref() }
                .filter(|_| run.state == State::Waiting)
                .map(short_id),
            changes: changes.map(|changes| changes.summary.clone()),
            message: message(&run),
            next: next(&run),
            warnings: { denials.chain(ended_with(&run)) }
                .chain(detail.warnings.iter().cloned())
                .collect(),
            id: run.short_id,
            ..Self::default()
        }
    }

    /// Whether what was asked for did not come to be.
    fn failed(&self) -> bool {
        matches!(
            self.state.as_str(),
            "blocked" | "rejected" | "expired" | "withdrawn" | "lost"
        )
    }

    /// As a model reads it: how it ended, what it said, what is to be known.
    pub(super) fn reply(self) -> Reply {
        let mut text = self.head();
        for part in [&self.stdout, &self.stderr] {
            if !part.is_empty() {
                text.push('\n');
                if std::ptr::eq(part, &self.stderr) {
                    text.push_str("[stderr]\n");
                }
                text.push_str(part.trim_end_matches('\n'));
            }
        }
        if !self.screen.is_empty() {
            text.push_str("\n[screen]\n");
            text.push_str(&self.screen.join("\n"));
        }
        if self.left_out_chars > 0 {
            text.push_str(&self.cut());
        }
        let notes = [&self.message, &self.changes, &self.next];
        for note in notes.into_iter().flatten().chain(&self.warnings) {
            text.push('\n');
            text.push_str(note);
        }
        let failed = self.failed();
        Reply::new(text, &self).failing(failed)
    }

    /// What is said where some of the output is not there.
    fn cut(&self) -> String {
        let id = &self.id;
        match (self.left_out_chars, self.lines) {
            (left_out, 0 | 1) => {
                format!("\n[{left_out} characters left out: read {id} with cursor 0]")
            }
            (left_out, lines) => format!(
                "\n[{left_out} characters left out: read {id} with lines 1:{lines}, or search]"
            ),
        }
    }

    fn head(&self) -> String {
        let how = match (self.exit_code, self.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => self.state.clone(),
        };
        let how = match self.state.as_str() {
            "succeeded" | "failed" => how,
            state if state == how => how,
            state => format!("{state}, {how}"),
        };
        match self.duration_ms {
            Some(millis) => format!("{how} in {millis:.0} ms · {}", self.id),
            None => format!("{how} · {}", self.id),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A state as JSON writes it.
pub(crate) fn word(state: &State) -> String {
    let word = serde_json::to_value(state).expect("a state is a word");
    word.as_str().unwrap_or_default().to_owned()
}

/// Why it is as it is.
fn message(run: &Run) -> Option<String> {
    let reason = run.detail.reason.as_ref()?;
    Some(match (run.state, &reason.rule) {
        (State::Blocked, Some(rule)) => format!(
            "Blocked by rule {rule}: {}. Nothing was run, and no approval is possible.",
            reason.text
        ),
        _ => reason.text.clone(),
    })
}

fn next(run: &Run) -> Option<String> {
    let id = &run.short_id;
    match run.state {
        State::Running => Some(format!(
            "It goes on: wait for {id}, read {id}, or stop {id}."
        )),
        State::Waiting | State::Held => Some(format!(
            "Do not repeat it: wait for {id}, or go on with other work."
        )),
        _ => {
            { run.detail.reason.as_ref() }.and_then(|reason| reason.remedy.as_deref().map(to_agent))
        }
    }
}
