//! `run`: a command, by itself or in the shell of a terminal.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use weighlock_api::{
    CommandView, NewCommand, NewExec, NewTerminal, Review, State, TerminalView, is_plain_shell,
};

use super::told::Told;
use crate::api::{self, Failure};
use crate::call::{Call, OnCancel};
use crate::opened::Opened;
use crate::reply::Reply;
use crate::request::{FIRST, refusal};
use crate::tool::{Hints, Tool, answer, parse, schema};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Run")]
struct RunInput {
    /// Shell text.
    command: String,
    /// What it is for, in a few words; shown to the person who is asked.
    #[serde(default)]
    description: Option<String>,
    /// Directory to run it in.
    #[serde(default)]
    cwd: Option<String>,
    /// Seconds after which it is ended.
    #[serde(default)]
    timeout: Option<f64>,
    /// Environment variables to add.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Answer at once; for servers, watchers and long builds.
    #[serde(default)]
    background: bool,
    /// Type it in the shell of this terminal, which keeps directory and
    /// variables, and is opened if it is not there. For interactive programs,
    /// too: `send` types at them.
    #[serde(default)]
    terminal: Option<String>,
    /// What it reads.
    #[serde(default)]
    stdin: Option<String>,
    /// Have a person asked before it runs: only what a person has allowed can
    /// read secret files.
    #[serde(default)]
    ask_first: bool,
    /// Let it go on when this call is cancelled.
    #[serde(default)]
    keep_on_cancel: bool,
}

pub(super) fn tool() -> Tool {
    Tool {
        name: "run",
        title: "Run a command",
        description: "Run a shell command and get its output and exit code. If it takes longer \
            than the call may, or needs a person's approval, you get an id instead; `wait` for it.",
        input: schema::<RunInput>,
        output: Some(answer::<Told>),
        hints: Hints {
            destroys: true,
            open_world: true,
            ..Hints::default()
        },
        deed: |call, arguments| Box::pin(async move { run(call, parse(arguments)?).await }),
    }
}

async fn run(call: &Call, asked: RunInput) -> Result<Reply, Failure> {
    call.check_description(asked.description.as_deref())?;
    match &asked.terminal {
        Some(name) => in_terminal(call, name, &asked).await,
        None => alone(call, asked).await,
    }
}

async fn alone(call: &Call, asked: RunInput) -> Result<Reply, Failure> {
    let on_cancel = on_cancel(&asked);
    let new = NewCommand {
        command: asked.command,
        description: asked.description,
        cwd: asked.cwd,
        env: asked.env,
        stdin: asked.stdin,
        timeout_ms: asked.timeout.map(|seconds| (seconds * 1000.0) as i64),
        background: asked.background,
        review: asked.ask_first.then_some(Review::Before),
        ..NewCommand::default()
    };
    Ok(Told::new(call.run(new, on_cancel).await?).reply())
}

async fn in_terminal(call: &Call, name: &str, asked: &RunInput) -> Result<Reply, Failure> {
    let desk = &call.desk;
    let unfit = [
        ("cwd", asked.cwd.is_some()),
        ("env", !asked.env.is_empty()),
        ("stdin", asked.stdin.is_some()),
        ("timeout", asked.timeout.is_some()),
        ("ask_first", asked.ask_first),
    ];
    if let Some((what, _)) = unfit.iter().find(|(_, given)| *given) {
        return Err(Failure::new(
            "invalid_arguments",
            format!("`{what}` does not go with `terminal`; nothing was run"),
            "The shell of a terminal keeps its own directory and variables: use cd and export.",
        ));
    }
    let (view, terminal) = match call.resumed().await? {
        // Where it was to be typed, whatever has that name by now.
        Some(view) => {
            let terminal = view.run.detail.in_terminal.clone();
            (view, terminal.unwrap_or_default())
        }
        None => {
            let there = desk.terminal(name).await?;
            // A shell in the shell would keep every later line waiting.
            let is_all = there.is_none() && is_plain_shell(&asked.command);
            let terminal = match there {
                Some(terminal) => terminal,
                None => open(call, name, asked).await?,
            };
            if is_all || terminal.status == "waiting" {
                return opened(call, &terminal).await;
            }
            let view = type_in(call, &terminal, asked).await?;
            (view, terminal.terminal_id)
        }
    };
    let view = match asked.background {
        true => view,
        false => {
            let view = call.ask_person(view, on_cancel(asked)).await?;
            call.attend_typed(view, &terminal, on_cancel(asked)).await?
        }
    };
    let shown = match view.run.state {
        State::Running => super::read::screen(call, &terminal).await?.rows,
        _ => vec![],
    };
    let told = Told {
        terminal: Some(name.to_owned()),
        screen: super::read::filled(shown),
        ..Told::new(view)
    };
    Ok(told.reply())
}

/// Returns the reply for a terminal that was opened without a command typed in
/// it.
async fn opened(call: &Call, terminal: &TerminalView) -> Result<Reply, Failure> {
    let path = format!("/commands/{}", terminal.terminal_id);
    let view: CommandView = api::get(call.desk.api(), path).await?;
    let told = Told::new(view);
    let told = match told.state.as_str() {
        "running" => Told {
            next: Some(format!(
                "The shell is open: run commands with terminal {}.",
                terminal.name
            )),
            terminal: Some(terminal.name.clone()),
            ..told
        },
        _ => told,
    };
    Ok(told.reply())
}

async fn type_in(
    call: &Call,
    terminal: &TerminalView,
    asked: &RunInput,
) -> Result<CommandView, Failure> {
    let exec = NewExec {
        command: asked.command.clone(),
        wait_ms: Some(FIRST.as_millis() as u64),
    };
    let path = format!("/terminals/{}/exec", terminal.terminal_id);
    api::post(call.desk.api(), path, &exec).await
}

async fn open(call: &Call, name: &str, asked: &RunInput) -> Result<TerminalView, Failure> {
    let said = asked.description.clone();
    let command = match is_plain_shell(&asked.command) {
        true => asked.command.trim(),
        false => "bash",
    };
    let new = NewTerminal {
        name: name.to_owned(),
        description: said.unwrap_or_else(|| "a shell".into()),
        command: command.into(),
        ..NewTerminal::default()
    };
    match call.open(new).await? {
        Opened::Terminal(terminal) => Ok(*terminal),
        Opened::Run(view) => Err(Failure {
            code: "terminal_refused".into(),
            ..refusal(&view.run)
        }),
    }
}

fn on_cancel(asked: &RunInput) -> OnCancel {
    match asked.keep_on_cancel {
        true => OnCancel::Leave,
        false => OnCancel::Stop,
    }
}
