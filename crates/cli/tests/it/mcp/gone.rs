//! Clients and servers that go away.

use serde_json::{Value, json};

use super::Client;
use super::wire::{call, greeted, next_data, next_id, open_post, resume};
use crate::caller::{Caller, add, audit, read_head};
use crate::support::{Home, eventually, is_alive};

/// A foreground run of a client, and a background task in the same session.
struct Left {
    foreground: String,
    background: String,
}

impl Left {
    fn begin(home: &Home, agent: &Client, name: &str) -> Self {
        let task = json!({ "command": format!("echo {name}; sleep 600"), "background": true });
        let task = agent.call("run", task);
        agent.begin("run", json!({ "command": format!("sleep 601; : {name}") }));
        Self {
            foreground: run_of(home, &format!("sleep 601; : {name}")),
            background: task.data["id"].as_str().unwrap().to_owned(),
        }
    }

    /// What is true some seconds after the client was lost.
    fn check(&self, home: &Home, again: &Client) {
        let ended = home.ended(&self.foreground);
        assert_eq!(ended["state"], "killed", "{ended}");
        let told = ended["reason"]["text"].as_str().unwrap();
        let gone = told.starts_with("Stopped, since nobody waited for it any more.");
        // What its client was told to end in order is ended at once.
        assert!(gone || told.starts_with("Stopped by "), "{told}");

        let listed = again.call("list", json!({})).data;
        let state = |id: &Value| {
            let runs = listed["runs"].as_array().unwrap();
            let run = runs.iter().find(|run| run["id"] == *id);
            run.map_or(Value::Null, |run| run["state"].clone())
        };
        assert_eq!(state(&json!(self.background)), "running");
        assert_eq!(state(&ended["short_id"]), "killed");
        assert_eq!(listed["tasks"][0]["id"], self.background.as_str());
        let read = again.call("read", json!({ "id": self.background }));
        assert!(!read.data["text"].as_str().unwrap().is_empty());
        let waits = again.begin("wait", json!({ "id": self.background }));
        again.call("stop", json!({ "id": self.background }));
        assert_eq!(again.answered(waits).data["run"]["state"], "killed");
    }
}

/// Waits for a run with a text; returns its id.
fn run_of(home: &Home, command: &str) -> String {
    let mut id = None;
    eventually("it runs", || {
        let (_, runs) = home.api("GET", "/commands?state=running", &Value::Null);
        let runs = runs["commands"].as_array().unwrap();
        let run = runs.iter().find(|run| run["command"] == command);
        id = run.map(|run| run["command_id"].as_str().unwrap().to_owned());
        id.is_some()
    });
    id.unwrap()
}

#[test]
fn a_client_that_is_gone_leaves_its_tasks_and_nothing_else() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = home.token(&home.me());

    let killed = Client::stdio(&home, &["--session", "killed"]);
    let left = Left::begin(&home, &killed, "killed");
    killed.kill();
    let mut all = vec![("killed", left)];

    let closed = Client::stdio(&home, &["--session", "closed"]);
    all.push(("closed", Left::begin(&home, &closed, "closed")));
    closed.close_input();

    let broken = Client::http(&server, &token, "session=broken");
    all.push(("broken", Left::begin(&home, &broken, "broken")));
    broken.hang_up();

    // Told of progress, so that somebody is talked to all the time.
    let heard = Client::http(&server, &token, "session=heard");
    heard.listen();
    let left = Left::begin(&home, &heard, "heard");
    let talks = "sleep 601; : talks";
    heard.begin_with_progress("run", json!({ "command": talks }), "p");
    let talks = run_of(&home, talks);
    heard.hears("progress", |message| {
        message["method"] == "notifications/progress"
    });
    heard.hang_up();
    all.push(("heard", left));

    for (name, left) in &all {
        left.check(&home, &Client::stdio(&home, &["--session", name]));
    }
    assert_eq!(home.ended(&talks)["state"], "killed");
    eventually("it has ended itself", || !is_alive(closed.pid()));
    let left = audit(&home, "kind=run.left");
    assert!(left.len() >= 4, "{left:?}");
    assert!(
        left.iter().all(|entry| entry["actor"] == home.me()),
        "{left:?}"
    );
}

#[test]
fn who_dies_while_a_run_starts_leaves_nothing() {
    let home = Home::new();
    let _server = home.serve(&[]);
    // Each is killed at another moment between the request and the first look.
    let all: Vec<String> = (0..8)
        .map(|number| {
            let agent = Client::stdio(&home, &[]);
            let command = format!("sleep 601; : {number}");
            agent.begin("run", json!({ "command": command }));
            let id = run_of(&home, &command);
            std::thread::sleep(std::time::Duration::from_millis(number * 50));
            agent.kill();
            id
        })
        .collect();
    for id in all {
        let ended = home.ended(&id);
        assert_eq!(ended["state"], "killed", "{ended}");
    }
}

