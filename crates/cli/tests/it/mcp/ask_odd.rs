//! Answers of a client that do not count.

use serde_json::{Value, json};

use super::ask::{able, accept, question, say};
use super::{Client, each_way_with};
use crate::caller::{Caller, add_here};
use crate::support::{Home, eventually};

/// Answers a question as nobody should.
fn say_odd(agent: &Client, question: &Value, name: &str, answer: &Value) {
    agent.send(json!({ "jsonrpc": "2.0", "id": question["id"], name: answer }));
}

#[test]
fn what_is_no_answer_is_taken_for_none() {
    let error = json!({ "code": -32603, "message": "nobody is here" });
    let decided = |decision: Value, reason: Value| {
        let content = json!({ "decision": decision, "reason": reason });
        json!({ "action": "accept", "content": content })
    };
    let odd = [
        ("error", error),
        ("result", json!({})),
        ("result", json!({ "decision": "approve" })),
        ("result", decided(json!(true), Value::Null)),
        ("result", decided(json!(["approve"]), Value::Null)),
        ("result", decided(json!("APPROVE"), Value::Null)),
        ("result", decided(json!("approve"), json!(5))),
    ];
    each_way_with(Home::strict, "ask=true", able(), |home, agent| {
        for (name, answer) in &odd {
            agent.forget();
            let call = agent.begin("run", json!({ "command": "touch x" }));
            say_odd(agent, &question(agent), name, answer);
            let done = agent.answered(call);
            assert_eq!(done.data["state"], "waiting", "{answer}: {done:?}");
            agent.call("stop", json!({ "id": done.data["id"] }));
        }
        assert!(!home.base().join("x").exists());
    });
}

#[test]
fn a_yes_counts_for_what_was_shown() {
    each_way_with(Home::strict, "ask=true", able(), |home, agent| {
        home.put("base/deploy.sh", "touch one\n");
        let call = agent.begin("run", json!({ "command": "sh deploy.sh" }));
        let asked = question(agent);
        home.put("base/deploy.sh", "touch two\n");
        say(agent, &asked, accept("approve", ""));
        let done = agent.answered(call);
        assert_eq!(done.data["state"], "waiting", "{done:?}");
        let told = "What your person answered does not count: ";
        assert!(done.text.contains(told), "{}", done.text);
        let ran = |name: &str| home.base().join(name).exists();
        assert!(!ran("one") && !ran("two"));
    });
}

#[test]
fn who_may_not_decide_any_more_has_not_decided() {
    let home = Home::strict();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = add_here(&home, "ana", "administrator");
    let becomes = |role: &str| {
        let path = "/people/ana";
        let changed = Caller::owner(&home).ask("PATCH", path, &json!({ "role": role }));
        changed.expect(200);
    };
    for agent in [
        Client::stdio_as(&home, &token, &["--ask"], able()),
        Client::http_with(&server, &token, "ask=true", able()),
    ] {
        becomes("administrator");
        let call = agent.begin("run", json!({ "command": "touch x" }));
        let asked = question(&agent);
        becomes("viewer");
        say(&agent, &asked, accept("approve", ""));
        agent.answered(call);
        assert_eq!(home.newest()["state"], "waiting");
        assert!(!home.base().join("x").exists());
    }
}

#[test]
fn only_the_first_answer_counts_and_only_while_it_is_wanted() {
    each_way_with(Home::strict, "ask=true", able(), |home, agent| {
        let call = agent.begin("run", json!({ "command": "touch x" }));
        let asked = question(agent);
        say(agent, &asked, json!({ "action": "decline" }));
        say(agent, &asked, accept("approve", ""));
        let said = agent.answered(call);
        assert_eq!(said.data["state"], "rejected");

        agent.forget();
        let call = agent.begin("run", json!({ "command": "touch x" }));
        let asked = question(agent);
        agent.cancel(call);
        say(agent, &asked, accept("approve", ""));
        eventually("it is withdrawn", || home.newest()["state"] == "withdrawn");
        // Asked after it, so that it has been heard.
        agent.call("list", json!({}));
        assert_eq!(home.newest()["state"], "withdrawn");
        assert!(!home.base().join("x").exists());
    });
}

#[test]
fn nobody_answers_for_another_client() {
    let home = Home::strict();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = home.token(&home.me());
    let others = [
        Client::stdio_with(&home, &["--ask"], able()),
        Client::http_with(&server, &token, "ask=true", able()),
    ];
    for agent in [
        Client::stdio_with(&home, &["--ask"], able()),
        Client::http_with(&server, &token, "ask=true", able()),
    ] {
        let call = agent.begin("run", json!({ "command": "touch x" }));
        let asked = question(&agent);
        for other in &others {
            say(other, &asked, accept("approve", ""));
            // Asked after it, so that it has been heard.
            other.call("list", json!({}));
        }
        assert!(!agent.has_answer(call));
        say(&agent, &asked, json!({ "action": "decline" }));
        assert_eq!(agent.answered(call).data["state"], "rejected");
    }
    assert!(!home.base().join("x").exists());
}
