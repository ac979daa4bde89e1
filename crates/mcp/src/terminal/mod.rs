//! `terminal`: one tool with an action, for single commands and for terminals
//! that stay.

mod manage;
mod open;
mod params;
mod result;
mod run;

use serde_json::{Value, json};

use self::params::TerminalParams;
pub(crate) use self::result::ToolResult;
use crate::api::Failure;
use crate::call::Call;
use crate::reply::Reply;
use crate::tool::{Arguments, Hints, Tool};
use crate::weighlock;

pub(crate) const NAME: &str = "terminal";

/// Seconds that are waited when nothing is said, and at the most.
const DEFAULT_TIMEOUT: u64 = 20;
const MAX_TIMEOUT: u64 = 300;

/// Characters of output that the answer has.
const MAX_OUTPUT_CHARS: usize = 5_000;

pub(crate) fn tools() -> Vec<Tool> {
    vec![tool(), weighlock::wait()]
}

fn tool() -> Tool {
    Tool {
        name: NAME,
        title: "Terminal",
        description: "Run shell commands locally. Supports both one-shot execution (run) and \
            persistent named terminal sessions (open/close/list/status/send_input). Use persistent \
            terminals for long-running processes, dev servers, or interactive workflows where \
            state (cwd, env) must be preserved.",
        input,
        output: Some(result::schema),
        hints: Hints {
            destroys: true,
            open_world: true,
            ..Hints::default()
        },
        deed: |call, arguments| Box::pin(async move { Ok(execute(call, arguments).await.reply()) }),
    }
}

fn input() -> Value {
    let timeout = format!("Timeout in seconds (default {DEFAULT_TIMEOUT}, max {MAX_TIMEOUT}).");
    json!({
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "enum": ["run", "open", "close", "list", "status", "send_input"],
                "description": "Operation to perform.",
            },
            "terminal_name": {
                "type": "string",
                "description": "Name for the persistent terminal (required for open, close, \
                    status, send_input).",
            },
            "description": {
                "type": "string",
                "description": "Why this terminal is being opened (required for open).",
            },
            "command": {
                "type": "string",
                "description": "Shell command to execute (required for run and open).",
            },
            "background": {
                "type": "boolean",
                "description": "Run in background without waiting for completion (for open). \
                    Default false.",
            },
            "working_dir": {
                "type": "string",
                "description": "Working directory (optional, defaults to home or sandbox).",
            },
            "timeout": {
                "type": "integer",
                "description": timeout,
            },
            "input": {
                "type": "string",
                "description": "Text to send to the terminal's stdin (for send_input).",
            },
        },
        "required": ["action"],
    })
}

async fn execute(call: &Call, arguments: Arguments) -> ToolResult {
    let params = TerminalParams(arguments);
    let done = match params.action().as_deref() {
        Ok("run") => run::run(call, &params).await,
        Ok("open") => open::open(call, &params).await,
        Ok("close") => manage::close(call, &params).await,
        Ok("list") => manage::list(call).await,
        Ok("status") => manage::status(call, &params).await,
        Ok("send_input") => manage::send_input(call, &params).await,
        Ok(other) => Err(ToolResult::failed(
            format!("Unknown action: {other}"),
            "invalid_action",
        )),
        Err(wrong) => Err(wrong.clone()),
    };
    done.unwrap_or_else(|failed| failed)
}

/// A call that is none, as this tool tells it.
pub(crate) fn failed(failure: &Failure) -> Reply {
    ToolResult::failed(&failure.what, "invalid_parameters").reply()
}
