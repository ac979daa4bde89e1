//! The revisions of the protocol, each as its clients speak it.

use std::io::Read;

use serde_json::{Value, json};

use super::client::{REVISION as NEWEST, mcp};
use super::wire::{
    call, greeted, hello, next_data, next_id, open_post, post, request, resume, speaking,
};
use super::{Client, flags};
use crate::caller::read_head;
use crate::support::{Home, Server, eventually};

/// The first one without.
const WITHOUT: &str = "2026-07-28";

/// What is asked for, and what is agreed on.
const AGREED: [(&str, &str); 7] = [
    ("2024-11-05", "2024-11-05"),
    ("2025-03-26", "2025-03-26"),
    ("2025-06-18", "2025-06-18"),
    ("2025-11-25", "2025-11-25"),
    (WITHOUT, NEWEST),
    ("1999-01-01", NEWEST),
    ("2999-01-01", NEWEST),
];

#[test]
fn every_revision_with_a_handshake_is_spoken() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = home.token(&home.me());
    for (asked, agreed) in AGREED {
        let agent = Client::start(mcp(&home, &[]));
        let greeting = agent.request("initialize", hello(asked));
        assert_eq!(greeting["protocolVersion"], agreed);
        assert_eq!(greeting["serverInfo"]["name"], "weighlock");
        agent.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let said = agent.call("run", json!({ "command": "echo hi" }));
        assert_eq!(said.data["stdout"], "hi\n");

        let agent = speaking(&server).bearing(&token);
        let greeting = post(&agent, "", &request("initialize", hello(asked)));
        assert_eq!(
            greeting.1["result"]["protocolVersion"], agreed,
            "{greeting:?}"
        );
        let agent = agent
            .with("mcp-session-id", &greeting.0)
            .with("mcp-protocol-version", agreed);
        let (_, said) = post(&agent, "", &call("run", json!({ "command": "echo hi" })));
        assert_eq!(
            said["result"]["structuredContent"]["stdout"], "hi\n",
            "{said}"
        );
        // What older ones do not know is not there.
        assert_eq!(said["result"]["resultType"], Value::Null);
    }
}

#[test]
fn a_client_may_ask_before_it_says_hello() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let agent = Client::start(mcp(&home, &[]));
    assert_eq!(agent.request("ping", json!({})), json!({}));
    let early = agent.answer(agent.ask("tools/list", json!({})));
    assert_eq!(early["error"]["code"], -32602, "{early}");
    let greeting = agent.request("initialize", hello(NEWEST));
    assert_eq!(greeting["protocolVersion"], NEWEST);
    assert_eq!(agent.tools().len(), 6);
}

