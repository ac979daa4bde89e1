//! Who a client is, and what it cannot change.

use serde_json::{Value, json};

use super::{Client, each_way, fields};
use crate::caller::{Caller, Said, add_here};
use crate::support::{Home, Server};

/// Every toolset there is.
const TOOLSETS: [&str; 5] = ["weighlock", "execute-command", "terminal", "shell", "bash"];

/// What people decide: no tool takes any of it.
const OURS: [&str; 18] = [
    "sandbox",
    "agent",
    "session",
    "principal",
    "network",
    "danger",
    "review",
    "policy",
    "rule",
    "role",
    "token",
    "user",
    "root",
    "privilege",
    "preset",
    "profile",
    "guard",
    "approv",
];

#[test]
fn no_tool_takes_what_a_person_decides() {
    let home = Home::new();
    let _server = home.serve(&[]);
    for toolset in TOOLSETS {
        let agent = Client::stdio(&home, &["--toolset", toolset]);
        for tool in agent.tools() {
            for field in fields(&tool) {
                let is_ours = |word: &&str| field.to_lowercase().contains(*word);
                let found = OURS.iter().find(|word| is_ours(word));
                // Which of one's own are listed is no such thing.
                assert!(
                    found.is_none() || field == "all_sessions",
                    "{toolset}: {tool}"
                );
            }
            let open = &tool["inputSchema"]["additionalProperties"];
            assert_ne!(open, &json!(true), "{toolset}: {tool}");
        }
    }
}

