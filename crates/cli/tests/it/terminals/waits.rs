//! Waiting for what runs do.

use std::io::BufRead;
use std::thread;

use serde_json::{Value, json};

use super::Desk;
use crate::caller::{Caller, read_head};
use crate::crew::text;
use crate::support::have;

impl Desk {
    /// Starts something in the background; returns its id.
    fn start(&self, command: &str) -> String {
        let body = json!({ "command": command, "background": true, "env": self.env,
                           "session_id": "all" });
        text(&self.coder().post("/commands", &body).json(), "command_id")
    }

    fn wait(&self, wanted: Value) -> Value {
        let body = json!({ "for": [wanted], "timeout_ms": 60_000 });
        let waited = self.coder().post("/wait", &body).expect(200);
        assert_eq!(waited["timed_out"], false, "{waited}");
        waited
    }
}

/// How many times a race is run.
fn races() -> usize {
    match std::env::var_os("WL_LONG") {
        Some(_) => 10_000,
        None => 300,
    }
}

#[test]
fn no_end_is_missed_however_close_it_is() {
    let desk = Desk::lenient();
    let each = races() / 4;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..each {
                    let id = desk.start("true");
                    let waited = desk.wait(json!({ "id": id }));
                    assert_eq!(waited["met"], true);
                    assert_eq!(text(&waited["runs"][0], "state"), "succeeded", "{waited}");
                }
            });
        }
    });
}

#[test]
fn output_is_waited_for_before_while_and_after_it_comes() {
    let desk = Desk::lenient();
    let gate = desk.gate();
    let id = desk.start("echo early; read x < gate; echo late; echo over");
    let early = desk.wait(json!({ "id": id, "until": "output", "pattern": "^ear" }));
    assert_eq!(early["happened"][0]["line"], "early");
    assert_eq!(early["happened"][0]["offset"], 0);
    thread::scope(|scope| {
        let late = scope.spawn(|| {
            desk.wait(json!({ "id": id, "until": "output", "pattern": "^late$", "from": 6 }))
        });
        std::fs::write(&gate, "x\n").unwrap();
        assert_eq!(late.join().unwrap()["happened"][0]["offset"], 6);
    });
    // What never comes is told once that is certain.
    let never = desk.wait(json!({ "id": id, "until": "output", "pattern": "never" }));
    assert_eq!(never["met"], false);
    assert_eq!(never["happened"][0]["met"], false);
}

#[test]
fn a_port_is_waited_for_and_nobody_elses_counts() {
    if !have(&["python3"]) {
        return;
    }
    let desk = Desk::lenient();
    let listen = "import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', 4321)); \
                  s.listen(); print('listens', flush=True); sys.stdin.read(); input()";
    let id = desk.start(&format!("sleep 0.1; python3 -c \"{listen}\" < /dev/zero"));
    let met = desk.wait(json!({ "id": id, "until": "port", "port": 4321 }));
    assert_eq!(met["happened"][0]["port"], 4321);
    let other = desk.start("sleep 0.2");
    let never = desk.wait(json!({ "id": other, "until": "port", "port": 4321 }));
    assert_eq!(never["met"], false);
    let task = desk.coder().get(&format!("/tasks/{id}")).expect(200);
    assert_eq!(task["ports"], json!([4321]));
}

#[test]
fn a_program_that_wants_to_be_typed_at_is_waited_for_with_its_prompt() {
    let desk = Desk::lenient();
    desk.open(
        "ask",
        "sleep 0.1; printf 'Your name? '; read name; echo hello $name; sleep 100",
    );
    let met = desk.wait(json!({ "id": "ask", "until": "input" }));
    assert_eq!(met["happened"][0]["prompt"], "Your name?");
    desk.enter("ask", "ana");
    let met = desk.wait(json!({ "id": "ask", "until": "output", "pattern": "hello ana" }));
    assert_eq!(met["met"], true);
    let quiet = desk.wait(json!({ "id": "ask", "until": "stable", "ms": 50 }));
    assert_eq!(quiet["met"], true);
    let idle = desk.wait(json!({ "id": "ask", "until": "idle", "ms": 50 }));
    assert_eq!(idle["met"], true);
}

#[test]
fn what_was_waited_for_is_on_the_screen() {
    let desk = Desk::lenient();
    // A screen takes longer to draw this than anybody does to read it.
    let slow = "awk 'BEGIN { for (n = 0; n < 20000; n++) printf \"x\\033[999b\" }'";
    desk.open("output", &format!("{slow}; printf '\\nover\\n'; cat"));
    desk.wait(json!({ "id": "output", "until": "output", "pattern": "^over$" }));
    assert!(desk.rows("output").contains("\nover\n"));
    let asks = format!("{slow}; printf '\\nYour name? '; read name");
    desk.open("input", &asks);
    let met = desk.wait(json!({ "id": "input", "until": "input" }));
    assert_eq!(met["happened"][0]["prompt"], "Your name?");
}

#[test]
fn a_screen_that_is_drawn_again_and_again_is_stable_and_not_idle() {
    let desk = Desk::lenient();
    desk.open("same", "while :; do printf '\\rthe same'; sleep 0.02; done");
    desk.sees("same", "the same");
    // Longer than it is ever silent, on a busy machine too.
    let body = json!({ "for": [{ "id": "same", "until": "idle", "ms": 2000 },
                               { "id": "same", "until": "stable", "ms": 2000 }] });
    let waited = desk.coder().post("/wait", &body).expect(200);
    let happened = waited["happened"].as_array().unwrap();
    assert_eq!(happened.len(), 1, "{waited}");
    assert_eq!(happened[0]["until"], "stable");
}

