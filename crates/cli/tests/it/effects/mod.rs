//! What runs change on a copy, through the real binary: nothing real changes
//! before somebody says so, exactly what was shown is applied, and all of it
//! can be taken back.

mod answers;
mod attacks;
mod crashes;
mod disk;
mod drafts;
mod promises;
mod rules;
mod secret_files;
mod session;
mod table;
mod tree;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::caller::{Caller, Said, add};
use crate::crew::text;
use crate::support::{Home, SYSTEM, Server};

/// A server whose runs are tried on copies, an agent and people.
struct Place {
    home: Home,
    server: Option<Server>,
    config: String,
    agent: String,
    other: String,
    ana: String,
}

impl Place {
    /// With the settings that everybody has.
    fn new() -> Self {
        Self::with("")
    }

    /// With settings.
    fn with(settings: &str) -> Self {
        Self::at(Home::untouched(), settings)
    }

    fn guarded() -> Self {
        Self::with("preset = \"guarded\"\n")
    }

    /// With rules for everybody.
    fn ruled(preset: &str, rules: &str) -> Self {
        let home = Home::untouched();
        let path = home.put("rules.toml", rules);
        let settings = format!(
            "preset = \"{preset}\"\n[policy]\nrules = \"{}\"\n",
            path.display()
        );
        Self::at(home, &settings)
    }

    /// At a home that was made ready.
    fn at(home: Home, settings: &str) -> Self {
        Self::at_path(home, settings, SYSTEM)
    }

    /// The same with other tools.
    fn at_path(mut home: Home, settings: &str, path: &str) -> Self {
        home.set("PATH", path);
        let config = home.config(&format!("{settings}\n[environment]\nlogin_path = false\n"));
        let server = home.serve(&["--config", &config]);
        let own = || json!({ "default_sandbox": "default" });
        Self {
            agent: add(&home, "coder", "agent", own()),
            other: add(&home, "linter", "agent", own()),
            ana: add(&home, "ana", "approver", own()),
            server: Some(server),
            config,
            home,
        }
    }

    /// Ends the server as a crash would.
    fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.kill();
        }
    }

    /// The same if it is still there, and starts another.
    fn restart(&mut self) {
        self.kill();
        self.server = Some(self.home.serve(&["--config", &self.config]));
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("a server")
    }

    fn coder(&self) -> Caller {
        Caller::owner(&self.home).bearing(&self.agent)
    }

    fn linter(&self) -> Caller {
        Caller::owner(&self.home).bearing(&self.other)
    }

    fn ana(&self) -> Caller {
        Caller::owner(&self.home).bearing(&self.ana)
    }

    fn owner(&self) -> Caller {
        Caller::owner(&self.home)
    }

    /// The agent asks for a command, in a session of its own if none is named.
    #[track_caller]
    fn ask(&self, command: &str, wishes: Value) -> Said {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let session = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut body = json!({ "command": command, "session_id": format!("own {session}") });
        for (name, wish) in wishes.as_object().into_iter().flatten() {
            body[name] = wish.clone();
        }
        self.coder().post("/commands", &body)
    }

    /// A command whose changes a person is asked about; returns the run.
    #[track_caller]
    fn held(&self, command: &str, wishes: Value) -> Value {
        let run = self.ask(command, wishes).expect(202);
        assert_eq!(run["state"], "waiting", "{command}: {run}");
        assert_eq!(run["changes"]["state"], "held", "{command}: {run}");
        run
    }

    /// A command about which nobody is asked.
    #[track_caller]
    fn unasked(&self, command: &str, wishes: Value) -> Value {
        let run = self.ask(command, wishes).expect(200);
        assert_eq!(run["approval_id"], Value::Null, "{command}: {run}");
        run
    }

    /// A run as it is now.
    #[track_caller]
    fn run(&self, run: &Value) -> Value {
        let path = format!("/commands/{}", text(run, "command_id"));
        self.owner().get(&path).expect(200)
    }

    /// A run once it is in this state.
    #[track_caller]
    fn until(&self, run: &Value, state: &str) -> Value {
        crate::support::eventually(state, || self.run(run)["state"] == state);
        self.run(run)
    }

    /// The question about a run.
    #[track_caller]
    fn card(&self, run: &Value) -> Value {
        let path = format!("/approvals/{}", text(run, "approval_id"));
        self.ana().get(&path).expect(200)
    }

    /// Ana's answer to what she has seen.
    #[track_caller]
    fn decide(&self, card: &Value, kind: &str) -> Said {
        let path = format!("/approvals/{}/decision", text(card, "approval_id"));
        let body = json!({ "kind": kind, "fingerprint": card["fingerprint"] });
        self.ana().post(&path, &body)
    }

    /// Ana looks at the question about a run and applies its changes.
    #[track_caller]
    fn apply(&self, run: &Value) -> Value {
        let card = self.card(run);
        self.decide(&card, "apply_effect").expect(200);
        let run = self.run(run);
        assert_eq!(run["changes"]["state"], "applied", "{run}");
        run
    }

    /// Ana does something with a run.
    #[track_caller]
    fn with_run(&self, run: &Value, what: &str, body: &Value) -> Said {
        let path = format!("/commands/{}/{what}", text(run, "command_id"));
        self.ana().post(&path, body)
    }

    /// Ana looks at something of a run.
    #[track_caller]
    fn of_run(&self, run: &Value, what: &str) -> Said {
        let path = format!("/commands/{}/{what}", text(run, "command_id"));
        self.ana().get(&path)
    }

    /// The agent writes the last that a run reads.
    #[track_caller]
    fn feed(&self, run: &Value, last: &str) {
        let id = text(run, "command_id");
        let address = format!("/agent/terminal/commands/{id}/stdin?last=true");
        let said = self.coder().send("POST", &address, last.as_bytes());
        assert_eq!(said.status, 204, "{:?}", said.json());
    }

    /// The changes of a run.
    #[track_caller]
    fn changes(&self, run: &Value) -> Value {
        self.of_run(run, "changes").expect(200)
    }

    /// What the audit says of a run's changes, in order.
    #[track_caller]
    fn told(&self, run: &Value) -> Vec<String> {
        let query = format!("run={}", text(run, "command_id"));
        let entries = crate::caller::audit(&self.home, &query);
        let kinds = entries.iter().map(|entry| text(entry, "kind"));
        let mut kinds: Vec<_> = kinds.filter(|kind| kind.starts_with("changes.")).collect();
        kinds.sort();
        kinds
    }

    fn inbox(&self) -> Vec<Value> {
        let list = self.owner().get("/approvals?limit=500").expect(200);
        list["approvals"].as_array().expect("a list").clone()
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.home.base().join(path)).unwrap_or_else(|_| "(none)".into())
    }

    fn write(&self, path: &str, text: &str) {
        self.home.put(&format!("base/{path}"), text);
    }

    fn tree(&self) -> tree::Tree {
        tree::Tree::of(&self.home.base())
    }
}

/// Runs a script directly, as the same person.
fn sh(dir: &std::path::Path, home: &std::path::Path, script: &str) -> std::process::Output {
    Command::new("bash")
        .args(["-c", script])
        .env_clear()
        .env("PATH", SYSTEM)
        .env("HOME", home)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
