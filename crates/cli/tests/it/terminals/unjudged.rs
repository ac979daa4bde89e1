//! Ways around judging what a shell in a terminal is told to run. Each was one
//! once.

use std::fs;

use serde_json::{Value, json};

use super::shell::{approve, approved};
use super::watcher::Watcher;
use super::{Desk, have};
use crate::caller::Caller;
use crate::crew::text;
use crate::support::{Home, eventually};

/// A desk with a shell that writes directly, and asks a person about `touch`.
pub(super) fn direct(shell: &str) -> Desk {
    let desk = Desk::asked_before();
    approved(&desk, "shell", shell);
    desk
}

impl Desk {
    pub(super) fn input(&self, typed: &Value) -> (u16, String) {
        let said = self.coder().post("/terminals/shell/input", typed);
        match said.status {
            204 => (204, String::new()),
            _ => said.outcome(),
        }
    }

    #[track_caller]
    pub(super) fn refuses(&self, typed: &Value) {
        let refused = (400, "invalid_line".to_owned());
        assert_eq!(self.input(typed), refused, "{typed}");
    }

    #[track_caller]
    pub(super) fn refuses_to_run(&self, command: &str) {
        let body = json!({ "command": command });
        let said = self.coder().post("/terminals/shell/exec", &body);
        assert_eq!(said.outcome(), (400, "invalid_line".into()), "{command}");
    }

    /// Begins a command and does not wait for its end.
    #[track_caller]
    pub(super) fn begin(&self, command: &str) -> Value {
        let run = self.ask_for(command);
        let address = format!("/commands/{}", text(&run, "command_id"));
        // What is sent before it is typed is for the prompt, and not for it.
        eventually("typed", || {
            self.coder().get(&address).json()["reason"]["code"] != "queued"
        });
        run
    }

    /// The same, without waiting until it is typed.
    #[track_caller]
    pub(super) fn ask_for(&self, command: &str) -> Value {
        let body = json!({ "command": command, "wait_ms": 10 });
        let said = self.coder().post("/terminals/shell/exec", &body);
        // A quick one may be over by then.
        let status = if said.status == 200 { 200 } else { 202 };
        said.expect(status)
    }

    /// What a command came to, once it has.
    pub(super) fn outcome(&self, run: &Value) -> Value {
        let id = text(run, "command_id");
        let body = json!({ "for": [{ "id": id }] });
        self.coder().post("/wait", &body).expect(200);
        self.coder().get(&format!("/commands/{id}")).expect(200)
    }

    /// Nothing was made that nobody has judged.
    #[track_caller]
    pub(super) fn nothing_was_made(&self) {
        // What was typed before is done by then.
        assert_eq!(text(&self.exec("shell", "echo done"), "stdout"), "done\n");
        assert!(!self.home.base().join("made").exists());
    }
}

#[test]
fn keys_that_are_no_whole_line_do_not_reach_a_prompt() {
    let desk = direct("bash");
    for typed in [
        json!({ "text": "touch made" }),
        json!({ "text": "touch made\u{c}" }),
        json!({ "text": "\u{1b}[200~touch made #" }),
        json!({ "text": "$(touch made)\u{1b}\u{5}" }),
        json!({ "text": "#touch made\u{1b}1\u{1b}#" }),
        json!({ "text": "touch made\u{18}\u{5}" }),
        json!({ "text": "\u{18}(" }),
        json!({ "keys": ["Up"] }),
        json!({ "keys": ["C-r"] }),
        json!({ "keys": ["Tab"] }),
        json!({ "paste": "touch made" }),
    ] {
        desk.refuses(&typed);
    }
    // Those that enter nothing do.
    for typed in [json!({ "keys": ["C-c"] }), json!({ "submit": true })] {
        assert_eq!(desk.input(&typed), (204, String::new()), "{typed}");
    }
    // At once: the line is clear when C-c was answered.
    desk.send("shell", json!({ "keys": ["C-c"] }));
    desk.enter("shell", "echo after");
    desk.sees("shell", "\nafter");
    desk.nothing_was_made();
}

#[test]
fn what_is_typed_while_something_runs_that_does_not_read_is_refused() {
    let desk = direct("bash");
    let gate = desk.gate();
    let begun = desk.begin("cat gate");
    eventually("busy", || desk.status("shell") == "busy");
    desk.refuses(&json!({ "text": "touch made #" }));
    fs::write(gate, "").unwrap();
    assert_eq!(text(&desk.outcome(&begun), "state"), "succeeded");
    desk.enter("shell", "ls");
    desk.nothing_was_made();
}

#[test]
fn what_a_program_leaves_unread_is_cleared_before_the_next_line() {
    let desk = direct("bash");
    let begun = desk.begin("head -c 2");
    eventually("reads", || desk.status("shell") == "idle");
    // It takes a line, and bash the rest, which nobody has ended.
    desk.send("shell", json!({ "text": "a\ntouch made;" }));
    desk.outcome(&begun);
    desk.enter("shell", "echo clear");
    desk.sees("shell", "\nclear");
    desk.nothing_was_made();
}

