//! Who types at a terminal: a person who takes its keyboard from an agent, and
//! gives it back.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::watcher::Watcher;
use super::{Desk, have};
use crate::caller::{Caller, add, audit};
use crate::crew::text;
use crate::support::{Home, eventually};

/// What the agent is told while ana types.
const HELD: &str = "ana is typing in this terminal. Your input is held.";

/// The size of ana's window, and the usual one.
const ANAS: (u64, u64) = (100, 40);
const USUAL: (u64, u64) = (80, 24);

impl Desk {
    /// One with settings of its own.
    fn with(settings: &str) -> Self {
        let settings = format!("{settings}\n[environment]\nlogin_path = false\n");
        Self::at(Home::new(), &settings, json!({}))
    }

    /// One with a shell that judges, at its prompt.
    pub(super) fn with_bash() -> Self {
        let desk = Self::lenient();
        desk.open("shell", "bash");
        eventually("a prompt", || desk.status("shell") == "idle");
        desk
    }

    fn ana(&self) -> Caller {
        self.other("ana", "operator")
    }

    /// Has ana take the keyboard of a terminal, in a window of her own.
    #[track_caller]
    pub(super) fn taken(&self, name: &str) -> Watcher {
        let mut ana = Watcher::at(&self.ana(), name);
        ana.take(100, 40);
        ana
    }

    /// Types as the agent does, and returns what it is told.
    #[track_caller]
    pub(super) fn hold(&self, name: &str, line: &str) -> Value {
        let input = json!({ "text": line, "submit": true });
        let path = format!("/terminals/{name}/input");
        self.coder().post(&path, &input).expect(202)
    }

    fn control(&self, name: &str) -> Value {
        self.told(name)["control"].clone()
    }

    #[track_caller]
    fn waits_for(&self, name: &str, said: &str) {
        eventually(said, || self.control(name)["text"] == said);
    }

    /// What is on record about whose turn it was: what and who.
    fn turns(&self) -> Vec<(String, String)> {
        let about = |entry: &Value| (text(entry, "kind"), text(entry, "actor"));
        let turn = |entry: &(String, String)| {
            ["terminal.taken", "terminal.given_back"].contains(&entry.0.as_str())
        };
        let mut turns: Vec<_> = audit(&self.home, "")
            .iter()
            .map(about)
            .filter(turn)
            .collect();
        turns.sort();
        turns
    }

    /// The marks in a recording of whose turn it was.
    fn marks(&self, name: &str) -> Vec<(String, String)> {
        let path = format!("/terminals/{name}/recording/index");
        let index = self.coder().get(&path).expect(200);
        let marks = index["marks"].as_array().expect("marks").iter();
        let marks = marks.map(|mark| (text(mark, "kind"), text(mark, "text")));
        marks
            .filter(|(kind, _)| kind == "taken" || kind == "given_back")
            .collect()
    }
}

pub(super) fn give(note: &str) -> Value {
    json!({ "type": "give", "note": note })
}

fn pair(one: &str, other: &str) -> (String, String) {
    (one.to_owned(), other.to_owned())
}

#[test]
fn a_person_interrupts_what_does_not_read() {
    let desk = Desk::lenient();
    let opened = desk.open("busy", "sleep 1000");
    eventually("its program runs", || desk.status("busy") == "busy");
    let mut ana = Watcher::at(&desk.ana(), "busy");
    ana.take(100, 40);
    // More than fits anywhere.
    for _ in 0..8 {
        ana.press(&"nobody reads this\r".repeat(3000));
    }
    ana.press("\x03");
    desk.ended(&opened);
    let path = format!("/commands/{}", text(&opened, "terminal_id"));
    let run = desk.coder().get(&path).expect(200);
    assert_eq!(run["signal"], 2, "{run}");
}

