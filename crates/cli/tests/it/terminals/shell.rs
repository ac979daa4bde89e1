//! Commands in the shell of a terminal.

use serde_json::{Value, json};

use super::watcher::Watcher;
use super::{Desk, have};
use crate::caller::{Caller, audit};
use crate::crew::text;
use crate::support::eventually;

impl Desk {
    pub(super) fn exec(&self, name: &str, command: &str) -> Value {
        let path = format!("/terminals/{name}/exec");
        let said = self.coder().post(&path, &json!({ "command": command }));
        said.expect(200)
    }
}

fn said(run: &Value) -> (String, i64) {
    (
        text(run, "stdout"),
        run["exit_code"].as_i64().unwrap_or(-99),
    )
}

#[test]
fn a_command_in_a_shell_has_its_own_output_and_exit_status() {
    let desk = Desk::lenient();
    for shell in ["bash", "sh", "zsh"] {
        if !have(&[shell]) {
            continue;
        }
        let opened = desk.open(shell, shell);
        assert_eq!(opened["shell"], true, "{opened}");
        assert_eq!(
            said(&desk.exec(shell, "echo one; echo two")),
            ("one\ntwo\n".into(), 0)
        );
        assert_eq!(said(&desk.exec(shell, "(exit 7)")), (String::new(), 7));
        // What it is told stays.
        desk.exec(shell, "cd /usr; export WL_KEPT=yes; mine=too");
        let kept = desk.exec(shell, "echo $PWD $WL_KEPT $mine; sh -c 'echo $WL_KEPT'");
        assert_eq!(said(&kept), ("/usr yes too\nyes\n".into(), 0), "{shell}");
        assert_eq!(kept["cwd_after"], "/usr");
        // Colours are not text, and a progress bar is what it came to.
        let drawn = desk.exec(shell, r"printf '\033[31mred\033[0m\n10%%\r99%%\n'");
        assert_eq!(text(&drawn, "stdout"), "red\n99%\n", "{shell}");
        // The first character that no line end follows belongs to it too.
        assert_eq!(
            text(&desk.exec(shell, "printf x"), "stdout"),
            "x",
            "{shell}"
        );
    }
    desk.home.assert_audit_verifies();
}

#[test]
fn a_command_in_a_shell_is_shown_within_the_walls_of_its_terminal() {
    let desk = Desk::lenient();
    let opened = desk.open("shell", "sh");
    let run = desk.exec("shell", "echo hi");
    let shown = || desk.home.call(&["show", &text(&run, "command_id")]).out;
    let within = format!(
        ", within the walls of terminal shell ({})",
        text(&opened, "short_id")
    );
    let page = shown();
    assert!(page.contains(&format!("{within}\n")), "{page}");
    // How strong they were is known once it has ended, and what held.
    desk.close("shell");
    desk.ended(&opened);
    let ended = desk.home.show(&text(&opened, "terminal_id"));
    let level = text(&ended["sandbox"], "level");
    let page = shown();
    assert!(page.contains(&format!("{within}: {level}\n")), "{page}");
    assert!(page.contains(" files "), "{page}");
}

#[test]
fn several_lines_are_one_command_where_the_shell_can_tell() {
    let desk = Desk::lenient();
    desk.open("one", "bash");
    let loop_of_three = "for n in 1 2 3\ndo\n\techo $n\ndone";
    assert_eq!(
        said(&desk.exec("one", loop_of_three)),
        ("1\n2\n3\n".into(), 0)
    );
    desk.open("two", "sh");
    let path = "/terminals/two/exec";
    let refused = desk
        .coder()
        .post(path, &json!({ "command": loop_of_three }));
    assert_eq!(refused.outcome(), (400, "invalid_line".into()));
    // Nor is a key a command.
    let key = desk.coder().post(path, &json!({ "command": "ls\u{3}" }));
    assert_eq!(key.outcome(), (400, "invalid_line".into()));
    let nothing = desk.coder().post(path, &json!({ "command": " " }));
    assert_eq!(nothing.outcome(), (400, "empty_command".into()));
}

