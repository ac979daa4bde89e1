//! Ways to have a shell in a terminal read something else than the line that
//! was judged: what comes before it, in the middle of it, or takes a part of
//! it. Each was one once.

use std::fs;

use serde_json::{Value, json};

use super::shell::approve;
use super::unjudged::direct;
use super::watcher::Watcher;
use super::{Desk, have};
use crate::crew::text;
use crate::support::{eventually, not_as_this_user, skip};

impl Desk {
    fn signal(&self, name: &str, signal: &str) {
        let path = format!("/terminals/{name}/signal");
        let said = self.coder().post(&path, &json!({ "signal": signal }));
        said.expect(204);
    }

    fn resize(&self, name: &str, columns: u16) {
        let size = json!({ "columns": columns, "rows": 24 });
        let path = format!("/terminals/{name}/size");
        self.coder().post(&path, &size).expect(204);
    }

    /// Runs what a person has to allow, and does.
    #[track_caller]
    fn exec_approved(&self, command: &str) -> Value {
        let asked = self.begin(command);
        assert_eq!(text(&asked, "state"), "waiting", "{asked}");
        approve(self, &asked);
        self.outcome(&asked)
    }

    /// Types a line whatever becomes of it.
    fn try_line(&self, line: &str) {
        self.input(&json!({ "text": line, "submit": true }));
    }
}

#[test]
fn a_prompt_that_is_drawn_again_is_no_new_one() {
    for shell in ["bash", "zsh", "sh"] {
        if !have(&[shell]) {
            continue;
        }
        let desk = direct(shell);
        let again: [&dyn Fn(); 2] = [&|| desk.resize("shell", 79), &|| {
            desk.signal("shell", "INT")
        }];
        for draw_again in again {
            desk.signal("shell", "STOP");
            desk.try_line("cat <<ls");
            draw_again();
            desk.signal("shell", "CONT");
            desk.try_line("echo '$(touch made)'\nls");
            desk.try_line("ls");
            desk.input(&json!({ "keys": ["C-c"] }));
            desk.nothing_was_made();
        }
    }
}

#[test]
fn a_shell_that_is_stopped_is_not_typed_at() {
    let desk = direct("bash");
    desk.signal("shell", "STOP");
    desk.refuses(&json!({ "text": "echo one", "submit": true }));
    desk.signal("shell", "CONT");
    assert_eq!(text(&desk.exec("shell", "echo two"), "stdout"), "two\n");
    assert!(!desk.rows("shell").contains("one"));
}

#[test]
fn a_command_waits_until_a_shell_that_is_stopped_goes_on() {
    let desk = direct("bash");
    desk.signal("shell", "STOP");
    let begun = desk.ask_for("echo here");
    assert_eq!(begun["reason"]["code"], "queued", "{begun}");
    desk.signal("shell", "CONT");
    assert_eq!(text(&desk.outcome(&begun), "stdout"), "here\n");
}

#[test]
fn a_signal_drops_what_is_unread_as_its_key_does() {
    let desk = Desk::lenient();
    desk.open("deaf", "trap : INT; echo on; sleep 1000; cat");
    desk.sees("deaf", "on");
    desk.send("deaf", json!({ "text": "left\n" }));
    desk.sees("deaf", "left");
    desk.signal("deaf", "INT");
    eventually("reads", || desk.status("deaf") == "idle");
    desk.send("deaf", json!({ "text": "read\n" }));
    // Once as it is typed, and once by `cat`.
    desk.shows("deaf", "read twice", |rows| {
        rows.matches("read").count() == 2
    });
    assert_eq!(desk.rows("deaf").matches("left").count(), 1);
}

#[test]
fn answers_of_the_terminal_do_not_get_into_a_line() {
    let desk = direct("bash");
    let asks = "while :; do printf '\\033[6n'; done &";
    desk.exec_approved(&format!("touch mark; {asks}"));
    for count in 100..115 {
        let said = desk.exec("shell", &format!("echo {count}"));
        // Those that nobody reads are shown while it runs.
        let out = text(&said, "stdout");
        assert!(out.contains(&format!("{count}\n")), "{said}");
        assert_eq!(said["exit_code"], 0, "{said}");
    }
}

#[test]
fn a_program_that_asks_and_does_not_listen_holds_up_nobody() {
    let desk = Desk::lenient();
    desk.open("other", "cat");
    desk.open("asks", "yes \"$(printf '\\033[6n')\"");
    eventually("full", || desk.rows("asks").contains('\n'));
    // Meanwhile others are served: a terminal, and a run.
    for count in 0..5 {
        let line = format!("line {count}");
        desk.send("other", json!({ "text": format!("{line}\n") }));
        // Once as it is typed, and once by `cat`.
        desk.shows("other", &line, |rows| rows.matches(&line).count() == 2);
        let (_, run) = desk.home.ask(&format!("echo {count}"), json!({}));
        assert_eq!(run["stdout"], format!("{count}\n"), "{run}");
    }
    assert_ne!(desk.status("asks"), "closed", "it still asks");
    desk.send("asks", json!({ "keys": ["C-c"] }));
    let opened = desk.told("asks");
    desk.ended(&opened);
}