/// What every request says where there is no handshake.
pub(super) fn with_meta(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": WITHOUT,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

/// Asks as a client of that revision does, over either way, and returns the
/// whole answer.
pub(super) type Asks<'a> = &'a dyn Fn(&str, Value) -> Value;

/// Does the same over both ways in, each with a server and a home of its own,
/// for a client of that revision that can do what it says.
pub(super) fn each_way_without_handshake(
    home: impl Fn() -> Home,
    query: &str,
    capabilities: Value,
    test: impl Fn(&Home, Asks<'_>),
) {
    {
        let home = home();
        let _server = home.serve(&[]);
        let agent = Client::start(mcp(&home, &flags(query)));
        test(&home, &|method, params| {
            agent.answer(agent.ask(method, with_meta(params, &capabilities)))
        });
        assert!(agent.heard("elicitation/create").is_empty());
    }
    let home = home();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = home.token(&home.me());
    test(&home, &|method, params| {
        let params = with_meta(params, &capabilities);
        ask_as(&server, &token, query, method, params)
    });
}

/// Asks over HTTP as whoever a token is of.
pub(super) fn ask_as(
    server: &Server,
    token: &str,
    query: &str,
    method: &str,
    params: Value,
) -> Value {
    let agent = speaking(server)
        .bearing(token)
        .with("mcp-protocol-version", WITHOUT)
        .with("mcp-method", method);
    let agent = match params["name"].as_str().or(params["uri"].as_str()) {
        Some(name) => agent.with("mcp-name", name),
        None => agent,
    };
    post(&agent, query, &request(method, params)).1
}

#[test]
fn the_revision_without_a_handshake_is_spoken() {
    let able = json!({ "elicitation": { "form": {} } });
    each_way_without_handshake(Home::strict, "session=s", able, |_, ask| {
        without_handshake(ask);
    });
    // Each request has to say it.
    let home = Home::strict();
    let _server = home.serve(&[]);
    let agent = Client::start(mcp(&home, &[]));
    agent.answer(agent.ask("server/discover", with_meta(json!({}), &json!({}))));
    let plain = agent.answer(agent.ask("tools/list", json!({})));
    assert_eq!(plain["error"]["code"], -32602, "{plain}");
}

fn without_handshake(ask: Asks<'_>) {
    let found = ask("server/discover", json!({}));
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(WITHOUT)), "{found}");
    let tools = ask("tools/list", json!({}));
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 6);
    let call = |tool: &str, arguments: Value| {
        let answer = ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        answer["result"]["structuredContent"].clone()
    };
    let said = call("run", json!({ "command": "echo hi" }));
    assert_eq!(said["stdout"], "hi\n");
    // Who does not want to be asked finds the question in the inbox.
    let waits = call("run", json!({ "command": "touch x" }));
    assert_eq!(waits["state"], "waiting", "{waits}");
    let odd = call("run", json!({}));
    assert_eq!(odd["error"]["code"], "invalid_arguments");
    // There are no sessions; what belongs together has a name.
    let listed = call("list", json!({}));
    assert_eq!(listed["runs"][1]["id"], said["id"]);
    let none = ask(
        "resources/read",
        json!({ "uri": "weighlock://runs/r_none/output" }),
    );
    assert_eq!(none["error"]["code"], -32602, "{none}");
    let ping = ask("ping", json!({}));
    assert_eq!(ping["error"]["code"], -32601, "{ping}");
}

#[test]
fn a_client_without_a_handshake_that_hangs_up_ends_its_run() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let agent = speaking(&server)
        .bearing(&home.token(&home.me()))
        .with("mcp-protocol-version", WITHOUT)
        .with("mcp-method", "tools/call")
        .with("mcp-name", "run");
    let call = json!({ "name": "run", "arguments": { "command": "sleep 600" } });
    let line = open_post(&agent, &request("tools/call", with_meta(call, &json!({}))));
    eventually("it runs", || home.newest()["state"] == "running");
    drop(line);
    let id = home.newest()["command_id"].clone();
    assert_eq!(home.ended(id.as_str().unwrap())["state"], "killed");
}

#[test]
fn a_stream_that_breaks_is_taken_up_again() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = home.token(&home.me());
    let agent = greeted(&server, &token);
    let gate = "while ! test -e gate; do sleep 0.01; done; echo ok";
    let mut line = open_post(&agent, &call("run", json!({ "command": gate })));
    assert_eq!(read_head(&mut line).0, 200);
    let id = next_id(&mut line);
    drop(line);

    let mut again = resume(&agent, &id);
    assert_eq!(read_head(&mut again).0, 200);
    std::fs::write(home.base().join("gate"), "").unwrap();
    let answer = next_data(&mut again);
    assert_eq!(
        answer["result"]["structuredContent"]["stdout"], "ok\n",
        "{answer}"
    );

    // What came while nobody was there is kept.
    let mut late = resume(&agent, &id);
    assert_eq!(read_head(&mut late).0, 200);
    assert_eq!(next_data(&mut late), answer);
    let mut rest = String::new();
    late.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("data: {"), "{rest}");
    // It is nobody else's, whatever they know of it.
    let mut theirs = resume(&greeted(&server, &token), &id);
    assert_eq!(read_head(&mut theirs).0, 200);
    theirs.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("data: {"), "{rest}");
}