#[test]
fn marks_that_a_program_makes_up_end_no_command() {
    let desk = Desk::lenient();
    desk.open("shell", "bash");
    let forged = r"printf '\033]133;D;0;wl=00000000000000000000000000000000\007'; \
                   printf '\033]133;D;0\007'; printf '\033]133;C;cmd=x\007'; echo real; (exit 5)";
    let forged = forged
        .replace("\\\n", "")
        .replace("                   ", "");
    assert_eq!(said(&desk.exec("shell", &forged)), ("real\n".into(), 5));
}

#[test]
fn only_a_shell_that_tells_can_be_asked() {
    let desk = Desk::lenient();
    let opened = desk.open("cat", "cat");
    assert_eq!(opened["shell"], false);
    let refused = desk
        .coder()
        .post("/terminals/cat/exec", &json!({ "command": "ls" }));
    assert_eq!(refused.outcome(), (400, "no_prompt".into()));
}

#[test]
fn a_command_that_takes_long_goes_on_and_is_found_by_its_id() {
    let desk = Desk::lenient();
    desk.open("shell", "bash");
    let body = json!({ "command": "read line; echo got $line", "wait_ms": 50 });
    let begun = desk
        .coder()
        .post("/terminals/shell/exec", &body)
        .expect(202);
    assert_eq!(text(&begun, "state"), "running");
    // It reads, and so it is typed at.
    desk.coder()
        .post(
            "/wait",
            &json!({ "for": [{ "id": "shell", "until": "input" }] }),
        )
        .expect(200);
    desk.enter("shell", "hello");
    let id = text(&begun, "command_id");
    let ended = json!({ "for": [{ "id": id }] });
    assert_eq!(desk.coder().post("/wait", &ended).expect(200)["met"], true);
    let run = desk.coder().get(&format!("/commands/{id}")).expect(200);
    assert_eq!(text(&run, "state"), "succeeded");
    assert!(text(&run, "stdout").ends_with("got hello\n"), "{run}");
}

#[test]
fn a_command_ends_with_the_shell_that_it_ends() {
    let desk = Desk::lenient();
    let opened = desk.open("shell", "bash");
    let run = desk.exec("shell", "exit 3");
    assert_eq!(text(&run, "state"), "failed", "{run}");
    let id = text(&opened, "terminal_id");
    eventually("closed", || desk.status(&id) == "closed");
    let terminal = desk.coder().get(&format!("/terminals/{id}")).json();
    assert_eq!(terminal["exit_code"], 3);
}

#[test]
fn what_no_rule_allows_is_not_typed() {
    let desk = Desk::new();
    desk.open("shell", "bash");
    let refused = desk.exec("shell", "rm -rf /");
    assert_eq!(text(&refused, "state"), "blocked");
    // Nor as a line that is typed.
    let line = json!({ "text": "rm -rf /", "submit": true });
    let typed = desk.coder().post("/terminals/shell/input", &line);
    assert_eq!(typed.outcome(), (400, "blocked".into()));
    assert_eq!(
        text(&desk.exec("shell", "echo still here"), "stdout"),
        "still here\n"
    );
    assert!(
        !desk.rows("shell").contains("rm -rf"),
        "{}",
        desk.rows("shell")
    );
    let kinds = audit(&desk.home, "");
    assert_eq!(
        kinds
            .iter()
            .filter(|entry| entry["kind"] == "run.blocked")
            .count(),
        2
    );
}

#[test]
fn a_person_is_asked_about_a_command_in_a_terminal_that_writes_directly() {
    let desk = Desk::asked_before();
    approved_shell(&desk);
    let body = json!({ "command": "touch made", "wait_ms": 10 });
    let asked = desk
        .coder()
        .post("/terminals/shell/exec", &body)
        .expect(202);
    assert_eq!(text(&asked, "state"), "waiting", "{asked}");
    assert!(!desk.home.base().join("made").exists());
    approve(&desk, &asked);
    let ended = json!({ "for": [{ "id": text(&asked, "command_id") }] });
    desk.coder().post("/wait", &ended).expect(200);
    assert!(desk.home.base().join("made").exists());
    let index = desk
        .coder()
        .get("/terminals/shell/recording/index")
        .expect(200);
    let marks: Vec<String> = { index["marks"].as_array().unwrap().iter() }
        .map(|mark| text(mark, "text"))
        .collect();
    assert!(
        marks.iter().any(|mark| mark.starts_with("approved by ")),
        "{marks:?}"
    );
    assert!(
        marks
            .iter()
            .any(|mark| mark.starts_with("$ touch made (approved by ")),
        "{marks:?}"
    );
    // A line that is typed is asked about as well.
    let line = json!({ "text": "touch other", "submit": true });
    let typed = desk
        .coder()
        .post("/terminals/shell/input", &line)
        .expect(202);
    assert_eq!(text(&typed, "state"), "asked");
    let run = desk
        .coder()
        .get(&format!("/commands/{}", text(&typed, "command_id")))
        .json();
    let owner = Caller::owner(&desk.home);
    let reject = format!("/commands/{}/reject", text(&run, "command_id"));
    owner.post(&reject, &json!({ "reason": "no" })).expect(200);
    assert_eq!(
        text(&desk.exec("shell", "ls other 2>&1; true"), "state"),
        "succeeded"
    );
    assert!(!desk.home.base().join("other").exists());
}