#[test]
fn a_shell_is_found_when_pids_begin_anew() {
    let desk = direct("bash");
    let first = desk.told("shell")["pid"].clone();
    if !rustix::process::geteuid().is_root() {
        return not_as_this_user("only root can have pids begin anew");
    }
    // The next processes have smaller numbers than the shell.
    if fs::write("/proc/sys/kernel/ns_last_pid", "400").is_err() {
        return skip("this kernel does not let pids begin anew");
    }
    fs::create_dir(desk.home.base().join("in")).unwrap();
    desk.exec_approved("touch mark; (cd / && sleep 1000 &)");
    assert_eq!(desk.told("shell")["pid"], first);
    let moved = desk.exec("shell", "cd in");
    assert_eq!(text(&moved, "state"), "succeeded", "{moved}");
    let here = desk.exec("shell", "pwd");
    let dir = desk.home.base().join("in").display().to_string();
    assert_eq!(text(&here, "stdout").trim(), dir, "{here}");
    // What is asked about is judged there.
    let asked = desk.begin("touch made");
    let asked = desk.outcome_of_asked(&asked);
    assert_eq!(text(&asked, "cwd"), dir, "{asked}");
}

impl Desk {
    fn outcome_of_asked(&self, asked: &Value) -> Value {
        let id = text(asked, "command_id");
        self.coder().get(&format!("/commands/{id}")).expect(200)
    }
}

#[test]
fn what_is_left_on_a_line_is_dropped_where_the_terminal_would_keep_it() {
    let desk = direct("sh");
    desk.exec_approved("stty noflsh");
    let begun = desk.begin("head -c 2");
    eventually("reads", || desk.status("shell") == "idle");
    desk.send("shell", json!({ "text": "a\ntouch made;" }));
    desk.outcome(&begun);
    desk.nothing_was_made();
}

#[test]
fn a_terminal_that_takes_letters_for_keys_gets_no_line_with_them() {
    for shell in ["bash", "sh"] {
        let desk = direct(shell);
        for (set, line) in [
            ("stty intr Z", "# Ztouch made"),
            ("stty intr ^C kill Z", "# Ztouch made"),
            ("stty kill ^U start '#'", "# touch made"),
        ] {
            desk.exec_approved(set);
            desk.refuses(&json!({ "text": line, "submit": true }));
        }
        desk.exec_approved("stty start ^Q istrip");
        // Its second byte is a `;` with seven bits. Who edits lines takes eight.
        desk.try_line("echo \u{bb}touch made");
        desk.nothing_was_made();
    }
}

#[test]
fn a_line_is_not_typed_while_somebody_else_reads_the_terminal() {
    let desk = direct("bash");
    desk.exec_approved("touch mark; setsid head -c 8 > /dev/null &");
    // Until it reads, the shell does, and takes a remark for what it is.
    let line = json!({ "text": "# touch made", "submit": true });
    let refused = (400, "invalid_line".into());
    eventually("it is refused", || desk.input(&line) == refused);
    assert!(!desk.home.base().join("made").exists());
}

#[test]
fn a_program_does_not_make_a_shell_take_pastes() {
    let desk = direct("bash");
    // What readline thinks of a dumb terminal.
    desk.exec("shell", "TERM=dumb");
    desk.exec("shell", "printf '\\033[?2004h'");
    desk.exec("shell", "# x; touch made");
    desk.nothing_was_made();
    // And one that edits no lines.
    desk.exec_approved("set +o emacs");
    desk.exec("shell", "printf '\\033[?2004h'");
    desk.exec("shell", "# x; touch made");
    desk.refuses(&json!({ "text": "ls\nls\n" }));
    desk.nothing_was_made();
}

#[test]
fn a_line_is_judged_as_its_shell_reads_it() {
    let asked = |desk: &Desk, line: &str| {
        let begun = desk.ask_for(line);
        assert_eq!(text(&begun, "state"), "waiting", "{line}: {begun}");
    };
    let desk = direct("sh");
    // `&` and `>` there, and the first goes on.
    asked(&desk, ": $(head -c 8 < /dev/tty &> /dev/null)");
    if !have(&["zsh"]) {
        return;
    }
    let desk = direct("zsh");
    fs::write(desk.home.base().join("text"), "of a pager\n").unwrap();
    for line in ["# x; touch made", "ls # x; touch made", "< text"] {
        desk.exec("shell", line);
    }
    asked(&desk, "aliases=(ls 'touch made')");
    desk.nothing_was_made();
}

#[test]
fn a_terminal_has_no_other_way_in() {
    let desk = direct("bash");
    let id = text(&desk.told("shell"), "terminal_id");
    let path = format!("/agent/terminal/commands/{id}/stdin");
    let said = desk.coder().send("POST", &path, b"touch made\r");
    assert_eq!(said.outcome(), (400, "invalid_line".into()));
    desk.nothing_was_made();
}

#[test]
fn a_key_that_interrupts_does_not_wait_behind_what_was_held() {
    let desk = direct("bash");
    let mut ana = Watcher::at(&desk.other("ana", "operator"), "shell");
    ana.take(80, 24);
    ana.press("sleep 1000\r");
    eventually("busy", || desk.status("shell") == "busy");
    let held = json!({ "text": "echo held", "submit": true });
    desk.coder()
        .post("/terminals/shell/input", &held)
        .expect(202);
    ana.say(json!({ "type": "give" }));
    eventually("given back", || {
        desk.control_of("shell")["taken_by"].is_null()
    });
    desk.send("shell", json!({ "keys": ["C-c"] }));
    assert_eq!(text(&desk.exec("shell", "echo on"), "stdout"), "on\n");
    assert!(!desk.rows("shell").contains("held"), "dropped");
}
