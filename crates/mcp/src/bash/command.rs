//! `Bash`: a command, waited for or in the background.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weighlock_api::{CommandView, Cut, NewCommand, Run, ShellName, State};

use super::truncate::{MOST, truncate};
use super::{millis, task};
use crate::api::Failure;
use crate::call::{Call, OnCancel};
use crate::reply::Reply;
use crate::request::{RunStage, notes, refusal};
use crate::tool::{Hints, Tool, answer, parse, schema};
use crate::weighlock::word;

/// Milliseconds that a command may ask for.
const MOST_MILLIS: f64 = 600_000.0;

/// What there is to say of a command that was not run, or not yet.
const NOT_RUN: i32 = -1;

const DESCRIPTION: &str = "Execute shell commands with configurable options.

Parameters:
- command: The command to execute (required)
- description: What this command does (recommended)
- timeout: Timeout in milliseconds (default: 120000, max: 600000)
- run_in_background: Run without waiting (returns task_id)
- cwd: Working directory override
- env: Additional environment variables

Best practices:
- Always quote paths with spaces
- Use absolute paths when possible
- Use && to chain dependent commands
- Use ; to run commands regardless of previous success
- Prefer dedicated tools over: find, grep, cat, head, tail

For long-running commands, use run_in_background: true
and TaskOutput tool to check results.
";

