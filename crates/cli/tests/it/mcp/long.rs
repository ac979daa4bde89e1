//! Commands that take longer than a call may.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Client, each_way};
use crate::support::{Home, eventually};

/// What clients wait for an answer at the most.
const LIMIT: Duration = Duration::from_secs(60);

/// Longer than a call may take where nobody hears of progress; three minutes
/// with `WL_LONG`.
fn seconds() -> u32 {
    match std::env::var_os("WL_LONG") {
        Some(_) => 180,
        None => 50,
    }
}

#[test]
fn no_call_takes_longer_than_its_client_waits() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let home = Home::new();
            let _server = home.serve(&[]);
            long(&Client::stdio(&home, &[]));
        });
        scope.spawn(|| {
            let home = Home::new();
            let server = home.serve(&["--listen", "127.0.0.1:0"]);
            long(&Client::http(&server, &home.token(&home.me()), ""));
        });
        // In the same minute: all of them do nothing but wait.
        scope.spawn(super::tasks::what_takes_too_long_goes_on);
        scope.spawn(super::execute_command::a_call_that_may_not_last_says_that_its_command_goes_on);
    });
}

fn long(agent: &Client) {
    let seconds = seconds();
    let limit = json!(seconds + 60);
    let quiet = json!({ "command": format!("sleep {seconds}; echo ok"), "timeout": limit });
    let counts = format!("for i in $(seq {seconds}); do echo line $i; sleep 1; done; echo ok");
    let counts = json!({ "command": counts, "timeout": limit });
    let told = agent.begin_with_progress("run", counts, "p");
    let first = agent.answered_within(agent.begin("run", quiet), LIMIT);
    assert_eq!(first.data["state"], "running");
    let id = first.data["id"].as_str().unwrap();
    let next = format!("\nIt goes on: wait for {id}, read {id}, or stop {id}.");
    assert!(first.text.ends_with(&next), "{}", first.text);

    // However long is asked for.
    let waits = json!({ "id": id, "timeout": 600 });
    let mut last = agent.answered_within(agent.begin("wait", waits.clone()), LIMIT);
    while last.data["timed_out"] == true {
        last = agent.answered_within(agent.begin("wait", waits.clone()), LIMIT);
    }
    assert_eq!(last.data["run"]["stdout"], "ok\n");

    // Where progress is heard, one call is enough.
    let done = agent.answered(told);
    assert_eq!(done.data["state"], "succeeded");
    let heard = agent.heard("notifications/progress");
    let lines: Vec<&str> = { heard.iter() }
        .map(|one| one["params"]["message"].as_str().unwrap())
        .collect();
    let line = |line: &&str| line.starts_with("line ");
    assert!(lines.iter().any(line), "{lines:?}");
    let far = |one: &Value| one["params"]["progress"].as_f64().unwrap();
    assert!(heard.iter().map(far).is_sorted());
    assert!(
        heard
            .iter()
            .all(|one| one["params"]["progressToken"] == "p")
    );
}

#[test]
fn a_call_that_is_cancelled_ends_its_run_and_says_so() {
    each_way(Home::new, "", |home, agent| {
        agent.listen();
        let call = agent.begin("run", json!({ "command": "sleep 600" }));
        eventually("it runs", || home.newest()["state"] == "running");
        agent.cancel(call);
        eventually("it was ended", || home.newest()["state"] == "killed");
        let id = home.newest()["short_id"].as_str().unwrap().to_owned();
        let told = format!("{id} was stopped: its call was cancelled");
        agent.hears("that it was stopped", |message| {
            message["method"] == "notifications/message" && message["params"]["data"] == told
        });
        let listed = agent.call("list", json!({ "what": "runs" }));
        assert_eq!(listed.data["runs"][0]["state"], "killed");
        assert!(!agent.has_answer(call), "nobody wants it");
    });
}

#[test]
fn or_lets_it_go_on_and_says_so() {
    each_way(Home::new, "", |home, agent| {
        agent.listen();
        let command = "while ! test -e gate; do sleep 0.01; done; echo ok";
        let wanted = json!({ "command": command, "keep_on_cancel": true });
        let call = agent.begin("run", wanted);
        eventually("it runs", || home.newest()["state"] == "running");
        agent.cancel(call);
        let id = home.newest()["short_id"].as_str().unwrap().to_owned();
        let told = format!("{id} goes on: its call was cancelled");
        agent.hears("that it goes on", |message| {
            message["method"] == "notifications/message" && message["params"]["data"] == told
        });
        let waits = agent.begin("wait", json!({ "id": id }));
        std::fs::write(home.base().join("gate"), "").unwrap();
        assert_eq!(agent.answered(waits).data["run"]["stdout"], "ok\n");
    });
}

#[test]
fn an_id_that_is_used_again_after_a_cancel_has_an_answer_of_its_own() {
    each_way(Home::new, "", |home, agent| {
        agent.listen();
        let call = agent.begin("run", json!({ "command": "sleep 600" }));
        eventually("it runs", || home.newest()["state"] == "running");
        let first = home.newest()["short_id"].as_str().unwrap().to_owned();
        agent.cancel(call);
        let command = "while ! test -e gate; do sleep 0.01; done; echo second";
        let again = json!({ "name": "run", "arguments": { "command": command } });
        let again = json!({ "jsonrpc": "2.0", "id": call, "method": "tools/call",
                            "params": again });
        agent.send(again.clone());
        let told = format!("{first} was stopped: its call was cancelled");
        agent.hears("that the first was stopped", |message| {
            message["method"] == "notifications/message" && message["params"]["data"] == told
        });
        // By now the first has an answer, which nobody wants.
        agent.call("list", json!({}));
        assert!(!agent.has_answer(call), "it is the first one's");
        std::fs::write(home.base().join("gate"), "").unwrap();
        assert_eq!(agent.answered(call).data["stdout"], "second\n");
    });
}

#[test]
fn a_wait_that_is_cancelled_ends_nothing() {
    each_way(Home::new, "", |home, agent| {
        let background = json!({ "command": "sleep 600", "background": true });
        let id = agent.call("run", background).data["id"].clone();
        let wait = agent.begin("wait", json!({ "id": id }));
        agent.cancel(wait);
        // Taken after it, so it has been heard.
        agent.call("list", json!({}));
        assert_eq!(home.newest()["state"], "running");
        agent.call("stop", json!({ "id": id }));
    });
}