#[test]
fn one_is_enough_or_all_are_wanted_and_time_is_up_in_between() {
    let desk = Desk::lenient();
    let (short, long) = (desk.start("true"), desk.start("sleep 100"));
    let both = |all: bool, ms: u64| {
        let body = json!({ "for": [{ "id": short }, { "id": long }], "all": all,
                           "timeout_ms": ms });
        desk.coder().post("/wait", &body).expect(200)
    };
    let any = both(false, 60_000);
    assert_eq!(
        (&any["met"], &any["timed_out"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(any["happened"][0]["command_id"], json!(short));
    let all = both(true, 300);
    assert_eq!(
        (&all["met"], &all["timed_out"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(all["happened"].as_array().unwrap().len(), 1);
    let stop = format!("/commands/{long}/stop");
    desk.coder().post(&stop, &json!({ "grace_ms": 0 }));
    assert_eq!(both(true, 60_000)["met"], true);
}

#[test]
fn what_cannot_be_waited_for_is_refused_before_anything_is() {
    let desk = Desk::lenient();
    let id = desk.start("true");
    let refused = |body: Value| desk.coder().post("/wait", &body).outcome();
    assert_eq!(refused(json!({ "for": [] })), (400, "invalid_wait".into()));
    let pattern =
        |pattern: &str| json!({ "for": [{ "id": id, "until": "output", "pattern": pattern }] });
    assert_eq!(refused(pattern("(")), (400, "invalid_pattern".into()));
    assert_eq!(
        refused(pattern("(a{1000}){1000}")),
        (400, "invalid_pattern".into())
    );
    let none = json!({ "for": [{ "id": id, "until": "output" }] });
    assert_eq!(refused(none), (400, "invalid_wait".into()));
    let silence = json!({ "for": [{ "id": id, "until": "idle", "ms": 300_001 }] });
    assert_eq!(refused(silence), (400, "invalid_wait".into()));
    let absent = json!({ "for": [{ "id": id }, { "id": "nothing" }] });
    assert_eq!(refused(absent), (404, "no_such_run".into()));
}

#[test]
fn each_thing_is_told_at_once_where_events_are_wanted() {
    let desk = Desk::lenient();
    let gate = desk.gate();
    let id = desk.start("echo first; read x < gate; echo second");
    let body = json!({ "all": true, "for": [
        { "id": id, "until": "output", "pattern": "first" },
        { "id": id, "until": "output", "pattern": "second" }, { "id": id }] });
    let caller: Caller = desk.coder().with("accept", "text/event-stream");
    let body = serde_json::to_vec(&body).unwrap();
    let line = caller.open("POST", "/agent/terminal/wait", &body);
    let mut line = std::io::BufReader::new(line);
    assert_eq!(read_head(&mut line).0, 200);
    let mut events = line.lines().map_while(Result::ok);
    let mut next = || events.find_map(|line| line.strip_prefix("event: ").map(str::to_owned));
    assert_eq!(next().as_deref(), Some("met"));
    std::fs::write(&gate, "x\n").unwrap();
    assert_eq!(next().as_deref(), Some("met"));
    assert_eq!(next().as_deref(), Some("met"));
    assert_eq!(next().as_deref(), Some("done"));
}

#[test]
fn a_line_without_end_that_comes_byte_by_byte_holds_up_nobody() {
    if !have(&["python3"]) {
        return;
    }
    let desk = Desk::lenient();
    let slow = "import os, time\nwhile True: os.write(1, b'a'); time.sleep(0.0001)";
    desk.open("bytes", &format!("python3 -c \"{slow}\""));
    desk.sees("bytes", "aaaaaaaa");
    let one = json!({ "id": "bytes", "until": "output", "pattern": "(a|b)*zzz" });
    let body = json!({ "for": [one, one, one, one], "timeout_ms": 500 });
    assert_eq!(
        desk.coder().post("/wait", &body).expect(200)["timed_out"],
        true
    );
    assert_eq!(desk.coder().get("/terminals").status, 200);
}

#[test]
fn a_terminal_that_has_ended_is_found_by_its_name() {
    let desk = Desk::lenient();
    let opened = desk.open("gone", "sleep 0.2; echo said; exit 7");
    desk.ended(&opened);
    let waited = desk.wait(json!({ "id": "gone" }));
    assert_eq!(waited["runs"][0]["exit_code"], 7);
    assert!(desk.rows("gone").contains("said"));
}

#[test]
fn a_server_that_listens_does_not_wait_for_keys() {
    if !have(&["python3"]) {
        return;
    }
    let desk = Desk::lenient();
    desk.open("http", "python3 -m http.server 4567");
    desk.wait(json!({ "id": "http", "until": "port", "port": 4567 }));
    let body = json!({ "for": [{ "id": "http", "until": "input" }], "timeout_ms": 300 });
    assert_eq!(
        desk.coder().post("/wait", &body).expect(200)["timed_out"],
        true
    );
    assert_eq!(desk.status("http"), "busy");
}