#[test]
fn who_comes_back_in_time_finds_the_run_going_on() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = home.token(&home.me());
    // Whoever does not come back in time is not waited for.
    let late = greeted(&server, &token);
    let task = home.start("sleep 600", json!({}));
    let mut waits = open_post(&late, &call("wait", json!({ "id": task })));
    assert_eq!(read_head(&mut waits).0, 200);
    let event = next_id(&mut waits);
    drop(waits);

    let agent = Client::http(&server, &token, "");
    // Longer than anybody may be away.
    let command = "sleep 20; echo still";
    agent.begin("run", json!({ "command": command }));
    let id = run_of(&home, command);
    agent.hang_up();
    agent.listen();
    let ended = home.ended(&id);
    assert_eq!(ended["stdout"], "still\n", "{ended}");
    let told = next_data(&mut resume(&late, &event));
    let told = told["result"]["content"][0]["text"].as_str().unwrap();
    assert!(told.starts_with("the client is gone ("), "{told}");
}

#[test]
fn only_who_could_stop_a_run_says_whether_it_goes_on() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let id = home.start("sleep 600", json!({}));
    let token = add(&home, "vera", "viewer", json!({}));
    let viewer = Caller::owner(&home).bearing(&token);
    for attend in ["attend=true&wait_ms=1", "attend=false"] {
        let said = viewer.get(&format!("/commands/{id}?{attend}"));
        assert_eq!(said.outcome(), (403, "not_allowed".into()), "{attend}");
    }
    viewer.get(&format!("/commands/{id}?wait_ms=1")).expect(200);
}

#[test]
fn a_server_that_dies_is_replaced_and_every_call_answered() {
    let home = Home::new();
    let server = home.serve(&[]);
    let agent = Client::stdio(&home, &["--session", "s"]);
    // What is on record as begun and has not begun yet would be lost.
    let waits_for = |gate: &str| {
        format!("touch at-{gate}; while ! test -e {gate}; do sleep 0.01; done; echo {gate}")
    };
    let begun = |gate: &str| {
        let at = home.base().join(format!("at-{gate}"));
        eventually("it has begun", || at.exists());
    };
    let gate = format!("{} ran >> log; echo done", waits_for("gate"));
    let run = agent.begin("run", json!({ "command": gate }));
    begun("gate");
    let task = json!({ "command": waits_for("other"), "background": true });
    let task = agent.call("run", task).data["id"].clone();
    let wait = agent.begin("wait", json!({ "id": task }));
    let told = agent.begin_with_progress("run", json!({ "command": waits_for("third") }), "p");
    begun("other");
    begun("third");
    server.kill();
    // Nobody but the client's own process is there to start another.
    eventually("there is another server", || {
        std::os::unix::net::UnixStream::connect(home.state().join("weighlock.sock")).is_ok()
    });
    let again = agent.call("run", json!({ "command": "echo again" }));
    assert_eq!(again.data["stdout"], "again\n");
    for gate in ["gate", "other", "third"] {
        std::fs::write(home.base().join(gate), "").unwrap();
    }
    assert_eq!(agent.answered(run).data["stdout"], "done\n");
    assert_eq!(agent.answered(wait).data["run"]["stdout"], "other\n");
    assert_eq!(agent.answered(told).data["stdout"], "third\n");
    assert_eq!(home.lines("log"), ["gate ran"]);
    home.assert_audit_verifies();
}

#[test]
fn nothing_runs_twice_however_the_server_dies() {
    const CALLS: usize = 60;
    let home = Home::new();
    let mut server = Some(home.serve(&[]));
    let agent = Client::stdio(&home, &[]);
    let mut calls = vec![];
    for number in 0..CALLS {
        let command = format!("echo {number} >> log");
        calls.push(agent.begin("run", json!({ "command": command })));
        if number == CALLS / 2 {
            server.take().unwrap().kill();
        }
    }
    let mut lost = vec![];
    for (number, call) in calls.into_iter().enumerate() {
        let said = agent.answered(call);
        match said.data["state"].as_str() {
            Some("succeeded") => {}
            // It was about to be started when the server died.
            Some("lost") => lost.push(number.to_string()),
            _ => panic!("{number}: {said:?}"),
        }
    }
    let mut ran = home.lines("log");
    ran.sort();
    let mut wanted: Vec<String> = (0..CALLS).map(|number| number.to_string()).collect();
    wanted.sort();
    let once = ran.clone();
    ran.dedup();
    assert_eq!(ran, once, "nothing twice");
    wanted.retain(|number| !lost.contains(number) || ran.contains(number));
    assert_eq!(ran, wanted);
}
