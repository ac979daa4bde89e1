//! The protocol over TCP, by hand: what a client sees of each stream.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use super::client::REVISION;
use crate::caller::{Caller, Line, read_head};
use crate::support::Server;

pub(super) fn hello(revision: &str) -> Value {
    json!({ "protocolVersion": revision, "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } })
}

pub(super) fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// A request to call a tool.
pub(super) fn call(tool: &str, arguments: Value) -> Value {
    request(
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    )
}

/// Somebody who speaks the protocol, over TCP.
pub(super) fn speaking(server: &Server) -> Caller {
    Caller::stranger(server).with("accept", "application/json, text/event-stream")
}

/// The same with a token, and a session.
pub(super) fn greeted(server: &Server, token: &str) -> Caller {
    let agent = speaking(server).bearing(token);
    let (session, _) = post(&agent, "", &request("initialize", hello(REVISION)));
    agent
        .with("mcp-session-id", &session)
        .with("mcp-protocol-version", REVISION)
}

/// Posts a request; returns the session that is named, and the answer.
pub(super) fn post(agent: &Caller, query: &str, body: &Value) -> (String, Value) {
    let address = format!("/mcp?{query}");
    let mut line = BufReader::new(agent.open("POST", &address, body.to_string().as_bytes()));
    let (_, head) = read_head(&mut line);
    let mut names = head.lines().filter_map(|line| line.split_once(": "));
    let session = names.find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"));
    let session = session.map_or(String::new(), |(_, id)| id.to_owned());
    (session, next_data(&mut line))
}

/// Posts a request, and leaves the answer to be read.
pub(super) fn open_post(agent: &Caller, body: &Value) -> BufReader<Box<dyn Line>> {
    BufReader::new(agent.open("POST", "/mcp", body.to_string().as_bytes()))
}

/// Takes a stream up again after one of its events.
pub(super) fn resume(agent: &Caller, event: &str) -> BufReader<Box<dyn Line>> {
    let agent = agent.with("last-event-id", event);
    BufReader::new(agent.open("GET", "/mcp", b""))
}

/// The next message of an answer, whether it is events or not.
pub(super) fn next_data(line: &mut impl BufRead) -> Value {
    loop {
        let text = next_line(line);
        let text = text.strip_prefix("data:").unwrap_or(&text).trim();
        if text.starts_with('{') {
            return serde_json::from_str(text).unwrap();
        }
    }
}

/// The name of the next event.
pub(super) fn next_id(line: &mut impl BufRead) -> String {
    loop {
        if let Some(id) = next_line(line).strip_prefix("id:") {
            return id.trim().to_owned();
        }
    }
}

fn next_line(line: &mut impl BufRead) -> String {
    let mut text = String::new();
    assert_ne!(line.read_line(&mut text).unwrap(), 0, "it has ended");
    text
}