#[test]
fn a_person_takes_over_and_hands_back_with_a_note() {
    let desk = Desk::new();
    let opened = desk.open("cat", "cat");
    let mut ana = desk.taken("cat");
    assert_eq!(desk.size("cat"), ANAS);
    let held = desk.hold("cat", "first");
    assert_eq!(
        (text(&held, "state"), text(&held, "text")),
        pair("held", HELD)
    );
    let control = desk.control("cat");
    assert_eq!(control["taken_by"], "ana");
    assert_eq!(control["text"], HELD);
    assert_eq!(control["held_bytes"], 6);
    // What cannot be held is refused.
    let taken = (409, "keyboard_taken".to_owned());
    let size = json!({ "columns": 90, "rows": 30 });
    let refused = desk.coder().post("/terminals/cat/size", &size);
    assert_eq!(refused.outcome(), taken);
    let interrupt = json!({ "signal": "INT" });
    let refused = desk.coder().post("/terminals/cat/signal", &interrupt);
    assert_eq!(refused.outcome(), taken);
    ana.press("from ana\r");
    desk.sees("cat", "from ana\nfrom ana");
    desk.hold("cat", "second");
    assert!(!desk.rows("cat").contains("first"));
    // Whoever waits for the keyboard hears of it.
    let waiting = std::thread::spawn({
        let coder = desk.coder();
        let wanted = json!({ "for": [{ "id": text(&opened, "terminal_id"), "until": "keyboard" }],
                             "timeout_ms": 60_000 });
        move || coder.post("/wait", &wanted).expect(200)
    });
    ana.say(give("I logged in, go on."));
    let said = "ana handed back: ‘I logged in, go on.’";
    assert_eq!(ana.control(false)["text"], said);
    assert_eq!(desk.size("cat"), USUAL);
    assert_eq!(desk.control("cat")["text"], said);
    let waited = waiting.join().unwrap();
    assert_eq!(waited["met"], true, "{waited}");
    assert_eq!(waited["happened"][0]["text"], said, "{waited}");
    // What was held is typed, in its order.
    desk.shows("cat", "both lines", |rows| {
        let (first, second) = (rows.find("first"), rows.rfind("second"));
        first.is_some() && first < second && rows.matches("second").count() == 2
    });
    assert_eq!(desk.control("cat")["held_bytes"], 0);
    desk.enter("cat", "third");
    desk.sees("cat", "second\nthird\nthird");
    let (taken, given) = ("terminal.taken", "terminal.given_back");
    assert_eq!(desk.turns(), [pair(given, "ana"), pair(taken, "ana")]);
    assert_eq!(
        desk.marks("cat"),
        [pair("taken", "ana took over"), pair("given_back", said)]
    );
    desk.home.assert_audit_verifies();
}

#[test]
fn what_was_held_can_be_dropped() {
    let desk = Desk::new();
    desk.open("cat", "cat");
    let mut ana = desk.taken("cat");
    desk.hold("cat", "never typed");
    ana.say(json!({ "type": "give", "drop": true }));
    assert_eq!(ana.control(false)["text"], "ana handed back.");
    desk.enter("cat", "typed");
    desk.sees("cat", "typed\ntyped");
    assert!(!desk.rows("cat").contains("never"));
    let given = audit(&desk.home, "");
    let given = { given.iter() }.find(|entry| entry["kind"] == "terminal.given_back");
    let detail = &given.expect("on record")["detail"];
    assert_eq!(
        (&detail["dropped"], &detail["held_bytes"]),
        (&json!(true), &json!(12))
    );
    // No more is held than anybody could want to be typed later.
    ana.take(100, 40);
    let much = "x".repeat(60_000);
    desk.hold("cat", &much);
    let path = "/terminals/cat/input";
    let refused = desk.coder().post(path, &json!({ "text": much }));
    assert_eq!(refused.outcome(), (400, "too_much_input".into()));
}

