//! A request that is made twice under the same key is done once.

use std::sync::Arc;

use serde_json::{Value, json};
use weighlock_api::State;
use weighlock_engine::{Outcome, Request};

use crate::caller::Said;
use crate::crew::{Crew, text};
use crate::desk::{Office, races};
use crate::support::eventually;

/// Asks with a key.
fn keyed(crew: &Crew, who: &str, key: &str, body: &Value) -> Said {
    let caller = crew.call(who).with("idempotency-key", key);
    caller.post("/commands", body)
}

/// A command that needs nobody, and leaves a trace.
fn auto(crew: &Crew) -> Value {
    let grant = json!({ "pattern": "tee -a ran" });
    let given = crew.call("owner").post("/policies/grants", &grant);
    assert!(given.status < 300, "{given:?}");
    json!({ "command": "echo x | tee -a ran" })
}

#[test]
fn one_after_the_other_is_one_run_also_after_a_restart() {
    let mut crew = Crew::new();
    let body = auto(&crew);
    let first = keyed(&crew, "coder", "a", &body).expect(200);
    for _ in 0..2 {
        for _ in 0..3 {
            let again = keyed(&crew, "coder", "a", &body).expect(200);
            assert_eq!(again, first);
        }
        crew.restart();
    }
    // How long somebody waits is not what they ask for.
    let mut waiting = body.clone();
    waiting["wait_ms"] = json!(5);
    assert_eq!(keyed(&crew, "coder", "a", &waiting).expect(200), first);
    for (name, value) in [
        ("command", json!("echo y | tee -a ran")),
        ("env", json!({ "A": "b" })),
        ("cwd", json!(".")),
        ("stdin", json!("y")),
        ("timeout_ms", json!(1000)),
        ("keep", json!(true)),
        ("executor", json!("external")),
        ("session_id", json!("other")),
    ] {
        let mut other = body.clone();
        other[name] = value;
        let refused = keyed(&crew, "coder", "a", &other);
        assert_eq!(refused.outcome(), (409, "key_reused".into()), "{name}");
    }
    assert_eq!(crew.home.lines("ran"), ["x"]);
    // Another's key is another key.
    keyed(&crew, "linter", "a", &body).expect(200);
    keyed(&crew, "coder", "b", &body).expect(200);
    assert_eq!(crew.home.lines("ran"), ["x"; 3]);
    let long = "k".repeat(256);
    for key in ["", long.as_str()] {
        let refused = keyed(&crew, "coder", key, &body);
        assert_eq!(refused.outcome(), (400, "invalid_key".into()), "{key}");
    }
    crew.assert_agrees();
}

#[test]
fn twenty_at_once_are_one_run() {
    let crew = Crew::new();
    let body = auto(&crew);
    for key in ["a", "b", "c"] {
        let answers: Vec<Value> = std::thread::scope(|scope| {
            let ask = || keyed(&crew, "coder", key, &body).expect(200);
            let tasks: Vec<_> = (0..20).map(|_| scope.spawn(ask)).collect();
            tasks.into_iter().map(|task| task.join().unwrap()).collect()
        });
        let id = text(&answers[0], "command_id");
        for answer in &answers {
            assert_eq!(text(answer, "command_id"), id);
            assert_eq!(answer["state"], "succeeded", "they waited: {answer}");
        }
    }
    assert_eq!(crew.home.lines("ran"), ["x"; 3]);
    crew.assert_agrees();
}

#[test]
fn what_waits_is_held_or_is_blocked_has_a_key_too() {
    let mut crew = Crew::new();
    let waits = json!({ "command": "echo asked >> ran" });
    let blocked = json!({ "command": "rm -rf /" });
    let first = keyed(&crew, "coder", "waits", &waits).expect(202);
    let never = keyed(&crew, "coder", "blocked", &blocked).expect(200);
    assert_eq!(never["state"], "blocked", "{never}");
    crew.call("olga").post("/pause", &Value::Null).expect(200);
    let held = keyed(&crew, "coder", "held", &waits).expect(202);
    assert_eq!(held["state"], "held", "{held}");
    for _ in 0..2 {
        for (key, body, status, before) in [
            ("waits", &waits, 202, &first),
            ("blocked", &blocked, 200, &never),
            ("held", &waits, 202, &held),
        ] {
            assert_eq!(keyed(&crew, "coder", key, body).expect(status), *before);
            let mut other = body.clone();
            other["command"] = json!("touch other");
            let refused = keyed(&crew, "coder", key, &other);
            assert_eq!(refused.outcome(), (409, "key_reused".into()), "{key}");
        }
        crew.restart();
    }
    assert_eq!(crew.card(&first)["count"], 1);
    crew.call("olga").post("/resume", &Value::Null).expect(200);
    eventually("it is asked about", || {
        crew.run(&held)["state"] == "waiting"
    });
    let card = crew.card(&first);
    assert_eq!(card["count"], 2, "{card}");
    crew.approve("ana", &card).expect(200);
    for (key, before) in [("waits", &first), ("held", &held)] {
        let mut waiting = waits.clone();
        waiting["wait_ms"] = json!(20000);
        let ended = keyed(&crew, "coder", key, &waiting).expect(200);
        assert_eq!(ended["command_id"], before["command_id"]);
        assert_eq!(ended["state"], "succeeded", "{ended}");
    }
    assert_eq!(crew.home.lines("ran"), ["asked"; 2]);
    crew.assert_agrees();
}

#[test]
fn whatever_becomes_of_it_at_once_is_one_run() {
    let office = Office::new();
    office.open(async |desk| {
        let desk = Arc::new(desk);
        let olga = desk.who("olga").clone();
        for n in 0..races(60) {
            let (command, state) = match n % 4 {
                0 => ("ls".to_owned(), State::Succeeded),
                1 => (format!("touch {n}"), State::Waiting),
                2 => ("rm -rf /".to_owned(), State::Blocked),
                _ => (format!("touch {n}"), State::Held),
            };
            if state == State::Held {
                desk.engine.pauses().pause(None, None, &olga).await.unwrap();
            }
            let request = Request {
                key: Some(n.to_string()),
                ..desk.request("coder", &command)
            };
            let tasks = (0..8).map(|_| {
                let (desk, request) = (Arc::clone(&desk), request.clone());
                tokio::spawn(async move { desk.engine.run(request).await.unwrap() })
            });
            let tasks: Vec<_> = tasks.collect();
            let mut ids = vec![];
            for task in tasks {
                let (Outcome::Refused(run)
                | Outcome::Waiting(run)
                | Outcome::Ended(run)
                | Outcome::Running(run)) = task.await.unwrap();
                assert_eq!(run.state, state, "{run:?}");
                ids.push(run.command_id);
            }
            ids.dedup();
            assert_eq!(ids.len(), 1, "{ids:?}");
            if state == State::Held {
                desk.engine.life().resume(None, &olga).await.unwrap();
            }
        }
        desk.assert_agrees();
    });
}
