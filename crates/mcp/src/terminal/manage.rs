//! `close`, `list`, `status` and `send_input`: for the terminals of the session.

use serde_json::json;
use weighlock_api::{
    CommandList, Run, ScreenView, SentView, State, TerminalInput, TerminalView, short_id,
};

use super::open::stop;
use super::params::TerminalParams;
use super::result::{ToolResult, pid, summary};
use crate::api::{self, Failure, escape};
use crate::call::Call;
use crate::say;
use crate::weighlock::word;

/// Lines of a terminal's output that the answer has.
const TAIL: usize = 20;

/// So many of the newest runs are looked through for one that has ended.
const LATEST: usize = 200;

pub(super) async fn close(call: &Call, params: &TerminalParams) -> Result<ToolResult, ToolResult> {
    let name = params.name_for("close")?;
    let terminal = found(call, &name).await?;
    let closed = format!("Terminal '{name}' closed.");
    if terminal.status == "closed" {
        return Ok(ToolResult::done(closed));
    }
    let stopped = stop(call, &terminal.terminal_id).await;
    let run = stopped.map_err(|failure| untold(&failure))?.run;
    Ok(match &run.detail.reason {
        // What was changed on a copy is asked about now.
        Some(reason) if run.state == State::Waiting => {
            let known = json!({ "id": run.short_id, "state": word(&run.state) });
            let next = say::wait_for(&run);
            ToolResult::done(format!("{closed}\n{}\n{next}", reason.text)).with(known)
        }
        _ => ToolResult::done(closed),
    })
}

pub(super) async fn list(call: &Call) -> Result<ToolResult, ToolResult> {
    let terminals = call.desk.terminals().await;
    let terminals = terminals.map_err(|failure| untold(&failure))?;
    if terminals.is_empty() {
        return Ok(ToolResult::done("No active terminals for this session."));
    }
    let mut lines = vec![format!("Active terminals ({}):", terminals.len())];
    lines.extend(terminals.iter().map(|one| {
        let mark = if one.status == "busy" { "🟢" } else { "⚪" };
        format!(
            "  {mark} {}: {} ({}, PID {}, uptime {}s)",
            one.name,
            one.description,
            one.status,
            pid(one),
            one.uptime_seconds
        )
    }));
    let items: Vec<_> = terminals.iter().map(summary).collect();
    Ok(ToolResult::done(lines.join("\n")).with(json!({ "terminals": items })))
}

pub(super) async fn status(call: &Call, params: &TerminalParams) -> Result<ToolResult, ToolResult> {
    let name = params.name_for("status")?;
    let one = found(call, &name).await?;
    let mut lines = vec![
        format!("Terminal: {}", one.name),
        format!("Description: {}", one.description),
        format!("Command: {}", one.command),
        format!("Status: {}", one.status),
        format!("PID: {}", pid(&one)),
        format!("CWD: {}", one.cwd),
        format!("Uptime: {}s", one.uptime_seconds),
        format!("Last active: {}", one.last_active),
    ];
    if !one.output_tail.is_empty() {
        lines.push("Output tail:".into());
        let tail = one.output_tail.iter();
        lines.extend(tail.map(|line| format!("  {}", line.trim_end())));
    }
    let more = json!({ "output_tail": one.output_tail, "exit_code": one.exit_code });
    Ok({ ToolResult::done(lines.join("\n")).with(summary(&one)) }.with(more))
}

pub(super) async fn send_input(
    call: &Call,
    params: &TerminalParams,
) -> Result<ToolResult, ToolResult> {
    let text = params.text("input")?;
    let name = params.name_for("send_input")?;
    let terminal = call.desk.terminal(&name).await;
    let Some(terminal) = terminal.map_err(|failure| untold(&failure))? else {
        return Err(not_sent(&name));
    };
    let input = TerminalInput {
        text: Some(text.to_owned()),
        ..TerminalInput::default()
    };
    let path = format!("/terminals/{}/input", terminal.terminal_id);
    match api::post::<Option<SentView>>(call.desk.api(), path, &input).await {
        Ok(None) => Ok(ToolResult::done(format!("Sent input to '{name}'."))),
        Ok(Some(sent)) => {
            let told = match sent.state.as_str() {
                "asked" => ToolResult::failed(sent.text, "pending"),
                "typed" => ToolResult::done(format!("Sent input to '{name}'.\n{}", sent.text)),
                _ => ToolResult::done(sent.text),
            };
            let id = sent.command_id.as_deref().map(short_id);
            Ok(told.with(json!({ "state": sent.state, "id": id })))
        }
        Err(failure) => Err(match failure.code.as_str() {
            "blocked" => ToolResult::failed(&failure.what, "blocked"),
            "run_ended" | "not_found" | "send_failed" => not_sent(&name),
            _ => {
                let told = not_sent(&name);
                ToolResult {
                    output: format!("{}\n{}", told.output, failure.what),
                    ..told
                }
            }
        }
        .with(json!({ "code": failure.code, "hint": failure.hint }))),
    }
}

/// Finds a terminal of the session: one that is there, or the last that has
/// ended by itself, so that somebody can still see how.
async fn found(call: &Call, name: &str) -> Result<TerminalView, ToolResult> {
    let found = async {
        match call.desk.terminal(name).await? {
            Some(terminal) => Ok(Some(terminal)),
            None => ended(call, name).await,
        }
    };
    let found: Result<_, Failure> = found.await;
    found
        .map_err(|failure| untold(&failure))?
        .ok_or_else(|| ToolResult::failed(format!("Terminal '{name}' not found."), "not_found"))
}

async fn ended(call: &Call, name: &str) -> Result<Option<TerminalView>, Failure> {
    let api = call.desk.api();
    let Some(session) = call.desk.session_id().await? else {
        return Ok(None);
    };
    let path = format!("/commands?limit={LATEST}&session={}", escape(&session));
    let newest: CommandList = api::get(api, path).await?;
    let mut newest = newest.commands.into_iter();
    let of_that_name = newest.find(|run| {
        let terminal = run.detail.terminal.as_ref();
        terminal.is_some_and(|terminal| terminal.name == name) && run.started_at.is_some()
    });
    let by_itself = |run: &Run| {
        let reason = run.detail.reason.as_ref();
        reason.is_none_or(|reason| reason.code != "stopped")
    };
    let Some(run) = of_that_name.filter(by_itself) else {
        return Ok(None);
    };
    let path = format!("/terminals/{}", run.command_id);
    let screen: ScreenView = api::get(api, format!("{path}/screen?lines={TAIL}")).await?;
    Ok(Some(TerminalView {
        output_tail: screen.history,
        ..api::get(api, path).await?
    }))
}

fn not_sent(name: &str) -> ToolResult {
    ToolResult::failed(
        format!("Cannot send input to '{name}'. Terminal may be closed or not accepting input."),
        "send_failed",
    )
}

/// What the tool of origin knows no word for.
fn untold(failure: &Failure) -> ToolResult {
    let told = ToolResult::failed(&failure.what, &failure.code);
    told.with(json!({ "code": failure.code, "hint": failure.hint }))
}