/// Opens a shell that a person has to allow, and does.
fn approved_shell(desk: &Desk) {
    approved(desk, "shell", "bash");
}

/// The same with another one.
pub(super) fn approved(desk: &Desk, name: &str, shell: &str) {
    let body = json!({ "name": name, "description": "for a test", "command": shell,
                       "session_id": "all" });
    let opened = desk.coder().post("/terminals", &body).expect(202);
    approve(desk, &opened);
    eventually("idle", || desk.status(name) == "idle");
}

pub(super) fn approve(desk: &Desk, asked: &Value) {
    let id = ["command_id", "terminal_id"]
        .iter()
        .find_map(|name| asked[*name].as_str());
    let owner = Caller::owner(&desk.home);
    let path = format!("/commands/{}/approve", id.expect("a run"));
    owner.post(&path, &Value::Null).expect(200);
}

#[test]
fn a_shell_tells_where_it_is_after_a_crash_of_the_server_too() {
    let mut desk = Desk::lenient();
    desk.open("shell", "bash");
    desk.exec("shell", "cd /usr");
    desk.restart();
    assert_eq!(
        said(&desk.exec("shell", "pwd; (exit 4)")),
        ("/usr\n".into(), 4)
    );
}

#[test]
fn a_crash_of_the_server_loses_no_command_in_a_terminal() {
    let mut desk = Desk::asked_before();
    approved_shell(&desk);
    let exec = |desk: &Desk, command: &str| {
        let body = json!({ "command": command, "wait_ms": 10 });
        desk.coder()
            .post("/terminals/shell/exec", &body)
            .expect(202)
    };
    let waiting = exec(&desk, "touch made");
    desk.restart();
    // What waited for an answer is typed once there is one.
    approve(&desk, &waiting);
    let ended = |desk: &Desk, run: &Value| {
        let id = text(run, "command_id");
        desk.coder()
            .post("/wait", &json!({ "for": [{ "id": id }] }))
            .expect(200);
        desk.coder().get(&format!("/commands/{id}")).json()
    };
    assert_eq!(text(&ended(&desk, &waiting), "state"), "succeeded");
    assert!(desk.home.base().join("made").exists());
    // What ran has an end that says what is known.
    let running = exec(&desk, "sleep 1000");
    eventually("busy", || desk.status("shell") == "busy");
    desk.restart();
    let lost = ended(&desk, &running);
    assert_eq!(text(&lost, "state"), "failed");
    assert!(
        text(&lost, "stderr").contains("the server ended while it ran"),
        "{lost}"
    );
    desk.home.assert_audit_verifies();
}

#[test]
fn what_the_shell_takes_for_no_command_ends_all_the_same() {
    let desk = Desk::lenient();
    for shell in ["bash", "zsh", "sh"] {
        if !have(&[shell]) {
            continue;
        }
        desk.open(shell, shell);
        let mistake = desk.exec(shell, "echo )");
        assert_ne!(mistake["exit_code"], 0, "{shell}: {mistake}");
        let unfinished = desk.exec(shell, "echo 'unclosed");
        assert!(
            text(&unfinished, "stderr").contains("waits for the rest"),
            "{unfinished}"
        );
        assert_eq!(
            said(&desk.exec(shell, "echo on")),
            ("on\n".into(), 0),
            "{shell}"
        );
    }
    assert_eq!(desk.exec("bash", "# only a comment")["exit_code"], 0);
    assert_eq!(said(&desk.exec("bash", "echo on")), ("on\n".into(), 0));
}