#[test]
fn nothing_that_is_typed_meanwhile_is_lost_or_overtaken() {
    const LINES: usize = 150;
    let desk = Desk::lenient();
    let opened = desk.open("cat", "stty -echo; echo ready; cat");
    desk.sees("cat", "ready");
    let coder = desk.coder();
    let typing = std::thread::spawn(move || {
        for n in 1..=LINES {
            let input = json!({ "text": n.to_string(), "submit": true });
            let sent = coder.post("/terminals/cat/input", &input);
            // 200 where there is a word about who had the keyboard.
            assert!([200, 202, 204].contains(&sent.status), "{sent:?}");
        }
    });
    let mut ana = Watcher::at(&desk.ana(), "cat");
    while !typing.is_finished() {
        ana.take(80, 24);
        ana.say(give(""));
        ana.control(false);
    }
    typing.join().unwrap();
    desk.sees("cat", &format!("\n{LINES}"));
    let said = desk.home.output(&text(&opened, "terminal_id"));
    let said = String::from_utf8(said).unwrap();
    let numbers: Vec<usize> = said.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(numbers, (1..=LINES).collect::<Vec<_>>());
}

#[test]
fn there_is_one_writer_at_a_time() {
    let desk = Desk::new();
    desk.open("cat", "cat");
    let ana_is = desk.ana();
    let mut ana = Watcher::at(&ana_is, "cat");
    ana.take(100, 40);
    // Another person waits like everybody else.
    let mut ben = Watcher::at(&desk.other("ben", "operator"), "cat");
    assert_eq!(ben.control(false)["taken_by"], "ana");
    ben.say(json!({ "type": "take" }));
    assert_eq!(ben.until("error")["code"], "keyboard_taken");
    ben.say(json!({ "type": "resize", "columns": 60, "rows": 20 }));
    ben.press("from ben\r");
    assert_eq!(ben.until("held")["text"], HELD);
    assert_eq!(desk.size("cat"), ANAS);
    // The same person at another window goes on there.
    let mut other = Watcher::at(&ana_is, "cat");
    other.take(90, 30);
    ana.control(false);
    assert_eq!(desk.size("cat"), (90, 30));
    drop(ana);
    other.press("from ana\r");
    desk.sees("cat", "from ana\nfrom ana");
    other.say(json!({ "type": "resize", "columns": 70, "rows": 20 }));
    eventually("their size", || desk.size("cat") == (70, 20));
    other.say(give(""));
    other.control(false);
    assert_eq!(desk.size("cat"), USUAL);
    desk.sees("cat", "from ben\nfrom ben");
    // Now ben may.
    ben.take(60, 20);
    assert_eq!(desk.control("cat")["taken_by"], "ben");
}

#[test]
fn who_may_not_operate_takes_no_keyboard() {
    let desk = Desk::new();
    desk.open("cat", "cat");
    let refused = |who: &Caller| {
        let mut watcher = Watcher::at(who, "cat");
        watcher.say(json!({ "type": "take", "columns": 60, "rows": 20 }));
        let error = watcher.until("error");
        (error["status"].clone(), text(&error, "code"))
    };
    let forbidden = (json!(403), "not_allowed".to_owned());
    assert_eq!(refused(&desk.coder()), forbidden, "not even of its own");
    assert_eq!(refused(&desk.other("otto", "approver")), forbidden);
    assert_eq!(desk.size("cat"), USUAL);
    assert!(desk.control("cat")["taken_by"].is_null());
    // Of a terminal that they may not see, there is nothing to be said.
    let stranger = desk.other("passer-by", "agent");
    let said = Watcher::try_at(&stranger, "cat", "").err();
    assert_eq!(said.expect("refused").outcome(), (404, "not_found".into()));
    assert!(desk.turns().is_empty());
}

#[test]
fn no_page_elsewhere_watches_or_types_through_a_browser() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = add(&home, "ana", "operator", json!({}));
    let owner = Caller::owner(&home);
    let body = json!({ "name": "cat", "description": "for a test", "command": "cat" });
    owner.post("/terminals", &body).expect(202);
    let ana = Caller::stranger(&server).bearing(&token);
    let own = format!("http://{}", server.address());
    let refused = |who: &Caller| {
        Watcher::try_at(who, "cat", "")
            .err()
            .map(|said| said.outcome())
    };
    let foreign = Some((403, "foreign_origin".to_owned()));
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        assert_eq!(refused(&ana.with("origin", origin)), foreign, "{origin}");
    }
    let rebound = ana.with("host", "evil.example");
    assert_eq!(refused(&rebound), foreign);
    let nobody = Caller::stranger(&server).with("origin", &own);
    assert_eq!(refused(&nobody), Some((401, "no_token".to_owned())));
    assert_eq!(refused(&ana.with("origin", &own)), None);
}

