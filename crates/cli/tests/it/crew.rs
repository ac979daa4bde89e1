//! People and agents around the inbox of a real server.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::caller::{Caller, Said, add_here};
use crate::desk::Records;
use crate::support::{Home, Server};

/// Everybody whom a test may need.
const PEOPLE: &[(&str, &str)] = &[
    ("coder", "agent"),
    ("linter", "agent"),
    ("ana", "approver"),
    ("ben", "approver"),
    ("olga", "operator"),
];

/// A server, and everybody's token.
pub(crate) struct Crew {
    pub(crate) home: Home,
    server: Option<Server>,
    config: String,
    tokens: HashMap<&'static str, String>,
}

impl Crew {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// With settings of its own.
    pub(crate) fn with(settings: &str) -> Self {
        Self::at(Home::strict(), settings)
    }

    /// With a door over TCP.
    pub(crate) fn on_tcp() -> Self {
        let mut crew = Self::new();
        crew.kill();
        crew.server = Some(
            crew.home
                .serve(&["--config", &crew.config, "--listen", "127.0.0.1:0"]),
        );
        crew
    }

    /// At a home that was made ready.
    pub(crate) fn at(home: Home, settings: &str) -> Self {
        let config = home.config(&format!("{settings}\n[environment]\nlogin_path = false\n"));
        let server = home.serve(&["--config", &config]);
        let one = |&(name, role): &(&'static str, &str)| {
            let token = add_here(&home, name, role);
            (name, token)
        };
        let tokens = PEOPLE.iter().map(one).collect();
        Self {
            home,
            server: Some(server),
            config,
            tokens,
        }
    }

    /// Ends the server as a crash would, if it is still there, and starts
    /// another.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.server = Some(self.home.serve(&["--config", &self.config]));
    }

    pub(crate) fn kill(&mut self) {
        if let Some(server) = self.server.take() {
            server.kill();
        }
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().expect("a server")
    }

    pub(crate) fn token(&self, who: &str) -> &str {
        &self.tokens[who]
    }

    /// Somebody by name, or the owner.
    pub(crate) fn call(&self, who: &str) -> Caller {
        let owner = Caller::owner(&self.home);
        match who {
            "owner" => owner,
            who => owner.bearing(&self.tokens[who]),
        }
    }

    /// Asks for a command.
    pub(crate) fn ask(&self, who: &str, command: &str, wishes: Value) -> Said {
        let mut body = json!({ "command": command });
        for (name, wish) in wishes.as_object().into_iter().flatten() {
            body[name] = wish.clone();
        }
        self.call(who).post("/commands", &body)
    }

    /// Asks for something that a person must allow; returns the run.
    #[track_caller]
    pub(crate) fn waiting(&self, who: &str, command: &str, wishes: Value) -> Value {
        let run = self.ask(who, command, wishes).expect(202);
        assert_eq!(run["state"], "waiting", "{run}");
        run
    }

    /// The question that a run waits for, as a person sees it.
    #[track_caller]
    pub(crate) fn card(&self, run: &Value) -> Value {
        let id = text(run, "approval_id");
        self.call("owner")
            .get(&format!("/approvals/{id}"))
            .expect(200)
    }

    /// Decides about what was shown.
    pub(crate) fn decide(&self, who: &str, card: &Value, decision: Value) -> Said {
        let mut body = json!({ "fingerprint": card["fingerprint"] });
        for (name, value) in decision.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let path = format!("/approvals/{}/decision", text(card, "approval_id"));
        self.call(who).post(&path, &body)
    }

    pub(crate) fn approve(&self, who: &str, card: &Value) -> Said {
        self.decide(who, card, json!({ "kind": "approve_once" }))
    }

    /// What somebody does with a run.
    pub(crate) fn with_run(&self, who: &str, run: &Value, what: &str, body: Value) -> Said {
        let path = format!("/commands/{}/{what}", text(run, "command_id"));
        self.call(who).post(&path, &body)
    }

    /// A run as it is now.
    #[track_caller]
    pub(crate) fn run(&self, run: &Value) -> Value {
        let path = format!("/commands/{}", text(run, "command_id"));
        self.call("owner").get(&path).expect(200)
    }

    /// A run once it has ended.
    #[track_caller]
    pub(crate) fn ended(&self, run: &Value) -> Value {
        let path = format!("/commands/{}?wait_ms=20000", text(run, "command_id"));
        let run = self.call("owner").get(&path).expect(200);
        let goes_on = ["running", "waiting", "held"].map(|state| json!(state));
        assert!(!goes_on.contains(&run["state"]), "{run}");
        run
    }

    /// Everything that waits.
    #[track_caller]
    pub(crate) fn inbox(&self) -> Vec<Value> {
        let list = self.call("owner").get("/approvals?limit=500").expect(200);
        list["approvals"].as_array().expect("a list").clone()
    }

    /// What the audit says became of a run, in order.
    #[track_caller]
    pub(crate) fn told(&self, run: &Value) -> Vec<String> {
        let query = format!("run={}", text(run, "command_id"));
        let entries = crate::caller::audit(&self.home, &query);
        let kinds = entries.iter().map(|entry| text(entry, "kind"));
        kinds.filter(|kind| kind.starts_with("run.")).collect()
    }

    /// Everything on record agrees, and nobody has tampered with it.
    #[track_caller]
    pub(crate) fn assert_agrees(&self) {
        Records::read(&self.home.state()).check();
        self.home.assert_audit_verifies();
    }
}

/// A text of an answer.
#[track_caller]
pub(crate) fn text(value: &Value, name: &str) -> String {
    let text = value[name].as_str();
    text.unwrap_or_else(|| panic!("no {name}: {value}"))
        .to_owned()
}

/// Some of an answer, to be compared as a whole.
pub(crate) fn only(value: &Value, names: &[&str]) -> Value {
    let some = names
        .iter()
        .map(|&name| (name.to_owned(), value[name].clone()));
    Value::Object(some.collect())
}
