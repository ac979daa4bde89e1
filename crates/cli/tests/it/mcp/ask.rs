//! A client's person is asked, where they may decide.

use serde_json::{Value, json};

use super::{Client, decide, each_way, each_way_with};
use crate::caller::{add, audit};
use crate::support::Home;

pub(super) fn able() -> Value {
    json!({ "elicitation": {} })
}

/// The question that the client is asked.
pub(super) fn question(agent: &Client) -> Value {
    agent.hears("a question", |message| {
        message["method"] == "elicitation/create"
    })
}

/// Answers it.
pub(super) fn say(agent: &Client, question: &Value, result: Value) {
    agent.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
}

pub(super) fn accept(decision: &str, reason: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision, "reason": reason } })
}

fn message(question: &Value) -> &str {
    question["params"]["message"].as_str().unwrap()
}

#[test]
fn a_yes_is_a_yes_and_the_record_says_how() {
    each_way_with(Home::strict, "ask=true", able(), |home, agent| {
        let command = json!({ "command": "touch x", "description": "Make x" });
        let call = agent.begin("run", command);
        let asked = question(agent);
        let text = message(&asked);
        assert!(text.contains("\n$ touch x\n"), "{text}");
        assert!(text.contains("The agent says: “Make x”"), "{text}");
        assert!(text.contains("\nWhy: "), "{text}");
        let schema = &asked["params"]["requestedSchema"];
        assert_eq!(schema["type"], "object");
        assert_eq!(
            schema["properties"]["decision"]["enum"],
            json!(["approve", "reject"])
        );
        assert_eq!(schema["required"], json!(["decision"]));
        assert!(!agent.has_answer(call));
        say(agent, &asked, accept("approve", "fine"));
        let done = agent.answered(call);
        assert_eq!(done.data["exit_code"], 0, "{done:?}");
        assert!(home.base().join("x").exists());
        let entries = audit(home, "kind=approval.approved");
        assert!(
            entries
                .iter()
                .any(|entry| entry.to_string().contains("elicitation")),
            "{entries:?}"
        );
    });
}

#[test]
fn what_a_command_reads_and_its_variables_are_shown() {
    each_way_with(Home::strict, "ask=true", able(), |_, agent| {
        let hides = json!({ "command": "bash", "stdin": "touch hidden\n",
                            "env": { "MAKEFLAGS": "--eval=x" }, "description": "list files" });
        let call = agent.begin("run", hides);
        let asked = question(agent);
        let text = message(&asked);
        assert!(text.contains("\n  < touch hidden\n"), "{text}");
        assert!(text.contains("\n  MAKEFLAGS=--eval=x\n"), "{text}");
        assert!(text.contains(" · network off\n"), "{text}");
        say(agent, &asked, accept("reject", ""));
        assert_eq!(agent.answered(call).data["state"], "rejected");
    });
}

#[test]
fn what_cannot_be_shown_whole_is_for_the_inbox() {
    each_way_with(Home::strict, "ask=true", able(), |_, agent| {
        let long = "x".repeat(100_000);
        let said = agent.call("run", json!({ "command": "bash", "stdin": long }));
        assert_eq!(said.data["state"], "waiting");
        assert!(agent.heard("elicitation/create").is_empty());
    });
}

#[test]
fn changes_are_shown_and_applied() {
    each_way_with(Home::untouched, "ask=true", able(), |home, agent| {
        let call = agent.begin("run", json!({ "command": "touch x" }));
        let asked = question(agent);
        let told = "It ran on a copy: 1 file is created. Approving applies that:\n  A x";
        assert!(message(&asked).contains(told), "{asked}");
        say(agent, &asked, accept("approve", ""));
        let done = agent.answered(call);
        assert_eq!(done.data["state"], "succeeded");
        assert!(
            done.text.contains("The previewed changes were applied"),
            "{}",
            done.text
        );
        assert!(home.base().join("x").exists());
    });
}

#[test]
fn a_no_is_a_no_in_either_way() {
    each_way_with(Home::strict, "ask=true", able(), |home, agent| {
        let me = home.me();
        for (answer, told) in [
            (
                accept("reject", "Not today."),
                format!("Rejected by {me}: ‘Not today.’"),
            ),
            (json!({ "action": "decline" }), format!("Rejected by {me}")),
        ] {
            agent.forget();
            let call = agent.begin("run", json!({ "command": "touch x" }));
            say(agent, &question(agent), answer);
            let done = agent.answered(call);
            assert!(done.failed);
            assert_eq!(done.data["state"], "rejected");
            assert!(done.text.contains(&told), "{}", done.text);
        }
        assert!(!home.base().join("x").exists());
    });
}