#[test]
fn what_was_on_the_line_or_before_it_is_not_run() {
    let desk = Desk::lenient();
    let ana = desk.other("ana", "operator");
    for shell in ["bash", "zsh", "sh"] {
        if !have(&[shell]) {
            continue;
        }
        desk.open(shell, shell);
        desk.exec(shell, "true");
        // A person leaves something there.
        let mut ana = Watcher::at(&ana, shell);
        ana.take(80, 24);
        ana.press("touch half; ");
        desk.sees(shell, "touch half;");
        ana.say(json!({ "type": "give" }));
        assert_eq!(
            said(&desk.exec(shell, "echo own")),
            ("own\n".into(), 0),
            "{shell}"
        );
        assert!(!desk.home.base().join("half").exists(), "{shell}");
        // History is not what a line means.
        desk.exec(shell, "echo '\";touch again;\"'");
        desk.exec(shell, "echo \"!!:1\"");
        assert!(!desk.home.base().join("again").exists(), "{shell}");
    }
}

#[test]
fn no_way_of_ending_a_line_is_overlooked() {
    let desk = Desk::new();
    desk.open("shell", "bash");
    desk.exec("shell", "true");
    for typed in [
        json!({ "text": "rm -rf /\r" }),
        json!({ "text": ":\nrm -rf /\n" }),
        json!({ "text": "rm -rf / \u{1}\n" }),
        json!({ "paste": "rm -rf /\n" }),
    ] {
        let said = desk.coder().post("/terminals/shell/input", &typed);
        assert_eq!(said.status, 400, "{typed}");
    }
}

#[test]
fn a_line_is_one_however_it_is_sent() {
    let desk = Desk::asked_before();
    approved_shell(&desk);
    let made = desk.home.base().join("made");
    let asked = json!({ "text": "touch made", "keys": ["Enter"] });
    let said = desk.coder().post("/terminals/shell/input", &asked);
    assert_eq!(
        (said.status, text(&said.json(), "state")),
        (202, "asked".into())
    );
    for typed in [
        json!({ "text": "touch made\u{f}" }),
        json!({ "text": "touch made", "keys": ["C-m"] }),
        json!({ "text": "touch made", "keys": ["C-j"] }),
        json!({ "text": "touch made", "keys": ["C-o"] }),
        json!({ "text": "touch made", "keys": ["M-C-e", "Enter"] }),
        json!({ "text": "touch made;", "eof": true }),
    ] {
        let said = desk.coder().post("/terminals/shell/input", &typed);
        assert_eq!(said.outcome(), (400, "invalid_line".into()), "{typed}");
    }
    // Neither does the shell take what it was sent while something runs.
    let body = json!({ "command": "sleep 1000", "wait_ms": 10 });
    desk.coder().post("/terminals/shell/exec", &body);
    eventually("busy", || desk.status("shell") == "busy");
    for typed in [
        json!({ "text": "touch made\n" }),
        json!({ "keys": ["Enter"] }),
    ] {
        let said = desk.coder().post("/terminals/shell/input", &typed);
        assert_eq!(said.outcome(), (400, "invalid_line".into()), "{typed}");
    }
    desk.send("shell", json!({ "keys": ["C-c"] }));
    assert!(!made.exists());
}

#[test]
fn several_lines_and_tabs_are_typed_as_they_were_judged() {
    let desk = Desk::lenient();
    desk.open("shell", "bash");
    desk.exec("shell", "touch v1 v2");
    // Line by line, `head` would take the second, and bash run the third.
    let eaten = "head -c 9\ncat <<'E'\nrm v1\nE\n";
    let said = desk
        .coder()
        .post("/terminals/shell/input", &json!({ "text": eaten }));
    assert_eq!(said.status, 204);
    desk.send("shell", json!({ "text": "12345678\n" }));
    desk.sees("shell", "rm v1\n");
    let completed = "echo no\t-such\n";
    eventually("a prompt", || desk.status("shell") == "idle");
    desk.send("shell", json!({ "text": completed }));
    desk.sees("shell", "no -such");
    assert!(desk.home.base().join("v1").exists());
}

