//! A shell at a terminal, names, and what is said when something is wrong.

use serde_json::{Value, json};

use super::Desk;
use crate::crew::text;
use crate::support::{Home, eventually};

#[test]
fn a_shell_is_typed_at_and_says_what_it_shows() {
    let desk = Desk::new();
    let opened = desk.open("shell", "PS1='> ' exec sh -i");
    assert_eq!(text(&opened, "name"), "shell");
    assert!(
        opened["pid"].as_u64().is_some_and(|pid| pid > 1),
        "{opened}"
    );
    desk.sees("shell", ">");
    eventually("idle", || desk.status("shell") == "idle");
    desk.send(
        "shell",
        json!({ "text": "tty; stty size; echo $TERM", "submit": true }),
    );
    desk.sees("shell", "/dev/pts/0\n24 80\nxterm-256color\n>");
    // It keeps what it was told.
    desk.send("shell", json!({ "text": "cd /tmp; X=kept\n" }));
    desk.send("shell", json!({ "text": "echo $X in $PWD\n" }));
    desk.sees("shell", "kept in /tmp");
    // It has another size when it is told so.
    let size = json!({ "columns": 100, "rows": 30 });
    desk.coder()
        .post("/terminals/shell/size", &size)
        .expect(204);
    desk.send("shell", json!({ "text": "stty size\n" }));
    desk.sees("shell", "30 100");
    // A key, and a signal, for what is in front.
    for (stop, sum) in [("key", 1), ("signal", 2)] {
        // What it says first, it says when it is in front.
        let line = format!("sh -c 'echo in front $(({sum} + 40)); exec sleep 1000'");
        desk.enter("shell", &line);
        desk.sees("shell", &format!("in front {}\n", sum + 40));
        eventually("busy", || desk.status("shell") == "busy");
        match stop {
            "key" => desk.send("shell", json!({ "keys": ["C-c"] })),
            _ => {
                let signal = json!({ "signal": "SIGINT" });
                desk.coder()
                    .post("/terminals/shell/signal", &signal)
                    .expect(204);
            }
        }
        eventually("idle", || desk.status("shell") == "idle");
    }
    desk.send("shell", json!({ "eof": true }));
    desk.ended(&opened);
    desk.home.assert_audit_verifies();
}

#[test]
fn a_key_that_interrupts_comes_before_what_nobody_reads() {
    let desk = Desk::lenient();
    let opened = desk.open("busy", "sleep 1000");
    eventually("its program runs", || desk.status("busy") == "busy");
    // Whole lines: a terminal passes over what is too much of one.
    let lines = json!({ "text": "nobody reads this\n".repeat(3000) });
    let mut sent = 0;
    while desk.coder().post("/terminals/busy/input", &lines).status == 204 {
        sent += 1;
        assert!(sent < 100, "somebody reads");
    }
    desk.send("busy", json!({ "keys": ["C-c"] }));
    desk.ended(&opened);
    let path = format!("/commands/{}", text(&opened, "terminal_id"));
    let run = desk.coder().get(&path).expect(200);
    assert_eq!(run["signal"], 2, "{run}");
}

#[test]
fn a_key_that_interrupts_drops_what_was_for_the_program() {
    let desk = Desk::new();
    desk.open_shell("shell");
    desk.enter("shell", "sh -c 'echo in $((6 * 7)); exec sleep 1000'");
    desk.sees("shell", "in 42");
    desk.send("shell", json!({ "text": "echo left", "keys": ["C-c"] }));
    eventually("idle", || desk.status("shell") == "idle");
    desk.enter("shell", "echo on $((6 * 8))");
    desk.sees("shell", "on 48");
    assert!(
        !desk.rows("shell").contains("\nleft"),
        "{}",
        desk.rows("shell")
    );
}

#[test]
fn a_name_is_free_when_the_terminal_has_ended_whatever_its_changes_wait_for() {
    let mut home = Home::untouched();
    home.set("PATH", super::SYSTEM);
    let desk = Desk::at(home, "", json!({}));
    let opened = desk.open("editor", "echo new > kept; echo done; exec cat");
    desk.sees("editor", "done");
    desk.send("editor", json!({ "eof": true }));
    let id = text(&opened, "terminal_id");
    eventually("its changes wait", || {
        let run = desk.coder().get(&format!("/commands/{id}")).expect(200);
        text(&run, "state") == "waiting" && !run["changes"].is_null()
    });
    let list = desk.coder().get("/terminals").expect(200);
    assert_eq!(list["terminals"], json!([]));
    desk.open("editor", "cat");
}

