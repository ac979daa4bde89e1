//! `open`: a terminal with a name.

use std::time::{Duration, Instant};

use serde_json::json;
use weighlock_api::{
    ApiRequest, CommandView, NewTerminal, State, StopRequest, TerminalView, WaitKind, WaitRequest,
    WaitView, Wanted,
};

use super::params::TerminalParams;
use super::result::{ToolResult, cut, pid, returncode, summary};
use super::run::failed;
use crate::api::{self, Failure};
use crate::call::{Call, OnCancel};
use crate::opened::Opened;

/// How long what runs in a terminal that is closed has to end in order: shells
/// that are typed at do not listen at all.
const GRACE_MS: u64 = 500;

/// How long what has ended may take to be gone: what it left running ends with
/// it.
const GONE_WITHIN_MS: u64 = 5_000;

pub(super) async fn open(call: &Call, params: &TerminalParams) -> Result<ToolResult, ToolResult> {
    let name = params.stripped("terminal_name")?;
    let description = params.stripped("description")?;
    let command = params.stripped("command")?;
    let background = params.background();
    let cwd = params.working_dir()?;
    let timeout = params.timeout()?;
    let missing = [
        ("terminal_name", &name, "missing_name"),
        ("description", &description, "missing_description"),
        ("command", &command, "empty_command"),
    ];
    if let Some((what, _, error)) = missing.iter().find(|(_, value, _)| value.is_empty()) {
        return Err(ToolResult::failed(
            format!("Missing '{what}' for open."),
            *error,
        ));
    }
    let new = NewTerminal {
        name,
        description,
        command,
        cwd,
        ..NewTerminal::default()
    };
    let manner = match background {
        true => None,
        false => Some(Duration::from_secs(timeout)),
    };
    let opened = begin(call, new, manner).await;
    opened.map_err(|failure| failed(&failure, "Failed to open terminal"))
}

/// Opens it; and waits for its end, if there is a time for that.
async fn begin(
    call: &Call,
    new: NewTerminal,
    foreground: Option<Duration>,
) -> Result<ToolResult, Failure> {
    let opened = match call.resumed().await? {
        Some(there) => Opened::Run(Box::new(there)),
        None => call.open(new).await?,
    };
    let terminal = match opened {
        Opened::Terminal(terminal) => *terminal,
        Opened::Run(view) if view.run.state == State::Blocked => return Ok(ToolResult::of(&view)),
        Opened::Run(view) => look(call, &view.run.command_id).await?,
    };
    let id = &terminal.terminal_id;
    let view = call
        .have_answered(seen(call, id).await?, OnCancel::Stop)
        .await?;
    let waits = matches!(view.run.state, State::Waiting | State::Held);
    match foreground {
        // One that was refused, or not yet allowed, was not opened.
        _ if waits || view.run.started_at.is_none() => Ok(ToolResult::of(&view)),
        Some(timeout) => see_through(call, terminal, view, timeout).await,
        None => {
            let now = now(call, &terminal).await?;
            let (name, pid) = (&now.name, pid(&now));
            let said = format!("Terminal '{name}' opened in background. PID: {pid}.");
            Ok(ToolResult::done(said).with(summary(&now)))
        }
    }
}

/// Waits for the end of a terminal, and closes it.
async fn see_through(
    call: &Call,
    terminal: TerminalView,
    view: CommandView,
    timeout: Duration,
) -> Result<ToolResult, Failure> {
    let (id, began) = (&terminal.terminal_id, Instant::now());
    let patience = call.patience(Some(call.began.elapsed() + timeout));
    let view = call.attend(view, patience, OnCancel::Stop).await?;
    let timed_out = view.run.state == State::Running && began.elapsed() >= timeout;
    match view.run.state {
        State::Running if timed_out => drop(stop(call, id).await?),
        // Its call may last no longer, but it may.
        State::Running => {}
        _ if view.run.open => gone(call, id).await?,
        _ => {}
    }
    let view = seen(call, id).await?;
    let told = match timed_out {
        true => ToolResult::timed_out(&view, timeout.as_secs()),
        false => ToolResult::of(&view),
    };
    let code = json!({ "returncode": returncode(&view.run) });
    Ok({ told.with(code) }.with(summary(&now(call, &terminal).await?)))
}

/// A terminal as it is now. Its process may be gone, but it had one.
async fn now(call: &Call, opened: &TerminalView) -> Result<TerminalView, Failure> {
    let now = look(call, &opened.terminal_id).await?;
    Ok(TerminalView {
        pid: now.pid.or(opened.pid),
        ..now
    })
}

/// A terminal's run, with what it has shown.
async fn seen(call: &Call, id: &str) -> Result<CommandView, Failure> {
    let path = format!("/commands/{id}?cut={}", String::from(cut()));
    api::get(call.desk.api(), path).await
}

async fn look(call: &Call, id: &str) -> Result<TerminalView, Failure> {
    api::get(call.desk.api(), format!("/terminals/{id}")).await
}

/// Ends a terminal, and waits until nothing of it is left.
pub(super) async fn stop(call: &Call, id: &str) -> Result<CommandView, Failure> {
    let how = StopRequest {
        grace_ms: Some(GRACE_MS),
        ..StopRequest::default()
    };
    let path = format!("/commands/{id}/stop");
    match api::post(call.desk.api(), path, &how).await {
        // It was faster.
        Err(failure) if failure.code == "run_ended" => seen(call, id).await,
        stopped => stopped,
    }
}

/// Waits until nothing of a terminal is left whose command has ended.
async fn gone(call: &Call, id: &str) -> Result<(), Failure> {
    let request = WaitRequest {
        wanted: vec![Wanted {
            id: id.to_owned(),
            // Whatever is gone is silent; nothing else counts as that so soon.
            until: WaitKind::Idle,
            ms: Some(GONE_WITHIN_MS),
            ..Wanted::default()
        }],
        timeout_ms: Some(GONE_WITHIN_MS),
        ..WaitRequest::default()
    };
    let _: WaitView = api::send(call.desk.api(), ApiRequest::wait(&request)).await?;
    Ok(())
}
