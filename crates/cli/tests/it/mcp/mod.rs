//! The door for agents, as their clients use it.

mod ask;
mod ask_instead;
mod ask_odd;
mod bad;
mod bash;
mod client;
mod execute_command;
mod gone;
mod identity;
mod kept;
mod long;
mod many;
mod output;
mod own;
mod resources;
mod revisions;
mod run_command;
mod seed_000;
mod seed_001;
mod seed_002;
mod seed_004;
mod tasks;
mod terminal;
mod typed;
pub(crate) mod walk;
mod wire;

pub(crate) use client::Client;

use serde_json::{Value, json};

use crate::support::Home;

/// Does the same over both ways in, each with a server and a home of its own.
/// `query` is what the client's configuration says, as in `toolset=bash`.
pub(crate) fn each_way(home: impl Fn() -> Home, query: &str, test: impl Fn(&Home, &Client)) {
    each_way_with(home, query, json!({}), test);
}

/// The same for a client that can do what it says.
pub(crate) fn each_way_with(
    home: impl Fn() -> Home,
    query: &str,
    capabilities: Value,
    test: impl Fn(&Home, &Client),
) {
    {
        let home = home();
        let _server = home.serve(&[]);
        let client = Client::stdio_with(&home, &flags(query), capabilities.clone());
        test(&home, &client);
    }
    let home = home();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = home.token(&home.me());
    test(
        &home,
        &Client::http_with(&server, &token, query, capabilities),
    );
}

/// Has the owner answer a question, as it is now.
#[track_caller]
pub(crate) fn decide(home: &Home, approval: &Value, kind: &str, words: &str) {
    let path = format!("/approvals/{}", approval.as_str().expect("an id"));
    let (_, asked) = home.api("GET", &path, &Value::Null);
    let decision = json!({ "kind": kind, "fingerprint": asked["fingerprint"], "reason": words });
    let (status, said) = home.api("POST", &format!("{path}/decision"), &decision);
    assert_eq!(status, 200, "{said}");
}

/// What a call is refused with. It is never an error of the protocol.
#[track_caller]
pub(crate) fn refused(agent: &Client, id: u64) -> String {
    let said = agent.answered(id);
    let error = &said.data["error"];
    let [code, message, hint] = ["code", "message", "hint"].map(|field| {
        let text = error[field].as_str();
        text.unwrap_or_else(|| panic!("no {field}: {said:?}"))
    });
    assert!(said.failed, "{said:?}");
    assert!(!hint.is_empty(), "{said:?}");
    assert_eq!(said.text, format!("{message} ({code})\n{hint}"));
    assert!(said.text.len() < 2000, "{}", said.text);
    code.to_owned()
}

/// What stands in an address, as it is written on a command line.
fn flags(query: &str) -> Vec<&str> {
    let mut flags = vec![];
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap();
        flags.push(match name {
            "toolset" => "--toolset",
            "agent" => "--agent",
            "session" => "--session",
            "sandbox" => "--sandbox",
            "cwd" => "--cwd",
            "ask" => "--ask",
            "require_description" => "--require-description",
            other => panic!("no such flag: {other}"),
        });
        if value != "true" {
            flags.push(value);
        }
    }
    flags
}

/// The fields of a tool's input, by name.
pub(crate) fn fields(tool: &Value) -> Vec<&str> {
    let properties = tool["inputSchema"]["properties"].as_object().unwrap();
    properties.keys().map(String::as_str).collect()
}