#[test]
fn the_shell_itself_is_answered_with_nothing_that_it_could_run() {
    let desk = direct("bash");
    for (read, typed) in [
        ("read x", json!({ "text": "foo\ntouch made\n" })),
        ("read -n1 x", json!({ "text": "xtouch made" })),
        ("read -s x", json!({ "text": "touch made\n" })),
        ("read -n5 x", json!({ "text": "echo touch made\n" })),
        ("read -n1 x", json!({ "text": "/bin/ls\n" })),
    ] {
        let begun = desk.begin(read);
        eventually("reads", || desk.status("shell") == "idle");
        desk.refuses(&typed);
        desk.send("shell", json!({ "text": "true\n" }));
        assert_eq!(text(&desk.outcome(&begun), "state"), "succeeded", "{read}");
    }
    desk.nothing_was_made();
}

#[test]
fn a_shell_is_not_given_away() {
    let desk = direct("bash");
    fs::write(desk.home.base().join("lines"), "touch made\n").unwrap();
    for line in [
        "exec < lines",
        "exec <<< 'touch made'",
        "exec 2>/dev/null",
        "command exec 0< lines",
        "true && builtin exec 3< lines",
    ] {
        desk.refuses_to_run(line);
        desk.refuses(&json!({ "text": line, "submit": true }));
    }
    desk.nothing_was_made();
}

#[test]
fn a_command_runs_where_it_was_approved() {
    let desk = direct("bash");
    for dir in ["a/build", "b/build"] {
        fs::create_dir_all(desk.home.base().join(dir)).unwrap();
    }
    desk.exec("shell", "cd a");
    let asked = desk.begin("rm -r build");
    assert_eq!(text(&asked, "state"), "waiting");
    desk.exec("shell", "cd ../b");
    approve(&desk, &asked);
    let came_to = desk.outcome(&asked);
    assert_eq!(text(&came_to, "state"), "failed");
    let why = text(&came_to, "stderr");
    assert!(why.contains("the shell has changed directory"), "{came_to}");
    for dir in ["a/build", "b/build"] {
        assert!(desk.home.base().join(dir).exists(), "{dir}");
    }
}

#[test]
fn a_shell_is_where_the_kernel_says_and_not_where_it_says() {
    let mut home = Home::untouched();
    home.set("PATH", super::SYSTEM);
    let rules = "[[rule]]\nname = \"secrets\"\nreject = { paths = [\"**/secret/**\"] }\n\
                 because = \"They are secret.\"\n";
    fs::write(home.dir().join("rules.toml"), rules).unwrap();
    let desk = Desk::at(home, "preset = \"guarded\"\n", json!({}));
    let secret = desk.home.base().join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("key"), "hush").unwrap();
    desk.open("shell", "bash");
    desk.exec("shell", "cd secret");
    let read = json!({ "command": "cat key" });
    for lie in ["true", "PWD=/"] {
        desk.exec("shell", lie);
        let said = desk.coder().post("/terminals/shell/exec", &read).json();
        assert_eq!(text(&said, "state"), "blocked", "{lie}: {said}");
    }
}

#[test]
fn a_plain_shell_is_typed_at_as_it_reads() {
    let desk = direct("sh");
    // The kernel would cut it.
    let long = format!("rm -r a{}build", "/".repeat(4200));
    desk.refuses_to_run(&long);
    // Not a prompt, but the rest of something.
    desk.enter("shell", "cat <<ls");
    desk.sees("shell", ">");
    desk.refuses(&json!({ "text": "echo '$(touch made)'\n" }));
    desk.send("shell", json!({ "keys": ["C-c"] }));
    // What a program tells the terminal does not make a shell edit lines.
    desk.enter("shell", "printf '\\033[?2004h'");
    desk.refuses(&json!({ "text": "# $(touch made)\nls\n" }));
    desk.nothing_was_made();
}

#[test]
fn an_echo_that_is_off_hides_no_command() {
    let desk = Desk::lenient();
    desk.open("shell", "sh");
    desk.exec("shell", "stty -echo");
    let said = desk.input(&json!({ "text": "sudo ls\n" }));
    assert_eq!(said, (400, "blocked".into()));
}

#[test]
fn keys_that_were_held_are_looked_at_where_they_are_typed() {
    let desk = direct("bash");
    let mut ana = Watcher::at(&desk.other("ana", "operator"), "shell");
    ana.take(80, 24);
    ana.press("cat\r");
    desk.sees("shell", "cat\n");
    let hold = |typed: Value| {
        let said = desk.coder().post("/terminals/shell/input", &typed);
        said.expect(202);
    };
    hold(json!({ "text": "touch made" }));
    hold(json!({ "submit": true }));
    hold(json!({ "text": "touch made", "keys": ["End", "Enter"] }));
    ana.press("\u{4}");
    ana.say(json!({ "type": "give" }));
    eventually("given back", || {
        desk.control_of("shell")["taken_by"].is_null()
    });
    desk.nothing_was_made();
}

