//! `run_command`: any shell command, for any agent; and `wait`, for what takes
//! longer than a call may.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weighlock_api::{CommandView, Cut, NewCommand, Run, State};

use crate::api::Failure;
use crate::call::{Call, OnCancel};
use crate::reply::Reply;
use crate::request::{RunStage, notes, refusal};
use crate::tool::{Hints, Tool, answer, parse, schema};
use crate::weighlock::{self, word};

/// Characters that are kept of the end of each stream.
const KEPT: usize = 50_000;

/// Seconds that a command may take, whatever it asks for.
const MOST_SECONDS: i64 = 600;

#[derive(Deserialize, JsonSchema)]
struct RunCommand {
    /// The shell command to execute.
    command: String,
    /// Directory to run it in, inside of the workspace; default: the
    /// workspace.
    #[serde(default)]
    working_dir: Option<String>,
    /// Timeout in seconds (default: 120, max: 600).
    #[serde(default)]
    timeout: Option<i64>,
}

/// What it has come to.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Ran {
    /// Missing where it did not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The last 50,000 characters.
    stdout: String,
    /// The last 50,000 characters.
    stderr: String,
    /// There was more of either.
    truncated: bool,
    /// A time limit ended it.
    timed_out: bool,
    /// How it is, where it did not simply end: `running`, `waiting` for a
    /// person, `blocked`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// Names it for `wait`.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

pub(crate) fn tools() -> Vec<Tool> {
    vec![run_command(), weighlock::wait()]
}

fn run_command() -> Tool {
    Tool {
        name: "run_command",
        title: "Run a command",
        description: "Execute shell commands for file processing, compilation, data \
            transformation, or any other task.",
        input: schema::<RunCommand>,
        output: Some(answer::<Ran>),
        hints: Hints {
            destroys: true,
            open_world: true,
            ..Hints::default()
        },
        deed: |call, arguments| Box::pin(async move { run(call, parse(arguments)?).await }),
    }
}

async fn run(call: &Call, asked: RunCommand) -> Result<Reply, Failure> {
    let seconds = asked.timeout.map(|seconds| seconds.min(MOST_SECONDS));
    let new = NewCommand {
        command: asked.command,
        cwd: asked.working_dir,
        // Without one, the agent's own counts.
        timeout_ms: seconds.map(|seconds| seconds.saturating_mul(1000)),
        cut: Some(Cut::Tail(KEPT).into()),
        ..NewCommand::default()
    };
    Ok(reply(call.run(new, OnCancel::Stop).await?))
}

fn reply(view: CommandView) -> Reply {
    let stage = RunStage::of(&view.run);
    let text = text(&view, stage);
    let run = &view.run;
    let plain = matches!(run.state, State::Succeeded | State::Failed);
    let cut = view.left_out_chars > 0;
    let ran = Ran {
        exit_code: run.exit_code.filter(|_| stage == RunStage::Ended),
        truncated: cut,
        timed_out: run.state == State::TimedOut,
        state: (!plain).then(|| word(&run.state)),
        id: (!plain || cut).then(|| run.short_id.clone()),
        error: (stage == RunStage::Refused).then(|| refusal(run).data()),
        stdout: view.stdout.unwrap_or_default(),
        stderr: view.stderr.unwrap_or_default(),
    };
    Reply::new(text, &ran).failing(stage == RunStage::Refused)
}

/// As a model reads it: how it is, what it wrote, what else is to be known.
fn text(view: &CommandView, stage: RunStage) -> String {
    let id = &view.run.short_id;
    let notes = notes(&view.run).join("\n");
    let (head, notes) = match stage {
        RunStage::Ended => (exit(&view.run), notes),
        // What was not run has nothing before the reason.
        RunStage::Refused => (notes, String::new()),
        RunStage::Running => (
            format!("Still running: {id}. Do not run it again; wait for {id}."),
            notes,
        ),
        RunStage::Pending => (
            format!("{notes}\nDo not run it again: wait for {id}, or go on with other work."),
            String::new(),
        ),
    };
    let of_stderr = view.left_out_stderr_chars;
    let of_stdout = view.left_out_chars - of_stderr;
    let parts = [
        head,
        stream("STDOUT", view.stdout.as_deref(), of_stdout),
        stream("STDERR", view.stderr.as_deref(), of_stderr),
        notes,
    ];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n\n")
}

/// What was written to a stream, and how much of it is missing.
fn stream(name: &str, written: Option<&str>, left_out: u64) -> String {
    let written = written.unwrap_or_default();
    // What is no text is named, and its end is not shown.
    let cut = match left_out > 0 && written.chars().count() >= KEPT {
        true => format!("[… {left_out} characters truncated, showing the last {KEPT}]\n"),
        false => String::new(),
    };
    match written.trim_end_matches('\n') {
        "" if cut.is_empty() => String::new(),
        written => format!("{name}:\n{cut}{written}"),
    }
}

fn exit(run: &Run) -> String {
    match (run.exit_code, run.signal) {
        (Some(code), _) => format!("Exit code: {code}"),
        (None, Some(signal)) => format!("Exit code: none (signal {signal})"),
        (None, None) => format!("Exit code: none ({})", word(&run.state)),
    }
}