#[test]
fn a_command_in_a_terminal_can_be_stopped() {
    let desk = Desk::lenient();
    desk.open("shell", "bash");
    let body = json!({ "command": "sleep 1000", "wait_ms": 10 });
    let begun = desk
        .coder()
        .post("/terminals/shell/exec", &body)
        .expect(202);
    eventually("busy", || desk.status("shell") == "busy");
    let stop = format!("/commands/{}/stop", text(&begun, "command_id"));
    assert!(desk.coder().post(&stop, &json!({ "grace_ms": 100 })).status < 300);
    assert_eq!(said(&desk.exec("shell", "echo on")), ("on\n".into(), 0));
}

#[test]
fn where_the_shell_is_after_a_command_is_told_with_it() {
    let desk = Desk::lenient();
    desk.open("shell", "bash");
    for dir in ["/usr", "/", "/tmp", "/usr/bin"] {
        assert_eq!(desk.exec("shell", &format!("cd {dir}"))["cwd_after"], dir);
    }
}

#[test]
fn a_command_that_waits_for_its_turn_and_is_stopped_is_never_typed() {
    let desk = Desk::lenient();
    desk.open("shell", "bash");
    desk.exec("shell", "true");
    let exec = |command: &str| {
        let body = json!({ "command": command, "wait_ms": 10 });
        desk.coder()
            .post("/terminals/shell/exec", &body)
            .expect(202)
    };
    let stop = |run: &Value| {
        let path = format!("/commands/{}/stop", text(run, "command_id"));
        assert!(desk.coder().post(&path, &json!({ "grace_ms": 100 })).status < 300);
    };
    let first = exec("sleep 1000");
    eventually("busy", || desk.status("shell") == "busy");
    let second = exec("touch queued");
    // It has not begun, and says why.
    assert_eq!(second["reason"]["code"], "queued", "{second}");
    assert_eq!(second["started_at"], Value::Null, "{second}");
    stop(&second);
    // It is the one that was meant.
    assert_eq!(desk.status("shell"), "busy");
    let path = format!("/commands/{}", text(&first, "command_id"));
    let first = desk.coder().get(&path).expect(200);
    assert_eq!(text(&first, "state"), "running");
    assert_eq!(first["reason"], Value::Null, "{first}");
    stop(&first);
    assert_eq!(
        said(&desk.exec("shell", "ls queued 2>/dev/null; echo on")),
        ("on\n".into(), 0)
    );
}

#[test]
fn commands_whose_turn_had_not_come_when_the_terminal_was_closed_have_not_run() {
    let desk = Desk::lenient();
    let opened = desk.open("shell", "bash");
    desk.exec("shell", "true");
    let exec = |command: &str| {
        let body = json!({ "command": command, "wait_ms": 10 });
        let path = "/terminals/shell/exec";
        desk.coder().post(path, &body).expect(202)
    };
    exec("bash");
    eventually("busy", || desk.rows("shell").matches('$').count() > 1);
    let queued = ["touch made", "echo two", "echo three"].map(exec);
    desk.close("shell");
    desk.ended(&opened);
    for run in queued {
        let run = desk.home.ended(&text(&run, "command_id"));
        assert_eq!(run["state"], "withdrawn", "{run}");
        assert_eq!(
            text(&run["reason"], "text"),
            "The terminal was closed before its turn came. Nothing was run."
        );
        assert_eq!(run["exit_code"], Value::Null, "{run}");
        assert_eq!(run["started_at"], Value::Null, "{run}");
    }
    assert!(!desk.home.base().join("made").exists());
    desk.home.assert_audit_verifies();
}

#[test]
fn a_command_whose_turn_had_not_come_when_the_server_died_has_not_run() {
    let mut desk = Desk::lenient();
    desk.open("shell", "bash");
    let gate = desk.gate();
    let first = desk.begin("cat gate");
    let second = desk.ask_for("touch made");
    assert_eq!(second["reason"]["code"], "queued", "{second}");
    desk.restart();
    let why = |run: &Value| text(&desk.outcome(run), "stderr");
    assert!(why(&first).contains("the server ended while it ran"));
    assert!(why(&second).contains("nothing of it was run"));
    std::fs::write(gate, "").unwrap();
    assert_eq!(text(&desk.exec("shell", "echo on"), "stdout"), "on\n");
    assert!(!desk.home.base().join("made").exists());
}