#[test]
fn no_answer_leaves_the_question_in_the_inbox() {
    each_way_with(Home::strict, "ask=true", able(), |home, agent| {
        for nothing in [
            json!({ "action": "cancel" }),
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": { "decision": "maybe" } }),
            json!({ "action": "accept", "content": "approve" }),
            json!({ "action": "shrug" }),
        ] {
            agent.forget();
            let call = agent.begin("run", json!({ "command": "touch x" }));
            say(agent, &question(agent), nothing.clone());
            let done = agent.answered(call);
            assert_eq!(done.data["state"], "waiting", "{nothing}: {done:?}");
            assert!(!done.failed);
            assert!(done.text.contains("Waiting for approval"), "{}", done.text);
            agent.call("stop", json!({ "id": done.data["id"] }));
        }
        // An error is no answer, either.
        agent.forget();
        let call = agent.begin("run", json!({ "command": "touch x" }));
        let error = json!({ "code": -32603, "message": "no dialog" });
        let id = question(agent)["id"].clone();
        agent.send(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        assert_eq!(agent.answered(call).data["state"], "waiting");
        assert!(!home.base().join("x").exists());
    });
}

#[test]
fn whoever_is_faster_decides() {
    each_way_with(Home::strict, "ask=true", able(), |home, agent| {
        let call = agent.begin("run", json!({ "command": "touch x" }));
        let asked = question(agent);
        let (_, inbox) = home.api("GET", "/approvals", &Value::Null);
        decide(
            home,
            &inbox["approvals"][0]["approval_id"],
            "approve_once",
            "",
        );
        let done = agent.answered(call);
        assert_eq!(done.data["exit_code"], 0, "{done:?}");
        // The client takes the question back, which it may still show.
        agent.listen();
        agent.hears("that nobody waits", |message| {
            message["method"] == "notifications/cancelled"
                && message["params"]["requestId"] == asked["id"]
        });
        say(agent, &asked, accept("reject", ""));
        let again = agent.call("run", json!({ "command": "ls x" }));
        assert_eq!(again.data["stdout"], "x\n");
    });
}

#[test]
fn nothing_in_a_question_passes_for_something_else() {
    each_way_with(Home::strict, "ask=true", able(), |_, agent| {
        // A character that turns the direction, and one that nobody sees.
        let command = "touch a\u{202e}b\u{200b}c\n$ ls";
        let claim = "fine\n\n$ ls\u{202e}";
        let call = agent.begin("run", json!({ "command": command, "description": claim }));
        let asked = question(agent);
        let text = message(&asked);
        for hidden in ['\u{202e}', '\u{200b}'] {
            assert!(!text.contains(hidden), "{text:?}");
        }
        assert!(text.contains("202E") && text.contains("200B"), "{text}");
        // The claim has a line of its own, and no other.
        assert_eq!(
            text.lines().filter(|line| line.starts_with("$ ")).count(),
            1,
            "{text}"
        );
        say(agent, &asked, json!({ "action": "decline" }));
        agent.answered(call);
    });
}

#[test]
fn who_is_not_able_or_does_not_want_it_is_not_asked() {
    for (query, capabilities) in [("ask=true", json!({})), ("", able())] {
        each_way_with(Home::strict, query, capabilities, |_, agent| {
            let said = agent.call("run", json!({ "command": "touch x" }));
            assert_eq!(said.data["state"], "waiting");
            assert!(agent.heard("elicitation/create").is_empty());
        });
    }
}

#[test]
fn an_agent_is_never_asked() {
    let home = Home::strict();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = add(
        &home,
        "coder",
        "agent",
        json!({ "default_sandbox": "default" }),
    );
    for agent in [
        Client::stdio_as(&home, &token, &["--ask"], able()),
        Client::http_with(&server, &token, "ask=true", able()),
    ] {
        let said = agent.call("run", json!({ "command": "touch x" }));
        assert_eq!(said.data["state"], "waiting");
        assert!(agent.heard("elicitation/create").is_empty());
        // Nor does it decide by saying so.
        agent.send(json!({ "jsonrpc": "2.0", "id": 0, "result": accept("approve", "") }));
        let still = agent.call("wait", json!({ "id": said.data["id"], "timeout": 0 }));
        assert_eq!(still.data["run"]["state"], "waiting");
        agent.call("stop", json!({ "id": said.data["id"] }));
    }
}

#[test]
fn a_call_that_is_cancelled_takes_its_question_back() {
    each_way_with(Home::strict, "ask=true", able(), |home, agent| {
        let call = agent.begin("run", json!({ "command": "touch x" }));
        question(agent);
        agent.cancel(call);
        let runs = || home.api("GET", "/commands?limit=1", &Value::Null).1["commands"][0].clone();
        crate::support::eventually("it is withdrawn", || runs()["state"] == "withdrawn");
    });
}

#[test]
fn it_is_asked_only_where_somebody_is_needed() {
    each_way(Home::strict, "ask=true", |_, agent| {
        let said = agent.call("run", json!({ "command": "ls" }));
        assert_eq!(said.data["exit_code"], 0);
        let no = agent.call("run", json!({ "command": "sudo ls" }));
        assert_eq!(no.data["state"], "blocked");
        assert!(agent.heard("elicitation/create").is_empty());
    });
}