#[test]
fn a_message_that_makes_no_sense_is_an_error_and_no_end() {
    let desk = Desk::new();
    desk.open("cat", "cat");
    let mut ana = Watcher::at(&desk.ana(), "cat");
    for (message, code) in [
        (json!("what"), "invalid_body"),
        (json!({ "type": "grab" }), "invalid_body"),
        (
            json!({ "type": "take", "columns": 0, "rows": 1 }),
            "invalid_size",
        ),
        (
            json!({ "type": "take", "columns": 9000, "rows": 9000 }),
            "invalid_size",
        ),
    ] {
        ana.say(message.clone());
        assert_eq!(ana.until("error")["code"], code, "{message}");
    }
    assert!(desk.control("cat")["taken_by"].is_null());
    ana.take(100, 40);
    ana.say(json!({ "type": "resize", "columns": 1, "rows": 0 }));
    assert_eq!(ana.until("error")["code"], "invalid_size");
    // It is theirs all the same.
    ana.press("typed\r");
    desk.sees("cat", "typed\ntyped");
    assert_eq!(desk.size("cat"), ANAS);
}

#[test]
fn a_lost_connection_gives_the_keyboard_back_after_a_while() {
    let desk = Desk::with("[terminals]\nkeyboard_lost = \"300ms\"");
    desk.open("cat", "cat");
    let ana = desk.taken("cat");
    desk.hold("cat", "held");
    drop(ana);
    desk.waits_for(
        "cat",
        "The keyboard is back: ana did not type for a while, or is gone.",
    );
    assert_eq!(desk.size("cat"), USUAL);
    desk.sees("cat", "held\nheld");
    let (taken, given) = ("terminal.taken", "terminal.given_back");
    assert_eq!(desk.turns(), [pair(given, "ana"), pair(taken, "ana")]);
}

#[test]
fn whoever_comes_back_in_time_goes_on_typing() {
    // The usual times.
    let desk = Desk::new();
    desk.open("cat", "cat");
    let ana_is = desk.ana();
    let mut ana = Watcher::at(&ana_is, "cat");
    ana.take(100, 40);
    assert!(desk.control("cat")["seconds_left"].is_null());
    drop(ana);
    let left = || desk.control("cat")["seconds_left"].as_u64();
    eventually("it is about to be given back", || left().is_some());
    assert!(left().is_some_and(|left| left <= 30), "{:?}", left());
    let mut ana = Watcher::at(&ana_is, "cat");
    ana.take(90, 30);
    assert!(left().is_none());
    ana.press("back\r");
    desk.sees("cat", "back\nback");
    ana.say(give(""));
    ana.control(false);
    assert_eq!(desk.size("cat"), USUAL, "as it was before the first time");
}

#[test]
fn a_keyboard_that_nobody_touches_is_given_back() {
    let desk = Desk::with("[terminals]\nkeyboard_idle = \"2s\"");
    desk.open("cat", "cat");
    let mut ana = Watcher::at(&desk.ana(), "cat");
    let control = ana.take(100, 40);
    // Whoever has it is told how long it lasts, as that is short.
    assert!(control["seconds_left"].as_u64() <= Some(2), "{control}");
    assert!(control["seconds_left"].is_u64(), "{control}");
    let control = ana.control(false);
    assert!(control["taken_by"].is_null(), "{control}");
    assert_eq!(desk.size("cat"), USUAL);
    desk.enter("cat", "mine again");
    desk.sees("cat", "mine again\nmine again");
}

