//! Terminals over the wire: real programs at a real terminal, driven by what
//! it shows.

use serde_json::{Value, json};

use crate::caller::{Caller, add};
use crate::crew::text;
use crate::support::{Home, Server, eventually, skip};

/// A server with an agent that has terminals.
struct Desk {
    home: Home,
    server: Option<Server>,
    agent: String,
}

impl Desk {
    fn new() -> Self {
        let home = Home::untouched();
        let config = home.config("preset = \"guarded\"\n");
        let server = home.serve(&["--config", &config]);
        let own = json!({ "default_sandbox": "default" });
        Self {
            agent: add(&home, "coder", "agent", own),
            server: Some(server),
            home,
        }
    }

    fn coder(&self) -> Caller {
        Caller::owner(&self.home).bearing(&self.agent)
    }

    /// Opens a terminal, in a session that all of them share.
    #[track_caller]
    fn open(&self, name: &str, command: &str) -> Value {
        let body = json!({ "name": name, "description": "for a test", "command": command,
                           "session_id": "all" });
        self.coder().post("/terminals", &body).expect(202)
    }

    #[track_caller]
    fn send(&self, name: &str, input: Value) {
        let path = format!("/terminals/{name}/input");
        self.coder().post(&path, &input).expect(204);
    }

    fn screen(&self, name: &str) -> Value {
        self.coder()
            .get(&format!("/terminals/{name}/screen"))
            .json()
    }

    fn rows(&self, name: &str) -> String {
        let screen = self.screen(name);
        let rows = screen["rows"].as_array().cloned().unwrap_or_default();
        let rows: Vec<&str> = rows.iter().filter_map(Value::as_str).collect();
        rows.join("\n")
    }

    /// Waits until the screen has a text.
    #[track_caller]
    fn sees(&self, name: &str, wanted: &str) {
        let mut last = String::new();
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(wanted, || {
                last = self.rows(name);
                last.contains(wanted)
            });
        }));
        assert!(seen.is_ok(), "no `{wanted}` in\n{last}");
    }

    fn status(&self, name: &str) -> String {
        text(
            &self.coder().get(&format!("/terminals/{name}")).json(),
            "status",
        )
    }
}

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
    for stop in ["key", "signal"] {
        desk.send("shell", json!({ "text": "sleep 1000\n" }));
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
    eventually("closed", || desk.status_of_closed(&opened) == "closed");
    desk.home.assert_audit_verifies();
}

impl Desk {
    /// By its id: a name is free once it is closed.
    fn status_of_closed(&self, terminal: &Value) -> String {
        self.status(&text(terminal, "terminal_id"))
    }
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
    // Another's terminals do not exist.
    let other = add(
        &desk.home,
        "tester",
        "agent",
        json!({ "default_sandbox": "default" }),
    );
    let other = Caller::owner(&desk.home).bearing(&other);
    assert_eq!(other.get("/terminals").json()["terminals"], json!([]));
    assert_eq!(other.get("/terminals/one").outcome().0, 404);
    assert_eq!(
        other
            .post("/terminals/one/input", &json!({ "text": "x" }))
            .outcome()
            .0,
        404
    );
    // Closed, its name is free again.
    let closed = desk.coder().ask("DELETE", "/terminals/one", &Value::Null);
    assert_eq!(closed.status, 204);
    eventually("closed", || desk.status_of_closed(&opened) == "closed");
    desk.coder().post("/terminals", &again).expect(202);
}

#[test]
fn an_editor_is_driven_by_what_it_shows() {
    let desk = Desk::new();
    if !std::path::Path::new("/usr/bin/vim").exists() {
        return skip("there is no vim");
    }
    let opened = desk.open("editor", "vim -u NONE -N notes.txt");
    desk.sees("editor", "\"notes.txt\" [New]");
    assert_eq!(desk.screen("editor")["alternate"], true);
    desk.send("editor", json!({ "text": "ifirst line\nsecond" }));
    desk.sees("editor", "second");
    desk.send(
        "editor",
        json!({ "keys": ["Esc", "Up", "Home"], "text": null }),
    );
    desk.send("editor", json!({ "text": ":wq", "submit": true }));
    eventually("closed", || desk.status_of_closed(&opened) == "closed");
    let written = std::fs::read_to_string(desk.home.base().join("notes.txt"));
    assert_eq!(written.expect("applied"), "first line\nsecond\n");
}

#[test]
fn a_password_is_typed_and_appears_nowhere() {
    let desk = Desk::new();
    let script = "stty -echo; printf 'Password: '; read secret; stty echo; echo; \
                  echo got ${#secret} letters; read more; echo $more";
    let opened = desk.open("login", script);
    desk.sees("login", "Password:");
    desk.send("login", json!({ "text": "hunter2-very-secret\n" }));
    desk.sees("login", "got 19 letters");
    desk.send("login", json!({ "text": "plain-text\n" }));
    eventually("closed", || desk.status_of_closed(&opened) == "closed");
    let audit = crate::caller::audit(&desk.home, "");
    let audit = serde_json::to_string(&audit).expect("JSON");
    assert!(audit.contains("plain-text"), "{audit}");
    assert!(!audit.contains("hunter2"), "{audit}");
    let output = desk
        .coder()
        .get(&format!("/commands/{}", text(&opened, "terminal_id")));
    assert!(!output.json().to_string().contains("hunter2"));
}

#[test]
fn terminals_outlive_the_server() {
    let mut desk = Desk::new();
    desk.open(
        "counter",
        "n=0; while read line; do n=$((n+1)); echo $n: $line; done",
    );
    desk.send("counter", json!({ "text": "before\n" }));
    desk.sees("counter", "1: before");
    if let Some(server) = desk.server.take() {
        server.kill();
    }
    let config = desk.home.config("preset = \"guarded\"\n");
    desk.server = Some(desk.home.serve(&["--config", &config]));
    desk.sees("counter", "1: before");
    desk.send("counter", json!({ "text": "after\n" }));
    desk.sees("counter", "2: after");
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
    let (code, out, told) = say(&["term", "open", "calc", "--", "PS1='% ' exec sh -i"]);
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
    assert!(
        list.starts_with("calc  ○ idle") || list.starts_with("calc  ● busy"),
        "{list}"
    );
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
