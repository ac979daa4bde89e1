//! `run`: one command, and its output.

use serde_json::json;
use weighlock_api::{NewCommand, ShellName};

use super::params::TerminalParams;
use super::result::{ToolResult, cut};
use crate::api::Failure;
use crate::call::{Call, OnCancel};

pub(super) async fn run(call: &Call, params: &TerminalParams) -> Result<ToolResult, ToolResult> {
    let command = params.stripped("command")?;
    if command.is_empty() {
        return Err(ToolResult::failed("Empty command.", "empty_command"));
    }
    let cwd = params.working_dir()?;
    let timeout = params.timeout()?;
    let description = params.stripped("description")?;
    let description = Some(description).filter(|said| !said.is_empty());
    let described = call.check_description(description.as_deref());
    described.map_err(|failure| failed(&failure, ""))?;
    let new = NewCommand {
        command,
        description,
        cwd,
        shell: Some(ShellName::Sh),
        timeout_ms: Some(timeout as i64 * 1000),
        cut: Some(cut()),
        ..NewCommand::default()
    };
    let view = call.run(new, OnCancel::Stop).await;
    let view = view.map_err(|failure| failed(&failure, "Execution error"))?;
    Ok(ToolResult::of(&view))
}

/// Why nothing was begun.
pub(super) fn failed(failure: &Failure, what: &str) -> ToolResult {
    let told = match failure.code.as_str() {
        "sandbox_violation" | "outside_base" => ToolResult::failed(
            "Working directory is outside your sandbox.",
            "sandbox_violation",
        ),
        "empty_command" => ToolResult::failed("Empty command.", "empty_command"),
        "already_exists" => ToolResult::failed(&failure.what, "already_exists"),
        "missing_description" => ToolResult::failed(&failure.what, "missing_description"),
        "session_closed" | "no_such_session" => ToolResult::failed(
            "Persistent terminals require a session context.",
            "no_session",
        ),
        _ => ToolResult::failed(format!("{what}: {}", failure.what), &failure.what),
    };
    told.with(json!({ "code": failure.code, "hint": failure.hint }))
}