#[test]
fn whoever_types_is_told_that_it_is_hidden_and_who_else_watches() {
    let desk = Desk::new();
    let program = "stty -echo; printf 'Password: '; read -r secret; stty echo; cat";
    desk.open("login", program);
    desk.sees("login", "Password:");
    let mut ana = Watcher::at(&desk.ana(), "login");
    let watching = |ana: &mut Watcher, number: u64| loop {
        let around = ana.until("around");
        if around["watching"] == number {
            return around;
        }
    };
    assert_eq!(
        watching(&mut ana, 1)["hidden"],
        false,
        "who watches types nothing"
    );
    let other = Watcher::at(&desk.coder(), "login");
    watching(&mut ana, 2);
    ana.take(100, 40);
    assert_eq!(ana.until("around")["hidden"], true);
    ana.press("secret\r");
    assert_eq!(ana.until("around")["hidden"], false);
    drop(other);
    watching(&mut ana, 1);
}

#[test]
fn what_a_person_types_unseen_is_nowhere() {
    const SECRET: &str = "correct-horse-battery";
    let desk = Desk::new();
    let program = "stty -echo; printf 'Password: '; read -r secret; stty echo; \
                   echo; echo ${#secret} letters; cat";
    let opened = desk.open("login", program);
    desk.sees("login", "Password:");
    let mut ana = desk.taken("login");
    ana.press(SECRET);
    ana.press("\r");
    desk.sees("login", "21 letters");
    ana.press("seen\r");
    desk.sees("login", "seen\nseen");
    ana.say(give("I logged in, go on."));
    ana.control(false);
    // The recording is made when it is asked for.
    let id = text(&opened, "terminal_id");
    desk.coder()
        .get(&format!("/terminals/{id}/recording"))
        .expect(200);
    desk.close("login");
    desk.ended(&opened);
    drop(ana);
    let found = files_with(&desk.home.dir(), SECRET);
    assert_eq!(found, Vec::<String>::new());
    assert_ne!(
        files_with(&desk.home.dir(), "21 letters"),
        Vec::<String>::new()
    );
}

