//! Terminals over the wire: real programs at a real terminal, driven by what
//! it shows.

mod attach;
mod keyboard;
mod many;
mod news;
mod others;
mod programs;
mod recorded;
mod shell;
mod slipped;
mod streams;
mod survive;
mod tasks;
mod typing;
mod unjudged;
mod waits;
pub(crate) mod watcher;

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::caller::{Caller, add_here};
use crate::crew::text;
use crate::support::{Home, Server, eventually, have};

/// Where programs are that everyone has.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin";

/// A server with an agent that has terminals.
struct Desk {
    home: Home,
    server: Option<Server>,
    config: String,
    agent: String,
    /// What every terminal finds in its environment.
    env: Value,
}

impl Desk {
    fn new() -> Self {
        let mut home = Home::untouched();
        home.set("PATH", SYSTEM);
        Self::at(home, "preset = \"guarded\"\n", json!({}))
    }

    /// One whose programs have sockets in `/tmp`.
    fn elsewhere() -> Self {
        let mut home = Home::untouched().live_elsewhere();
        home.set("PATH", SYSTEM);
        Self::at(home, "preset = \"guarded\"\n", json!({}))
    }

    /// One at which whatever is asked for runs on the files themselves, and its
    /// processes can be found from outside.
    fn lenient() -> Self {
        let home = Home::new();
        let mark = json!({ "WL_MARK": home.mark });
        // A login shell would be another child of the server.
        Self::at(home, "[environment]\nlogin_path = false\n", mark)
    }

    fn at(home: Home, settings: &str, env: Value) -> Self {
        let config = home.config(settings);
        let server = home.serve(&["--config", &config]);
        Self {
            agent: add_here(&home, "coder", "agent"),
            server: Some(server),
            config,
            env,
            home,
        }
    }

    /// One whose agent is asked about before anything runs, and then writes
    /// directly. A person has allowed what only reads, at terminals too.
    fn asked_before() -> Self {
        let home = Home::untouched();
        let rules = "[[rule]]\nname = \"reads\"\nauto = { effects_only = [\"read\"] }\n\
                     because = \"A person allows it.\"\n";
        std::fs::write(home.dir().join("rules.toml"), rules).unwrap();
        Self::asked_at(home)
    }

    /// The same without rules of a person.
    fn asked_at(mut home: Home) -> Self {
        home.set("PATH", SYSTEM);
        let settings = "preset = \"guarded\"\n[effects]\nreview = \"before\"\n";
        Self::at(home, settings, json!({}))
    }

    /// A file that whoever reads it waits for.
    fn gate(&self) -> std::path::PathBuf {
        let gate = self.home.base().join("gate");
        let made = std::process::Command::new("mkfifo").arg(&gate).status();
        assert!(made.is_ok_and(|made| made.success()));
        let open = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(&gate, open).unwrap();
        gate
    }

    /// Ends the server as a crash would, and starts another.
    fn restart(&mut self) {
        self.kill();
        self.serve();
    }

    fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.kill();
        }
    }

    fn serve(&mut self) {
        self.server = Some(self.home.serve(&["--config", &self.config]));
    }

    fn coder(&self) -> Caller {
        Caller::owner(&self.home).bearing(&self.agent)
    }

    /// Somebody else, by name.
    fn other(&self, name: &str, role: &str) -> Caller {
        let token = add_here(&self.home, name, role);
        Caller::owner(&self.home).bearing(&token)
    }

    /// A terminal as its owner is told of it.
    fn told(&self, name: &str) -> Value {
        self.coder().get(&format!("/terminals/{name}")).expect(200)
    }

    /// Its columns and rows.
    fn size(&self, name: &str) -> (u64, u64) {
        let told = self.told(name);
        let number = |name: &str| told[name].as_u64().expect("a number");
        (number("columns"), number("rows"))
    }

    /// Opens a terminal, in a session that all of them share.
    #[track_caller]
    fn open(&self, name: &str, command: &str) -> Value {
        let body = json!({ "name": name, "description": "for a test", "command": command,
                           "session_id": "all", "env": self.env });
        let opened = self.coder().post("/terminals", &body).expect(202);
        assert_ne!(text(&opened, "status"), "waiting", "{opened}");
        opened
    }

    /// Opens a shell and waits until it can be typed at.
    #[track_caller]
    fn open_shell(&self, name: &str) -> Value {
        let opened = self.open(name, "PS1='> ' exec sh -i");
        self.sees(name, ">");
        opened
    }

    #[track_caller]
    fn send(&self, name: &str, input: Value) {
        let path = format!("/terminals/{name}/input");
        let said = self.coder().post(&path, &input);
        // With something to be told, or without.
        assert!(matches!(said.status, 200 | 204), "{input}: {said:?}");
    }

    /// Types a line.
    #[track_caller]
    fn enter(&self, name: &str, line: &str) {
        self.send(name, json!({ "text": line, "submit": true }));
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
        self.shows(name, wanted, |rows| rows.contains(wanted));
    }

    /// Waits until the screen is as it should be.
    #[track_caller]
    fn shows(&self, name: &str, what: &str, right: impl Fn(&str) -> bool) {
        let mut last = String::new();
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(what, || {
                last = self.rows(name);
                right(&last)
            });
        }));
        assert!(seen.is_ok(), "no `{what}` in\n{last}");
    }

    fn status(&self, name: &str) -> String {
        text(
            &self.coder().get(&format!("/terminals/{name}")).json(),
            "status",
        )
    }

    #[track_caller]
    fn close(&self, name: &str) {
        let path = format!("/terminals/{name}");
        let said = self.coder().ask("DELETE", &path, &Value::Null);
        said.expect(204);
    }

    /// Waits for the end of a terminal. By its id: a name is free once it is
    /// closed.
    fn ended(&self, terminal: &Value) {
        let id = text(terminal, "terminal_id");
        eventually("closed", || self.status(&id) == "closed");
    }
}