#[test]
fn a_session_is_ones_own_whatever_others_call_theirs() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let robot = add_here(&home, "robot", "agent");
    let robot = Client::http(&server, &robot, "session=work");
    let theirs = robot.call("run", json!({ "command": "echo theirs" }));
    // Who may see everything, and calls their own session the same.
    let owner = Client::stdio(&home, &["--session", "work"]);
    let listed = owner.call("list", json!({}));
    assert_eq!(listed.data.get("runs"), None, "{}", listed.text);
    let own = owner.call("run", json!({ "command": "echo own" }));
    let again = Client::stdio(&home, &["--session", "work"]);
    let listed = again.call("list", json!({ "what": "runs" }));
    assert_eq!(listed.data["runs"][0]["id"], own.data["id"]);
    assert_eq!(listed.data["runs"].as_array().unwrap().len(), 1);
    let listed = robot.call("list", json!({ "what": "runs" }));
    assert_eq!(listed.data["runs"][0]["id"], theirs.data["id"]);
    assert_eq!(listed.data["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_token_that_is_revoked_counts_no_more_for_what_is_under_way() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let robot = Client::http(&server, &add_here(&home, "robot", "agent"), "");
    let call = robot.begin_with_progress("run", json!({ "command": "sleep 600" }), "p");
    robot.hears("progress", |one| one["method"] == "notifications/progress");
    let owner = Caller::owner(&home);
    let known = owner.get("/people/robot").expect(200);
    let token = known["tokens"][0]["token_id"].as_str().unwrap().to_owned();
    let path = format!("/people/robot/tokens/{token}");
    owner.ask("DELETE", &path, &Value::Null).expect(204);
    let said = robot.answered(call);
    assert_eq!(said.data["error"]["code"], "no_token", "{}", said.text);
}

#[test]
fn what_somebody_sends_is_not_sent_back_whole() {
    each_way(Home::new, "", |_, agent| {
        let long = "x".repeat(1 << 20);
        let said = agent.call(&long, json!({}));
        assert_eq!(said.data["error"]["code"], "no_such_tool");
        assert!(said.text.len() < 1000);
    });
}

#[test]
fn the_environment_is_judged_as_over_rest() {
    each_way(Home::strict, "", |home, agent| {
        for name in [
            "LD_PRELOAD",
            "PATH",
            "BASH_ENV",
            "GIT_SSH_COMMAND",
            "PYTHONPATH",
            "LANG",
        ] {
            let env = json!({ name: "/tmp/x" });
            let said = agent.call("run", json!({ "command": "ls", "env": env }));
            let (_, rest) = home.ask("ls", json!({ "env": env }));
            assert_eq!(
                said.data["state"], rest["state"],
                "{name}: {said:?}, {rest}"
            );
            assert_eq!(said.data["status"], rest["status"], "{name}");
        }
    });
}

/// A server with two agents, and their tokens.
fn two() -> (Home, Server, [String; 2]) {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let tokens = ["coder", "linter"].map(|name| add_here(&home, name, "agent"));
    (home, server, tokens)
}

#[test]
fn an_agent_that_nobody_has_added_is_a_mistake() {
    let (home, server, _) = two();
    let owner = home.token(&home.me());
    for agent in [
        Client::stdio(&home, &["--agent", "codr"]),
        Client::http(&server, &owner, "agent=codr"),
    ] {
        let said = agent.call("run", json!({ "command": "echo hi > x" }));
        assert!(said.failed, "{said:?}");
        assert_eq!(said.data["error"]["code"], "no_such_agent");
        assert_eq!(said.data["error"]["hint"], "did you mean `coder`?");
        let opened = agent.call("run", json!({ "command": "echo hi > x", "terminal": "t" }));
        assert_eq!(opened.data["error"]["code"], "no_such_agent");
    }
    assert!(!home.base().join("x").exists());
    let agent = Client::stdio(&home, &["--agent", "coder"]);
    let said = agent.call("run", json!({ "command": "echo hi" }));
    assert_eq!(said.data["stdout"], "hi\n", "{said:?}");
}

#[test]
fn an_agent_is_who_its_token_says() {
    let (home, server, [coder, _]) = two();
    let over_stdio = Client::stdio_as(&home, &coder, &["--session", "s"], json!({}));
    let over_http = Client::http(&server, &coder, "session=s");
    let mut ids = vec![];
    for agent in [&over_stdio, &over_http] {
        let run = agent.call("run", json!({ "command": "echo hi" }));
        let id = run.data["id"].as_str().unwrap().to_owned();
        assert_eq!(home.get(&id)["requested_by"], "coder");
        ids.push(id);
    }
    // Both ways lead to the same.
    for agent in [&over_stdio, &over_http] {
        let listed = agent.call("list", json!({ "what": "runs" })).data["runs"].clone();
        let listed: Vec<&str> = { listed.as_array().unwrap().iter() }
            .map(|run| run["id"].as_str().unwrap())
            .collect();
        assert_eq!(listed, [ids[1].as_str(), ids[0].as_str()]);
    }
    // Nor is it another by asking for it.
    let other = Client::http(&server, &coder, "agent=linter");
    let no = other.call("run", json!({ "command": "echo hi" }));
    assert_eq!(no.data["error"]["code"], "not_your_profile");
}

#[test]
fn nobody_sees_what_is_anothers() {
    let (home, server, [coder, linter]) = two();
    let owner = Client::http(&server, &coder, "session=shared");
    let run = owner.call(
        "run",
        json!({ "command": "echo secret", "background": true }),
    );
    let typed = owner.call("run", json!({ "command": "echo secret", "terminal": "t" }));
    let id = run.data["id"].as_str().unwrap();
    owner.call("wait", json!({ "id": id }));

    let more = add_here(&home, "third", "agent");
    let others = [
        Client::http(&server, &linter, "session=shared"),
        Client::stdio_as(&home, &more, &["--session", "shared"], json!({})),
    ];
    for other in others {
        let listed = other.call("list", json!({ "all_sessions": true }));
        assert!(!listed.text.contains("secret"), "{}", listed.text);
        for tool in ["read", "wait", "stop"] {
            for id in [&run.data["id"], &typed.data["id"], &json!("t")] {
                let no = other.call(tool, json!({ "id": id }));
                assert_eq!(
                    no.data["error"]["code"], "no_such_run",
                    "{tool} {id}: {no:?}"
                );
            }
        }
        let no = other.call("send", json!({ "id": "t", "text": "exit" }));
        assert_eq!(no.data["error"]["code"], "not_found");
        let found = other.request("resources/list", json!({}));
        assert!(!found.to_string().contains("secret"), "{found}");
        for uri in [
            format!("runs/{id}/output"),
            format!("runs/{id}/recording"),
            "terminals/t/screen".into(),
        ] {
            let uri = json!({ "uri": format!("weighlock://{uri}") });
            let no = other.answer(other.ask("resources/read", uri.clone()));
            assert_eq!(no["error"]["code"], -32002, "{uri}: {no}");
            assert!(!no.to_string().contains("secret"), "{no}");
        }
        // A terminal of the same name is its own.
        let own = other.call("run", json!({ "command": "echo mine", "terminal": "t" }));
        assert_eq!(own.data["stdout"], "mine\n");
    }
    let still = owner.call("run", json!({ "command": "echo still", "terminal": "t" }));
    assert_eq!(still.data["stdout"], "still\n");
}

#[test]
fn a_session_lets_nobody_else_in() {
    let (_home, server, [coder, linter]) = two();
    let owner = Client::http(&server, &coder, "");
    let id = owner.session();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let other = speaking(&server).bearing(&linter);
    for id in [id.as_str(), "none", ""] {
        let other = other.with("mcp-session-id", id);
        for method in ["POST", "GET", "DELETE"] {
            let body = match method {
                "POST" => call.to_string(),
                _ => String::new(),
            };
            let said = other.send(method, "/mcp", body.as_bytes());
            assert_eq!(said.status, 404, "{method} {id}");
        }
    }
    assert_eq!(owner.tools().len(), 6);
    // Who ends it is not let in any more, either.
    let own = speaking(&server)
        .bearing(&coder)
        .with("mcp-session-id", &id);
    assert!((200..300).contains(&own.send("DELETE", "/mcp", b"").status));
    assert_eq!(
        own.send("POST", "/mcp", call.to_string().as_bytes()).status,
        404
    );
}

#[test]
fn a_stranger_is_not_let_in() {
    let (_home, server, [coder, _]) = two();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    } });
    let greet = |who: &Caller| -> Said { who.send("POST", "/mcp", hello.to_string().as_bytes()) };
    let stranger = speaking(&server);
    let agent = stranger.bearing(&coder);
    assert_eq!(greet(&stranger).outcome(), (401, "no_token".into()));
    assert_eq!(
        greet(&stranger.bearing("wl_wrong")).outcome(),
        (401, "no_token".into())
    );
    for (name, value) in [
        ("host", "evil.example"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
    ] {
        let said = greet(&agent.with(name, value));
        assert_eq!(
            said.outcome(),
            (403, "foreign_origin".into()),
            "{name}: {value}"
        );
    }
    assert_eq!(greet(&agent).status, 200);
    let own = format!("http://{}", server.address());
    assert_eq!(greet(&agent.with("origin", &own)).status, 200);
    // What is in the address is checked as well.
    for query in ["toolset=none", "root=true", "ask=maybe"] {
        let said = agent.send(
            "POST",
            &format!("/mcp?{query}"),
            hello.to_string().as_bytes(),
        );
        assert_eq!(said.status, 400, "{query}");
    }
}

/// Somebody who speaks the protocol, over TCP.
fn speaking(server: &Server) -> Caller {
    Caller::stranger(server).with("accept", "application/json, text/event-stream")
}

#[test]
fn a_command_cannot_come_back_in_as_its_owner() {
    // The socket is not there inside of the walls.
    let home = Home::new();
    let _server = home.serve(&[]);
    let agent = Client::stdio(&home, &[]);
    // Where the run can start it.
    let ours = home.base().join("weighlock");
    std::fs::copy(env!("CARGO_BIN_EXE_weighlock"), &ours).unwrap();
    for hidden in ["", "env -u WEIGHLOCK_RUN "] {
        let state = home.state();
        let inside = format!(
            "{hidden}./weighlock --state-dir {} mcp --session x < /dev/null",
            state.display()
        );
        let said = agent.call("run", json!({ "command": inside, "timeout": 30 }));
        assert_eq!(said.data["exit_code"], 1, "{said:?}");
        assert!(said.text.contains("the server does not start"), "{said:?}");
    }
}
