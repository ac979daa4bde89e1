//! Commands and programs in terminals.

use serde_json::{Value, json};

use super::{Client, each_way};
use crate::caller::{Caller, add};
use crate::support::Home;
use crate::terminals::watcher::Watcher;

#[test]
fn a_terminal_keeps_what_it_knows() {
    each_way(Home::new, "", |_, agent| {
        let typed = |command: &str| {
            let said = agent.call("run", json!({ "command": command, "terminal": "t" }));
            assert_eq!(said.data["terminal"], "t");
            said.data
        };
        assert_eq!(typed("cd / && export A=b")["cwd"], "/");
        let now = typed("echo $A; pwd");
        assert_eq!(
            (&now["stdout"], &now["exit_code"]),
            (&json!("b\n/\n"), &json!(0))
        );
        assert_eq!(typed("false")["exit_code"], 1);
        let no = agent.call(
            "run",
            json!({ "command": "ls", "terminal": "t", "cwd": "x" }),
        );
        assert_eq!(no.data["error"]["code"], "invalid_arguments");
    });
}

#[test]
fn a_person_types_and_hands_back_with_a_note() {
    each_way(Home::new, "", |home, agent| {
        agent.call("run", json!({ "command": "cat", "terminal": "t" }));
        let terminal = agent.call("list", json!({ "what": "terminals" })).data;
        assert_eq!(terminal["terminals"][0]["id"], "t");
        let token = add(home, "ana", "operator", json!({}));
        let mut ana = Watcher::at(&Caller::owner(home).bearing(&token), "t");
        ana.take(80, 24);
        let held = agent.call("send", json!({ "id": "t", "text": "later" }));
        let told = "ana is typing in this terminal. Your input is held.";
        assert_eq!(
            (&held.data["state"], &held.data["message"]),
            (&json!("held"), &json!(told))
        );
        let read = agent.call("read", json!({ "id": "t" }));
        assert_eq!(read.data["note"], told);
        let waits = agent.begin("wait", json!({ "id": "t", "until": "keyboard" }));
        ana.say(json!({ "type": "give", "note": "I logged in, go on." }));
        let said = "ana handed back: ‘I logged in, go on.’";
        assert_eq!(agent.answered(waits).data["line"], said);
        let read = agent.call("read", json!({ "id": "t" }));
        assert!(read.text.ends_with(&format!("[{said}]")), "{}", read.text);
    });
}

#[test]
fn an_interactive_program_is_typed_at() {
    each_way(Home::new, "", |_, agent| {
        let asks = "read -p 'who? ' who; echo \"hi $who\"; cat";
        let said = agent.call("run", json!({ "command": asks, "terminal": "t" }));
        assert_eq!(said.data["state"], "running");
        assert!(said.text.contains("[screen]"), "{}", said.text);
        assert_eq!(last(&said.data["screen"]), "who?");
        let wants = agent.call("wait", json!({ "id": "t", "until": "input" }));
        assert_eq!(wants.data["met"], true);
        assert_eq!(wants.data["line"], "who?");

        let shown = agent.call("send", json!({ "id": "t", "text": "bob" }));
        assert_eq!(shown.data["state"], "typed");
        until(agent, "hi bob");
        agent.call("send", json!({ "id": "t", "text": "Hey", "enter": false }));
        agent.call(
            "send",
            json!({ "id": "t", "text": " there", "paste": true }),
        );
        agent.call("send", json!({ "id": "t", "keys": ["Enter"] }));
        until(agent, "Hey there");
        let stable = agent.call("wait", json!({ "id": "t", "until": "stable", "ms": 100 }));
        assert_eq!(stable.data["met"], true);
        agent.call("send", json!({ "id": "t", "keys": ["C-c"] }));
        let over = agent.call("wait", json!({ "id": said.data["id"] }));
        assert_eq!(over.data["run"]["exit_code"], 130);

        let listed = agent.call("list", json!({ "what": "terminals" }));
        assert_eq!(listed.data["terminals"][0]["id"], "t");
        let stopped = agent.call("stop", json!({ "id": "t" }));
        assert_eq!(stopped.data["state"], "killed");
        assert!(!stopped.text.contains('\x1b'), "{}", stopped.text);
        let listed = agent.call("list", json!({ "what": "terminals" }));
        assert_eq!(listed.text, "Nothing.");
    });
}

/// Waits until a screen shows a line.
fn until(agent: &Client, wanted: &str) {
    let shows = json!({ "id": "t", "until": "output", "pattern": wanted });
    assert_eq!(agent.call("wait", shows).data["met"], true);
    let screen = agent.call("read", json!({ "id": "t" }));
    assert!(
        screen.text.lines().any(|line| line == wanted),
        "{}",
        screen.text
    );
}

fn last(lines: &Value) -> &str {
    lines.as_array().unwrap().last().unwrap().as_str().unwrap()
}
