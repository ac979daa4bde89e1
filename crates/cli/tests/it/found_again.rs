//! Finding runs again by what people type, and taking them along as a file.

use serde_json::{Value, json};

use crate::caller::Said;
use crate::crew::{Crew, text};

fn found(crew: &Crew, typed: &str) -> Said {
    let query: String = { typed.bytes() }
        .map(|byte| format!("%{byte:02X}"))
        .collect();
    crew.call("owner")
        .get(&format!("/commands?count=true&q={query}"))
}

#[track_caller]
fn check(crew: &Crew, typed: &str, expected: &[&str]) {
    let list = found(crew, typed).expect(200);
    let commands = list["commands"].as_array().unwrap().iter();
    let commands: Vec<&str> = commands
        .map(|run| run["command"].as_str().unwrap())
        .collect();
    assert_eq!(commands, expected, "{typed}");
    assert_eq!(list["count"], expected.len(), "{typed}");
}

/// A server at which something of everything has happened.
fn busy() -> (Crew, Value) {
    let crew = Crew::new();
    crew.ask("coder", "ls", json!({})).expect(200);
    crew.ask("linter", "ls nothing", json!({})).expect(200);
    crew.ask("coder", "sudo ls", json!({})).expect(200);
    let run = crew.waiting("coder", "touch A", json!({}));
    crew.decide("ana", &crew.card(&run), json!({ "kind": "reject" }))
        .expect(200);
    let run = crew.waiting("coder", "touch B", json!({}));
    crew.approve("ben", &crew.card(&run)).expect(200);
    crew.ended(&run);
    (crew, run)
}

#[test]
fn every_key_finds_what_it_says() {
    let (crew, run) = busy();
    let all = ["touch B", "touch A", "sudo ls", "ls nothing", "ls"];
    check(&crew, "", &all);
    check(&crew, "agent:linter", &["ls nothing"]);
    check(&crew, "agent:coder LS", &["sudo ls", "ls"]);
    check(&crew, "\"ls no\"", &["ls nothing"]);
    check(&crew, "nothing ls", &["ls nothing"]);
    check(&crew, "status:failed", &["ls nothing"]);
    check(&crew, "status:rejected", &["touch A"]);
    check(&crew, "verdict:ask", &["touch B", "touch A"]);
    check(&crew, "verdict:reject", &["sudo ls"]);
    check(&crew, "verdict:auto", &["ls nothing", "ls"]);
    check(&crew, "by:ana", &["touch A"]);
    check(&crew, "by:ben touch", &["touch B"]);
    check(&crew, "by:policy agent:coder", &["sudo ls", "ls"]);
    check(&crew, "sandbox:default since:1h", &all);
    check(&crew, "until:1h", &[]);
    check(&crew, "exit:0", &["touch B", "ls"]);
    check(&crew, "exit:!0", &["ls nothing"]);
    check(&crew, "rule:no-privileges", &["sudo ls"]);
    check(&crew, "rule:default", &["touch B", "touch A"]);
    check(
        &crew,
        &format!("id:{}", text(&run, "short_id")),
        &["touch B"],
    );
    // An agent finds its own.
    let own = crew
        .call("linter")
        .get("/commands?count=true&q=ls")
        .expect(200);
    assert_eq!(own["count"], 1);
}

#[test]
fn what_is_mistyped_is_told() {
    let crew = Crew::new();
    for (typed, code, hint) in [
        ("staus:failed", "unknown_filter", "did you mean `status:`?"),
        (
            "exit:x",
            "invalid_filter",
            "write exit:1, or exit:!0 for all but 0",
        ),
        ("agent:a agent:b", "invalid_filter", "leave one of them out"),
    ] {
        let problem = found(&crew, typed).expect(400);
        assert_eq!(
            (&problem["code"], &problem["hint"]),
            (&json!(code), &json!(hint))
        );
    }
    let problem = found(&crew, "sandbox:none").expect(404);
    assert_eq!(problem["code"], "no_such_sandbox");
    check(&crew, "http://x.test std::fmt", &[]);
}

#[test]
fn what_is_filtered_is_exported() {
    let (crew, _) = busy();
    crew.ask("coder", "echo '=1,\"2\"'", json!({})).expect(200);
    let export = |query: &str| {
        let said = crew.call("owner").get(&format!("/commands/export?{query}"));
        assert_eq!(said.status, 200);
        String::from_utf8(said.bytes).unwrap()
    };
    let lines = export("q=agent:coder");
    let commands: Vec<Value> = { lines.lines() }
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["command"].clone())
        .collect();
    assert_eq!(
        commands,
        ["echo '=1,\"2\"'", "touch B", "touch A", "sudo ls", "ls"]
    );
    let table = export("q=agent:coder&format=csv");
    let mut rows = table.split("\r\n");
    assert_eq!(rows.next().unwrap().split(',').nth(11), Some("command"));
    assert!(
        rows.next().unwrap().contains(",\"echo '=1,\"\"2\"\"'\","),
        "{table}"
    );
    let cells: Vec<&str> = rows.next().unwrap().split(',').collect();
    assert_eq!(
        (cells[6], cells[7], cells[8], cells[11]),
        ("ask", "ben", "0", "touch B")
    );
    // An agent gets its own, as in lists.
    let own = crew.call("linter").get("/commands/export");
    assert_eq!(String::from_utf8(own.bytes).unwrap().lines().count(), 1);
}