/// Files below a directory that hold a text.
fn files_with(dir: &Path, text: &str) -> Vec<String> {
    let mut found = vec![];
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_with(&path, text)),
            Ok(kind) if kind.is_file() => {
                let bytes = fs::read(&path).unwrap();
                let mut windows = bytes.windows(text.len());
                if windows.any(|window| window == text.as_bytes()) {
                    found.push(path.display().to_string());
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn a_server_that_is_killed_takes_the_keyboard_from_nobody_for_good() {
    let mut desk = Desk::new();
    desk.open("cat", "cat");
    let size = json!({ "columns": 70, "rows": 22 });
    desk.coder().post("/terminals/cat/size", &size).expect(204);
    let ana_is = desk.ana();
    let mut ana = Watcher::at(&ana_is, "cat");
    ana.take(100, 40);
    // Once more, as from another window.
    let mut other = Watcher::at(&ana_is, "cat");
    other.take(90, 30);
    desk.restart();
    assert_eq!(desk.size("cat"), (70, 22));
    let said = "The keyboard is back: ana had it when the server ended; what others typed \
                meanwhile is lost.";
    assert_eq!(desk.control("cat")["text"], said);
    desk.enter("cat", "mine again");
    desk.sees("cat", "mine again\nmine again");
    assert_eq!(desk.marks("cat").last(), Some(&pair("given_back", said)));
    let (taken, given) = ("terminal.taken", "terminal.given_back");
    let turns = [pair(given, "ana"), pair(taken, "ana"), pair(taken, "ana")];
    assert_eq!(desk.turns(), turns);
    // Nothing is left to be settled.
    desk.restart();
    assert_eq!(desk.control("cat")["text"], Value::Null);
    assert_eq!(desk.turns(), turns);
    let mut ana = Watcher::at(&ana_is, "cat");
    ana.take(100, 40);
    ana.say(give(""));
    ana.control(false);
    assert_eq!(desk.size("cat"), (70, 22));
    desk.home.assert_audit_verifies();
}

#[test]
fn a_note_comes_with_the_next_command_though_nothing_was_typed_meanwhile() {
    if !have(&["bash"]) {
        return;
    }
    let desk = Desk::with_bash();
    let mut ana = desk.taken("shell");
    let said = "ana handed back: ‘I logged in, go on.’";
    ana.say(give("I logged in, go on."));
    assert_eq!(ana.control(false)["text"], said);
    assert_eq!(desk.exec("shell", "true")["warnings"], json!([said]));
    assert_eq!(desk.exec("shell", "true")["warnings"], json!([]));
    // One that goes on has it at once.
    ana.take(100, 40);
    ana.say(give("I logged in, go on."));
    assert_eq!(ana.control(false)["text"], said);
    let command = json!({ "command": "sleep 1000", "wait_ms": 0 });
    let path = "/terminals/shell/exec";
    let run = desk.coder().post(path, &command).expect(202);
    assert_eq!(run["warnings"], json!([said]), "{run}");
}

#[test]
fn a_command_for_a_shell_waits_for_the_keyboard() {
    if !have(&["bash"]) {
        return;
    }
    let desk = Desk::with_bash();
    let mut ana = desk.taken("shell");
    let command = json!({ "command": "echo 4'2' then", "wait_ms": 0 });
    let path = "/terminals/shell/exec";
    let run = desk.coder().post(path, &command).expect(202);
    ana.press("echo $((40 + 1)) first\r");
    desk.sees("shell", "41 first");
    ana.say(give(""));
    let run = desk.home.ended(&text(&run, "command_id"));
    assert_eq!(run["state"], "succeeded", "{run}");
    let rows = desk.rows("shell");
    let (first, then) = (rows.find("41 first"), rows.find("42 then"));
    assert!(first.is_some() && first < then, "{rows}");
}

#[test]
fn what_was_held_for_a_program_is_no_command_that_nobody_judged() {
    if !have(&["bash"]) {
        return;
    }
    let desk = Desk::with_bash();
    desk.enter("shell", "echo it listen's'; cat");
    desk.sees("shell", "it listens");
    let mut ana = desk.taken("shell");
    desk.hold("shell", "echo 4'1' before");
    desk.hold("shell", "echo mkfs.never");
    desk.hold("shell", "echo 4'2' after");
    // The program that both were meant for ends before they are typed.
    ana.press("\u{4}");
    desk.shows("shell", "a prompt", |rows| {
        rows.trim_end().ends_with(['$', '#'])
    });
    ana.say(give(""));
    desk.sees("shell", "42 after");
    assert!(!desk.rows("shell").contains("mkfs"));
    let refused = desk.coder().get("/commands?state=blocked").expect(200);
    assert_eq!(refused["commands"][0]["command"], "echo mkfs.never");
}

#[test]
fn what_was_held_beside_a_password_is_judged_where_it_is_typed() {
    if !have(&["bash"]) {
        return;
    }
    let desk = Desk::with_bash();
    let mut ana = desk.taken("shell");
    ana.press("read -s -p secret: x\r");
    desk.shows("shell", "it asks", |rows| {
        rows.trim_end().ends_with("secret:")
    });
    desk.hold("shell", "echo mkfs.never");
    desk.hold("shell", "echo 4'2' after");
    ana.press("\r");
    desk.shows("shell", "a prompt", |rows| {
        rows.trim_end().ends_with(['$', '#'])
    });
    ana.say(give(""));
    desk.sees("shell", "42 after");
    assert!(!desk.rows("shell").contains("mkfs"));
}

#[test]
fn a_terminal_that_ends_takes_the_keyboard_with_it() {
    let desk = Desk::new();
    let opened = desk.open("short", "read line; exit 3");
    let mut ana = desk.taken("short");
    ana.press("\r");
    let exit = ana.until("exit");
    assert_eq!(exit["run"]["exit_code"], 3, "{exit}");
    assert!(matches!(ana.next(), super::watcher::Came::Over));
    desk.ended(&opened);
    // Its name is free, and so is the keyboard of the next.
    desk.open("short", "cat");
    assert!(desk.control("short")["taken_by"].is_null());
    desk.enter("short", "typed");
    desk.sees("short", "typed\ntyped");
    let token = add(&desk.home, "zoe", "operator", json!({}));
    let mut zoe = Watcher::at(&Caller::owner(&desk.home).bearing(&token), "short");
    zoe.take(100, 40);
}
