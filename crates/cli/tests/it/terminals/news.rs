//! What somebody is told whose input was held, and what is on record of it.

use std::fs;

use serde_json::{Value, json};

use super::keyboard::give;
use super::{Desk, have};
use crate::caller::audit;
use crate::crew::text;
use crate::support::eventually;

impl Desk {
    fn post_line(&self, name: &str, line: &str) -> (u16, Value) {
        let input = json!({ "text": line, "submit": true });
        let said = self
            .coder()
            .post(&format!("/terminals/{name}/input"), &input);
        let told = match said.status {
            204 => Value::Null,
            _ => said.json(),
        };
        (said.status, told)
    }

    fn given_back(&self, name: &str) {
        eventually("given back", || self.control_of(name)["taken_by"].is_null());
    }

    /// What is on record of what was typed.
    fn inputs(&self) -> Vec<Value> {
        let typed = |entry: &Value| text(entry, "kind") == "terminal.input";
        let all = audit(&self.home, "").into_iter().filter(typed);
        all.map(|entry| entry["detail"].clone()).collect()
    }
}

#[test]
fn whoever_typed_meanwhile_is_told_the_note_with_the_next_answer_once() {
    let desk = Desk::new();
    desk.open("cat", "cat");
    let mut ana = desk.taken("cat");
    desk.hold("cat", "first");
    ana.say(give("I logged in, go on."));
    desk.given_back("cat");
    desk.shows("cat", "first twice", |rows| {
        rows.matches("first").count() == 2
    });
    let (status, told) = desk.post_line("cat", "second");
    assert_eq!(status, 200, "{told}");
    assert_eq!(text(&told, "state"), "typed");
    assert_eq!(
        text(&told, "text"),
        "ana handed back: ‘I logged in, go on.’"
    );
    assert_eq!(desk.post_line("cat", "third").0, 204);
}

#[test]
fn a_command_that_waited_for_the_keyboard_is_told_the_note() {
    let desk = Desk::with_bash();
    let mut ana = desk.taken("shell");
    let begun = desk.ask_for("echo mine");
    assert_eq!(begun["reason"]["code"], "queued", "{begun}");
    ana.say(give("go on"));
    let ended = desk.outcome(&begun);
    assert_eq!(text(&ended, "stdout"), "mine\n");
    assert_eq!(
        ended["warnings"],
        json!(["ana handed back: ‘go on’"]),
        "{ended}"
    );
    assert_eq!(desk.exec("shell", "true")["warnings"], json!([]));
}

#[test]
fn what_was_held_and_is_refused_is_told() {
    let desk = Desk::with_bash();
    let mut ana = desk.taken("shell");
    desk.hold("shell", "sudo ls");
    ana.say(give(""));
    desk.given_back("shell");
    eventually("caught up", || desk.control_of("shell")["held_bytes"] == 0);
    // It waits until what was held is settled.
    let told = desk.exec("shell", "true")["warnings"].clone();
    // Together, or one after the other if it came in between.
    let told = told.as_array().expect("a list").iter();
    let told: Vec<&str> = told.filter_map(Value::as_str).collect();
    assert!(
        told.join("\n")
            .contains("ana handed back.\nWhat you typed meanwhile was not sent: "),
        "{told:?}"
    );
}

#[test]
fn what_was_held_is_on_record_as_it_is_typed() {
    let desk = Desk::with_bash();
    // Held while a password is asked for, and then a command.
    let mut ana = desk.taken("shell");
    ana.press("read -s x\r");
    desk.sees("shell", "read -s");
    eventually("hidden", || desk.status("shell") == "idle");
    desk.hold("shell", "echo seen");
    ana.press("word\r");
    ana.say(give(""));
    desk.sees("shell", "\nseen");
    let typed = desk.inputs();
    let is_line = |detail: &&Value| detail["text"].as_str().unwrap_or("").contains("echo seen");
    let lines: Vec<&Value> = typed.iter().filter(is_line).collect();
    assert_eq!(lines.len(), 1, "{typed:?}");
    assert_eq!(lines[0]["judged"], true);
    // And the other way round.
    ana.control(false);
    ana.take(80, 24);
    desk.hold("shell", "hush7391");
    ana.press("read -s x\r");
    eventually("hidden", || desk.status("shell") == "idle");
    ana.say(give(""));
    desk.given_back("shell");
    eventually("typed", || {
        desk.inputs().last() == Some(&json!({ "hidden": true }))
    });
    let typed = desk.inputs();
    assert!(!format!("{typed:?}").contains("hush7391"), "{typed:?}");
}

#[test]
fn a_password_that_is_asked_for_key_by_key_is_not_on_record() {
    if !have(&["python3"]) {
        return;
    }
    let desk = Desk::lenient();
    let program = "import os, sys, tty\n\
                   tty.setraw(0)\n\
                   os.write(1, b'[sudo] password for ana: ')\n\
                   word = b''\n\
                   while not word.endswith(b'\\r'):\n\
                   \x20   word += os.read(0, 1)\n\
                   \x20   os.write(1, b'*')\n\
                   os.write(1, b'\\r\\nthanks %d\\r\\n' % len(word))\n";
    fs::write(desk.home.base().join("asks.py"), program).unwrap();
    desk.open("asks", "python3 asks.py; cat");
    desk.sees("asks", "password for ana:");
    desk.send("asks", json!({ "text": "hush" }));
    desk.sees("asks", "****");
    desk.enter("asks", "7391");
    desk.sees("asks", "thanks 9");
    let typed = desk.inputs();
    assert_eq!(typed, vec![json!({ "hidden": true }); 2]);
}

#[test]
fn a_line_that_only_shows_how_far_it_is_does_not_hide_what_is_waited_for() {
    let desk = Desk::lenient();
    let bar = "i=0; while [ $i -lt 12000 ]; do printf '\\r%5d of 12000' $i; i=$((i+1)); done; \
               printf '\\rready \\n'; sleep 1000";
    desk.open("bar", bar);
    let ready = json!({ "for": [{ "id": "bar", "until": "output", "pattern": "^ready" }],
                        "timeout_ms": 60_000 });
    let waited = desk.coder().post("/wait", &ready).expect(200);
    assert_eq!(waited["met"], true, "{waited}");
}
