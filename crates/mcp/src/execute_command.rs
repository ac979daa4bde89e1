//! `ExecuteCommand`: one shell command, answered with plain text.

use serde_json::{Value, json};
use weighlock_api::{CommandView, Cut, CutTo, NewCommand, Run, ShellName, State};

use crate::api::Failure;
use crate::call::{Call, OnCancel};
use crate::reply::Reply;
use crate::request::{RunStage, refusal};
use crate::say;
use crate::tool::{Arguments, Hints, Tool};
use crate::weighlock;

pub(crate) const NAME: &str = "ExecuteCommand";

/// How long a command may take.
const TIMEOUT_SECONDS: u64 = 60;

/// How long output is shortened: to both ends of each stream.
const CUT: Cut = Cut::Ends(30_000);

pub(crate) fn tools() -> Vec<Tool> {
    vec![tool(), weighlock::wait()]
}

fn tool() -> Tool {
    Tool {
        name: NAME,
        title: "Execute a command",
        description: "Run one shell command (and optional working directory) with /bin/sh on the \
            machine where the server runs, for 60 seconds at the most. Output is returned as \
            plain text: ExitCode, Stdout, Stderr. If a person has to allow it first, or it takes \
            longer than a call may, you get the id of its run instead; `wait` for that.",
        input,
        output: None,
        hints: Hints {
            destroys: true,
            open_world: true,
            ..Hints::default()
        },
        deed: |call, arguments| Box::pin(async move { Ok(execute(call, &arguments).await) }),
    }
}

fn input() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "description": "The shell command line to run (e.g. `dotnet build`, `git status`).",
            },
            "workingDirectory": {
                "type": "string",
                "description": "Working directory for the process; must resolve under the base \
                    directory. Empty means the base directory.",
            },
        },
        "required": ["command"],
    })
}

async fn execute(call: &Call, arguments: &Arguments) -> Reply {
    let asked = text(arguments, "command")
        .and_then(|command| Ok((command, text(arguments, "workingDirectory")?)));
    let (command, directory) = match asked {
        Ok(asked) => asked,
        Err(wrong) => return short(wrong),
    };
    let command = command.unwrap_or_default().trim();
    if command.is_empty() {
        return short("Command is empty.");
    }
    let new = NewCommand {
        command: command.to_owned(),
        cwd: directory.map(str::to_owned),
        shell: Some(ShellName::Sh),
        timeout_ms: Some(TIMEOUT_SECONDS as i64 * 1000),
        cut: Some(CutTo::from(CUT)),
        ..NewCommand::default()
    };
    match call.run(new, OnCancel::Stop).await {
        Ok(view) => told(&view),
        Err(failure) => failed(&failure),
    }
}

/// Reads a text that may be missing.
fn text<'a>(arguments: &'a Arguments, name: &str) -> Result<Option<&'a str>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{name} must be a string.")),
    }
}

/// A failure as this tool tells it.
pub(crate) fn failed(failure: &Failure) -> Reply {
    short(match failure.code.as_str() {
        "outside_base" | "sandbox_violation" => {
            "Working directory is outside the base directory.".into()
        }
        "bad_directory" => format!("Working directory is not valid: {}.", failure.what),
        _ => say::sentences(failure),
    })
}

fn told(view: &CommandView) -> Reply {
    let run = &view.run;
    match RunStage::of(run) {
        RunStage::Refused => short(refused(run)),
        RunStage::Running => Reply::text(format!("{}\n{}", say::unfinished(run), streams(view))),
        RunStage::Pending => Reply::text(match exit_code(run) {
            // It ran on a copy, and a person is asked about what it changed.
            Some(_) => format!("{}\n{}", say::unfinished(run), ended(view)),
            None => say::unfinished(run),
        }),
        RunStage::Ended if run.state == State::TimedOut => {
            let seconds = run.detail.timeout_ms.div_ceil(1000);
            let said = format!("Command timed out after {seconds} seconds.");
            short(match run.detail.output.bytes {
                0 => said,
                _ => format!("{said}\n{}", streams(view)),
            })
        }
        RunStage::Ended => match &run.detail.reason {
            Some(reason) if reason.code == "cannot_start" => short(&reason.text),
            _ => Reply::text(ended(view) + &notes(run)),
        },
    }
}

fn refused(run: &Run) -> String {
    let why = refusal(run);
    let layer = { run.detail.reason.as_ref() }.and_then(|reason| reason.layer.as_deref());
    match run.state {
        // What was found in the list is what its rule is called.
        State::Blocked if why.code == "blacklist" && layer == Some("blacklist") => {
            "Command is not allowed by terminal blacklist.".into()
        }
        State::Blocked => {
            let said = format!("Command is not allowed: {}\n{}", why.what, why.hint);
            said.trim_end().to_owned()
        }
        // A person said no, or nobody anything.
        _ => why.what,
    }
}

/// What is to be known beside the output: each on a line of its own.
fn notes(run: &Run) -> String {
    let notes = say::beside(run).into_iter();
    notes.map(|note| format!("\n[{note}]")).collect()
}

fn ended(view: &CommandView) -> String {
    match exit_code(&view.run) {
        Some(code) => format!("ExitCode: {code}\n{}", streams(view)),
        None => format!("ExitCode: unknown\n{}", streams(view)),
    }
}

/// Both streams, and how to read what is left out of them.
fn streams(view: &CommandView) -> String {
    // Each begins on a line of its own, whether the one before ended or not.
    let stream = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or_default();
        text.strip_suffix('\n').unwrap_or(text).to_owned()
    };
    let (stdout, stderr) = (stream(&view.stdout), stream(&view.stderr));
    let rest = view.note.as_ref().map_or(String::new(), |note| {
        let id = &view.run.short_id;
        format!("\n[{note} Read it as the resource weighlock://runs/{id}/output.]")
    });
    format!("Stdout: {stdout}\nStderr: {stderr}{rest}")
}

/// As a shell counts, for one that a signal ended.
fn exit_code(run: &Run) -> Option<i32> {
    let by_signal = run.signal.map(|signal| 128 + signal);
    run.exit_code.or(by_signal)
}

/// Something went wrong: a few words, and nothing else.
fn short(text: impl Into<String>) -> Reply {
    Reply::text(text).failing(true)
}