impl Desk {
    pub(super) fn control_of(&self, name: &str) -> Value {
        self.told(name)["control"].clone()
    }
}

#[test]
fn a_pause_holds_lines_too() {
    let desk = Desk::lenient();
    desk.open("shell", "bash");
    desk.exec("shell", "true");
    let owner = Caller::owner(&desk.home);
    let coder = json!({ "principal": "coder" });
    owner.post("/pause", &coder).expect(200);
    let line = json!({ "text": "touch made", "submit": true });
    let held = desk.coder().post("/terminals/shell/input", &line);
    assert_eq!(held.status, 202, "{held:?}");
    assert!(!desk.home.base().join("made").exists());
    owner.post("/resume", &coder).expect(200);
    eventually("made", || desk.home.base().join("made").exists());
}

#[test]
fn of_several_lines_all_that_they_say_is_told() {
    let desk = Desk::lenient();
    desk.open("shell", "bash");
    let said = desk.exec("shell", "echo one\necho two\nfalse");
    assert_eq!(text(&said, "stdout"), "one\ntwo\n", "{said}");
    assert_eq!(said["exit_code"], 1);
}

#[test]
fn a_program_that_waits_for_more_than_its_terminal_is_typed_at() {
    if !have(&["python3"]) {
        return;
    }
    let desk = Desk::lenient();
    let program = "import select, sys\n\
                   waits = select.epoll()\n\
                   waits.register(0, select.EPOLLIN)\n\
                   waits.poll()\n\
                   print('got', sys.stdin.readline())\n";
    fs::write(desk.home.base().join("asks.py"), program).unwrap();
    desk.open("shell", "bash");
    let begun = desk.begin("python3 asks.py");
    desk.send("shell", json!({ "text": "yes\n" }));
    desk.sees("shell", "got yes");
    assert_eq!(text(&desk.outcome(&begun), "state"), "succeeded");
}

#[test]
fn what_only_a_built_in_rule_allows_is_asked_about_where_a_terminal_writes() {
    let desk = Desk::asked_at(Home::untouched());
    approved(&desk, "shell", "bash");
    let victim = desk.home.base().join("victim");
    fs::create_dir(&victim).unwrap();
    for line in [
        // The prompt of tar for the next volume starts a shell.
        r"{ printf '!\n'; echo 'rmdir victim'; } | tar tMf /dev/null",
        "ls",
        "echo $(ls)",
        "cd `pwd`",
        "cd victim && ls",
        "PAGER= man man",
        "echo $((a))",
        "[[ a -eq 0 ]]",
        "echo ${HOME:c:1}",
        "LC_ALL=zh_CN.gbk",
        "setsid head -c 8 > /dev/null",
        "trap 'read -n 8 x' WINCH",
    ] {
        let asked = desk.ask_for(line);
        assert_eq!(text(&asked, "state"), "waiting", "{line}: {asked}");
        let typed = json!({ "text": line, "submit": true });
        let said = desk.coder().post("/terminals/shell/input", &typed);
        assert_eq!(text(&said.expect(202), "state"), "asked", "{line}");
    }
    let asked = desk.ask_for("ls -l");
    let why = asked["reason"]["text"].to_string() + &desk.question_of(&asked);
    assert!(why.contains("writes directly"), "{why}");
    // Going elsewhere runs nothing.
    let moved = desk.exec("shell", "cd victim");
    assert_eq!(text(&moved, "state"), "succeeded", "{moved}");
    assert!(victim.exists());
    // As a command of its own it needs nobody.
    let body = json!({ "command": "ls", "session_id": "all" });
    let read = desk.coder().post("/commands", &body).expect(200);
    assert_eq!(text(&read, "stdout"), "victim\n", "{read}");
}

impl Desk {
    fn question_of(&self, asked: &Value) -> String {
        let path = format!("/approvals/{}", text(asked, "approval_id"));
        Caller::owner(&self.home).get(&path).expect(200).to_string()
    }
}

#[test]
fn a_shell_reads_no_secret_file_whoever_has_allowed_the_shell() {
    for direct in [false, true] {
        let desk = match direct {
            true => Desk::asked_before(),
            false => Desk::new(),
        };
        desk.home.put("base/.env", "TOKEN=hunter2\n");
        match direct {
            true => approved(&desk, "shell", "bash"),
            false => drop(desk.open("shell", "bash")),
        }
        let run = desk.begin("grep -r TOKEN .");
        if text(&run, "state") == "waiting" {
            approve(&desk, &run);
        }
        let run = desk.outcome(&run);
        assert!(!run.to_string().contains("hunter2"), "{run}");
        assert!(text(&run, "stdout").contains("denied"), "{run}");
    }
}