#[derive(Deserialize, JsonSchema)]
struct BashInput {
    /// The command to execute
    #[schemars(length(min = 1))]
    command: String,
    /// What this command does
    #[serde(default)]
    description: Option<String>,
    /// Ms, default 120000, max 600000
    #[serde(default)]
    #[schemars(range(min = 0, max = 600000))]
    timeout: Option<f64>,
    /// Don't wait for completion
    #[serde(default)]
    run_in_background: Option<bool>,
    /// Working directory override
    #[serde(default)]
    cwd: Option<String>,
    /// Additional env vars
    #[serde(default)]
    env: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct BashOutput {
    success: bool,
    stdout: String,
    /// Also why it was not run, was ended, or goes on.
    stderr: String,
    /// -1 where it was not run, or not yet.
    exit_code: i32,
    duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<bool>,
    /// For TaskOutput and TaskStop, while it is not over.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_file: Option<String>,
    /// How it is, where it did not simply end: `running`, `waiting` for a
    /// person, `blocked`, `timed_out`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// The run that it is, where there is more to know of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

pub(super) fn tool() -> Tool {
    Tool {
        name: "Bash",
        title: "Run a command",
        description: DESCRIPTION,
        input: schema::<BashInput>,
        output: Some(answer::<BashOutput>),
        hints: Hints {
            destroys: true,
            open_world: true,
            ..Hints::default()
        },
        deed: |call, arguments| Box::pin(async move { run(call, parse(arguments)?).await }),
    }
}

async fn run(call: &Call, asked: BashInput) -> Result<Reply, Failure> {
    call.check_description(asked.description.as_deref())?;
    let background = asked.run_in_background.unwrap_or(false);
    // Nothing asked for is the default, and so is 0. In the background there
    // is none but the longest there is.
    let timeout = millis(asked.timeout, MOST_MILLIS)?;
    let timeout = timeout.filter(|&millis| millis > 0 && !background);
    let new = NewCommand {
        command: asked.command,
        description: asked.description,
        cwd: asked.cwd,
        env: asked.env.unwrap_or_default(),
        shell: Some(ShellName::Bash),
        timeout_ms: timeout.map(|millis| millis as i64),
        background,
        cut: Some(Cut::Ends(MOST).into()),
        ..NewCommand::default()
    };
    let view = call.run(new, OnCancel::Stop).await?;
    Ok(match RunStage::of(&view.run) {
        RunStage::Refused => refused(view),
        RunStage::Pending => pending(call, view).await?,
        _ if background => started(call, &view.run).await?,
        RunStage::Running => left(call, view).await?,
        RunStage::Ended => ended(view),
    })
}

/// It has run, and nothing of it is left.
fn ended(view: CommandView) -> Reply {
    let run = &view.run;
    let success = run.state == State::Succeeded;
    let cut = view.left_out_chars > 0;
    let plain = matches!(run.state, State::Succeeded | State::Failed);
    let mut stderr = join(view.stderr.as_deref().unwrap_or_default(), &notes(run));
    if !success && stderr.is_empty() {
        (stderr, _) = truncate(format!("Command failed: {}\n", run.command));
    }
    let code = run.exit_code.filter(|&code| code != 0);
    let output = BashOutput {
        success,
        stderr,
        exit_code: if success { 0 } else { code.unwrap_or(1) },
        duration_ms: run.detail.duration_ms.unwrap_or_default().round() as u64,
        truncated: Some(cut),
        state: (!plain).then(|| word(&run.state)),
        id: (!plain || cut).then(|| run.short_id.clone()),
        stdout: view.stdout.unwrap_or_default(),
        ..BashOutput::default()
    };
    Reply::json(&output)
}

/// It was not allowed.
fn refused(view: CommandView) -> Reply {
    let why = refusal(&view.run);
    let output = BashOutput {
        stdout: view.stdout.unwrap_or_default(),
        stderr: why.what.clone(),
        exit_code: NOT_RUN,
        state: Some(word(&view.run.state)),
        id: Some(view.run.short_id),
        error: Some(why.data()),
        ..BashOutput::default()
    };
    Reply::json(&output).failing(true)
}

/// A person is asked, or work is paused.
async fn pending(call: &Call, view: CommandView) -> Result<Reply, Failure> {
    let task_id = task(call, &view.run).await?.task_id;
    let mut notes = notes(&view.run);
    notes.push(format!(
        "Do not run it again: use TaskOutput to wait for {task_id}, or TaskStop to take it back."
    ));
    let output = BashOutput {
        stdout: view.stdout.unwrap_or_default(),
        stderr: join(&view.stderr.unwrap_or_default(), &notes),
        exit_code: NOT_RUN,
        task_id: Some(task_id),
        state: Some(word(&view.run.state)),
        id: Some(view.run.short_id),
        ..BashOutput::default()
    };
    Ok(Reply::json(&output))
}

/// It goes on in the background, as was asked for.
async fn started(call: &Call, run: &Run) -> Result<Reply, Failure> {
    let task = task(call, run).await?;
    let output = BashOutput {
        success: true,
        stdout: format!("Background task started: {}", task.task_id),
        task_id: Some(task.task_id),
        output_file: task.output_file,
        ..BashOutput::default()
    };
    Ok(Reply::json(&output))
}

/// It goes on, since this call may not take any longer.
async fn left(call: &Call, view: CommandView) -> Result<Reply, Failure> {
    let task_id = task(call, &view.run).await?.task_id;
    let elapsed = call.began.elapsed();
    let told = format!(
        "Still running after {} s, and goes on as task {task_id}. Do not run it again: use \
         TaskOutput to get its results, or TaskStop to end it.",
        elapsed.as_secs()
    );
    let output = BashOutput {
        success: true,
        stdout: view.stdout.unwrap_or_default(),
        stderr: join(&view.stderr.unwrap_or_default(), &[told]),
        duration_ms: elapsed.as_millis() as u64,
        truncated: Some(view.left_out_chars > 0),
        task_id: Some(task_id),
        state: Some(word(&view.run.state)),
        id: Some(view.run.short_id),
        ..BashOutput::default()
    };
    Ok(Reply::json(&output))
}

/// Puts what we have to say after what the command has written.
fn join(written: &str, notes: &[String]) -> String {
    let notes = notes.join("\n");
    match (written.is_empty(), notes.is_empty()) {
        (_, true) => written.to_owned(),
        (true, false) => notes,
        (false, false) => format!("{}\n{notes}", written.trim_end_matches('\n')),
    }
}
