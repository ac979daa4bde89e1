//! What is said by the protocol, as far as it takes to call a tool.

use serde_json::{Value, json};

use super::SAID;
use crate::Result;

pub(super) const REVISION: &str = "2025-11-25";

/// What a client says first.
pub(super) fn initialize() -> Value {
    request(
        0,
        "initialize",
        &json!({
            "protocolVersion": REVISION,
            "capabilities": {},
            "clientInfo": { "name": "weighlock-bench", "version": "0" },
        }),
    )
}

/// What it says when that was answered.
pub(super) fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

/// Calls a tool, which is its name and its arguments.
pub(super) fn call(id: u64, tool: &Value) -> Value {
    request(id, "tools/call", tool)
}

pub(super) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Returns whether a message answers any request, and which.
pub(super) fn answers(message: &Value) -> Option<u64> {
    // A server may ask us, too.
    match message["method"].is_null() {
        true => message["id"].as_u64(),
        false => None,
    }
}

/// Makes sure that the command was run and that nothing it said was lost:
/// somebody who refuses is fast.
pub(super) fn check(answer: &Value) -> Result<()> {
    let result = &answer["result"];
    let parts = result["content"].as_array().into_iter().flatten();
    let mut lines = parts.flat_map(|part| part["text"].as_str().unwrap_or_default().lines());
    match result["isError"] != true && lines.any(|line| line.trim() == SAID) {
        true => Ok(()),
        false => Err(format!("what the command says is not in {answer}").into()),
    }
}
