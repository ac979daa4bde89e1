//! Whose a terminal is, and what it is to everybody else.

use serde_json::{Value, json};

use super::Desk;
use crate::caller::{Caller, Said};
use crate::crew::text;
use crate::support::eventually;

/// Everything that can be asked of a terminal, and how one who may is answered.
fn asked(terminal: &str) -> Vec<(&'static str, String, Value, u16)> {
    let at = |rest: &str| format!("/terminals/{terminal}{rest}");
    vec![
        ("GET", at(""), Value::Null, 200),
        ("GET", at("/screen"), Value::Null, 200),
        ("GET", at("/screen?lines=10"), Value::Null, 200),
        ("POST", at("/input"), json!({ "text": "typed\n" }), 204),
        (
            "POST",
            at("/size"),
            json!({ "columns": 90, "rows": 30 }),
            204,
        ),
        ("POST", at("/signal"), json!({ "signal": "WINCH" }), 204),
        ("DELETE", at(""), Value::Null, 204),
    ]
}

/// Everything that can be asked of the run that it is.
fn asked_of_run(id: &str) -> Vec<(&'static str, String, Value)> {
    let at = |rest: &str| format!("/commands/{id}{rest}");
    vec![
        ("GET", at(""), Value::Null),
        ("GET", at("/output"), Value::Null),
        ("GET", at("/output/raw"), Value::Null),
        ("GET", at("/output/find?q=x"), Value::Null),
        ("POST", at("/stdin"), json!({})),
        ("POST", at("/stop"), json!({})),
    ]
}

/// Names and ids of the terminals that somebody is told of.
fn told(who: &Caller) -> Vec<(String, String)> {
    let list = who.get("/terminals").expect(200);
    let all = list["terminals"].as_array().expect("a list");
    let one = |terminal: &Value| (text(terminal, "requested_by"), text(terminal, "name"));
    all.iter().map(one).collect()
}

fn open(who: &Caller, name: &str) -> Said {
    let body = json!({ "name": name, "description": "for a test", "command": "cat" });
    who.post("/terminals", &body)
}

#[test]
fn the_terminals_of_another_do_not_exist() {
    let desk = Desk::new();
    let opened = desk.open("one", "cat");
    let id = text(&opened, "terminal_id");
    let before = desk.screen("one");
    let other = desk.other("linter", "agent");
    assert_eq!(told(&other), []);
    let short = text(&opened, "short_id");
    for name in ["one", &id, &short] {
        for (method, path, body, _) in asked(name) {
            let said = other.ask(method, &path, &body);
            // As for one that nobody has.
            let nobodys = other.ask(method, &path.replace(name, "none"), &body);
            assert_eq!(said.outcome(), (404, "not_found".into()), "{method} {path}");
            assert_eq!(nobodys.outcome(), said.outcome(), "{method} {path}");
        }
    }
    for (method, path, body) in asked_of_run(&id) {
        let said = other.ask(method, &path, &body);
        assert_eq!(said.status, 404, "{method} {path}: {:?}", said.json());
    }
    assert_eq!(desk.screen("one"), before, "nothing came of it");
    desk.enter("one", "still mine");
    desk.sees("one", "still mine\nstill mine");
    // A name is taken for its owner only.
    open(&other, "one").expect(202);
    assert_eq!(told(&other), [("linter".into(), "one".into())]);
    assert_eq!(told(&desk.coder()), [("coder".into(), "one".into())]);
}

#[test]
fn an_administrator_sees_and_runs_the_terminals_of_all() {
    let desk = Desk::new();
    let other = desk.other("linter", "agent");
    let opened = desk.open("one", "cat");
    open(&other, "two").expect(202);
    let owner = Caller::owner(&desk.home);
    let all = [("coder", "one"), ("linter", "two")];
    let all = all.map(|(whose, name)| (whose.to_owned(), name.to_owned()));
    assert_eq!(told(&owner), all);
    for (method, path, body, status) in asked("two") {
        let said = owner.ask(method, &path, &body);
        assert_eq!(said.status, status, "{method} {path}: {:?}", said.json());
    }
    eventually("only one is left", || told(&owner) == all[..1]);
    // One name that two have is nobody's.
    open(&other, "one").expect(202);
    let said = owner.get("/terminals/one").outcome();
    assert_eq!(said, (409, "ambiguous_id".into()));
    let by_id = format!("/terminals/{}", text(&opened, "terminal_id"));
    assert_eq!(owner.get(&by_id).expect(200)["requested_by"], "coder");
    for (method, path, body) in asked_of_run(&text(&opened, "terminal_id")) {
        assert_ne!(
            owner.ask(method, &path, &body).status,
            404,
            "{method} {path}"
        );
    }
}

#[test]
fn a_name_counts_before_the_beginning_of_an_id() {
    let desk = Desk::new();
    let one = desk.open("one", "cat");
    let begins = text(&one, "short_id")[2..5].to_owned();
    let at = |name: &str| text(&desk.told(name), "terminal_id");
    assert_eq!(at(&begins), text(&one, "terminal_id"));
    let two = desk.open(&begins, "cat");
    assert_eq!(at(&begins), text(&two, "terminal_id"));
    for whole in ["terminal_id", "short_id"] {
        assert_eq!(at(&text(&one, whole)), text(&one, "terminal_id"));
    }
    desk.enter(&begins, "for two");
    desk.sees(&begins, "for two\nfor two");
    assert_eq!(desk.rows("one").trim(), "");
    desk.close(&begins);
    desk.ended(&two);
    assert_ne!(desk.status("one"), "closed");
}

#[test]
fn who_answers_questions_looks_at_terminals_and_does_not_touch_them() {
    let desk = Desk::new();
    desk.open("one", "cat");
    desk.enter("one", "seen");
    // Once as it is typed, and once as it is said.
    let bytes = 2 * "seen\r\n".len();
    eventually("all is shown", || desk.screen("one")["offset"] == bytes);
    let before = desk.screen("one");
    let approver = desk.other("ana", "approver");
    assert_eq!(told(&approver), [("coder".into(), "one".into())]);
    for (method, path, body, status) in asked("one") {
        let said = approver.ask(method, &path, &body);
        let may = method == "GET";
        let expected = if may { status } else { 403 };
        assert_eq!(said.status, expected, "{method} {path}: {:?}", said.json());
    }
    assert_eq!(desk.screen("one"), before);
    desk.enter("one", "still mine");
    desk.sees("one", "still mine\nstill mine");
}

#[test]
fn a_whole_name_means_the_terminal_and_no_run_whose_id_begins_so() {
    let desk = Desk::new();
    let body = json!({ "command": "sleep 60", "background": true });
    let run = desk.coder().post("/commands", &body).expect(202);
    let name = &text(&run, "short_id")[2..5];
    let opened = desk.open(name, "cat");
    let stop = format!("/commands/{name}/stop");
    desk.coder().post(&stop, &json!({})).expect(200);
    desk.ended(&opened);
    let id = text(&run, "command_id");
    let whole = desk.coder().get(&format!("/commands/{id}")).expect(200);
    assert_eq!(whole["state"], "running");
    // Nor does a name stand for a task's id.
    let short = text(&run, "short_id")[2..].to_owned();
    desk.open(&short, "cat");
    let task = format!("/commands/bash-{short}");
    assert_eq!(text(&desk.coder().get(&task).expect(200), "command_id"), id);
}