#[test]
fn names_are_wanted_once_and_what_is_wrong_is_said() {
    let desk = Desk::new();
    let refused = |body: Value| desk.coder().post("/terminals", &body).outcome();
    let all = json!({ "name": "a", "description": "b", "command": "cat" });
    let without = |name: &str, value: &str| {
        let mut body = all.clone();
        body[name] = value.into();
        body
    };
    let invalid = |code: &str| (400, code.to_owned());
    assert_eq!(refused(without("name", " ")), invalid("missing_name"));
    assert_eq!(refused(without("name", "a\nb")), invalid("invalid_name"));
    assert_eq!(
        refused(without("description", "")),
        invalid("missing_description")
    );
    assert_eq!(refused(without("command", "")), invalid("empty_command"));
    let opened = desk.open("one", "cat");
    let again = json!({ "name": "one", "description": "b", "command": "cat", "session_id": "all" });
    assert_eq!(refused(again.clone()), invalid("already_exists"));
    assert_eq!(
        desk.coder().get("/terminals/two").outcome(),
        (404, "not_found".into())
    );
    let wrong = json!({ "keys": ["Nonsense"] });
    let said = desk.coder().post("/terminals/one/input", &wrong).outcome();
    assert_eq!(said, invalid("invalid_key_name"));
    let list = desk.coder().get("/terminals").json();
    assert_eq!(
        list["terminals"].as_array().map(Vec::len),
        Some(1),
        "{list}"
    );
    // Closed, its name is free again.
    desk.close("one");
    desk.ended(&opened);
    desk.coder().post("/terminals", &again).expect(202);
}

#[test]
fn the_command_line_opens_types_shows_and_closes() {
    let desk = Desk::new();
    let say = |words: &[&str]| {
        let done = desk.home.weighlock(words).output().expect("ran");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    assert!(say(&["term"]).1.starts_with("No terminal is open."));
    let open = "term open calc -d Calculates --size 91x17 --env".split(' ');
    let open: Vec<&str> = open.chain(["PS1=% ", "--", "exec sh -i"]).collect();
    let (code, out, told) = say(&open);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{told}");
    assert!(told.starts_with("● calc   r_"), "{told}");
    let shown = |wanted: &str| {
        eventually(wanted, || {
            say(&["term", "screen", "calc"]).1.contains(wanted)
        });
    };
    shown("%");
    let sent = say(&["term", "send", "calc", "echo $((6 * 7))", "--enter"]);
    assert_eq!(sent, (Some(0), String::new(), String::new()));
    shown("\n42\n");
    let (_, list, _) = say(&["term", "list"]);
    let (headings, list) = list.split_once('\n').unwrap();
    let words: Vec<&str> = headings.split("  ").map(str::trim).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    assert_eq!(
        words,
        [
            "name", "state", "open for", "owner", "sandbox", "command", "what for"
        ]
    );
    assert!(
        list.starts_with("calc  ○ idle") || list.starts_with("calc  ● busy"),
        "{list}"
    );
    assert!(list.ends_with("exec sh -i  Calculates\n"), "{list}");
    say(&["term", "send", "calc", "stty size", "--enter"]);
    shown("\n17 91\n");
    assert_eq!(say(&["term", "size", "calc", "70x20"]).0, Some(0));
    let told = "stty size; sh -c 'trap \"echo got\" INT; echo up; read x'";
    say(&["term", "send", "calc", told, "--enter"]);
    shown("\n20 70\nup\n");
    let (code, _, told) = say(&["term", "signal", "calc", "NONE"]);
    assert_eq!(code, Some(1));
    assert!(told.contains("NONE"), "{told}");
    assert_eq!(say(&["term", "signal", "calc", "INT"]).0, Some(0));
    shown("\ngot\n");
    assert_eq!(say(&["term", "size", "calc", "large"]).0, Some(2));
    let (code, _, told) = say(&["term", "open", "calc", "--", "cat"]);
    assert_eq!(code, Some(1));
    assert!(told.contains("already exists"), "{told}");
    let (code, _, told) = say(&["term", "send", "nothing", "x"]);
    assert_eq!(code, Some(1));
    assert!(told.contains("no terminal `nothing`"), "{told}");
    assert_eq!(say(&["term", "close", "calc"]).0, Some(0));
    eventually("closed", || {
        say(&["term"]).1.starts_with("No terminal is open.")
    });
}

#[test]
fn one_in_the_foreground_is_waited_for_and_closed() {
    let desk = Desk::lenient();
    let open = |command: &str, more: Value| {
        let mut body = json!({ "name": "front", "description": "for a test", "command": command,
                               "session_id": "all", "foreground": true, "env": desk.env });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        desk.coder().post("/terminals", &body).expect(200)
    };
    let ended = open("printf '10%%\\r99%%\\n'; tty; exit 4", json!({}));
    assert_eq!(text(&ended, "stdout"), "99%\n/dev/pts/0\n");
    assert_eq!(ended["exit_code"], 4);
    // Its name is free again, also when time was up before its end.
    let late = open("echo begun; sleep 1000", json!({ "timeout_ms": 500 }));
    assert_eq!(text(&late, "stdout"), "begun\n");
    assert_eq!(text(&late, "state"), "killed");
    assert_eq!(
        desk.coder().get("/terminals").json()["terminals"],
        json!([])
    );
}
