//! People are told elsewhere of what waits: once, in time, and by nothing that
//! decides.

mod attacks;
mod failures;
mod forms;
pub(crate) mod receiver;
mod told;

use serde_json::{Value, json};

use self::receiver::Receiver;
use crate::caller::{Caller, add};
use crate::support::{Home, Server};

/// Nobody waits for long in a test.
const QUICK: &str = "[notify]\ncollapse = \"1ms\"\nretry = \"20ms\"\n";

/// A server, two agents, and whoever is told of what they ask.
struct Desk {
    home: Home,
    settings: String,
    server: Option<Server>,
    tokens: Vec<(String, String)>,
}

impl Desk {
    fn new() -> Self {
        Self::with(QUICK)
    }

    fn with(settings: &str) -> Self {
        let mut desk = Self {
            home: Home::strict(),
            settings: settings.to_owned(),
            server: None,
            tokens: vec![],
        };
        desk.serve();
        for name in ["coder", "linter"] {
            let token = add(
                &desk.home,
                name,
                "agent",
                json!({ "default_sandbox": "default" }),
            );
            desk.tokens.push((name.to_owned(), token));
        }
        desk
    }

    fn serve(&mut self) {
        let config = self.home.config(&self.settings);
        let options = ["--config", &config, "--listen", "127.0.0.1:0"];
        self.server = Some(self.home.serve(&options));
    }

    /// The server dies without a word, and another takes its place.
    fn kill_and_serve(&mut self) {
        self.server.take().unwrap().kill();
        self.serve();
    }

    fn owner(&self) -> Caller {
        Caller::owner(&self.home)
    }

    fn caller(&self, name: &str) -> Caller {
        let token = self.tokens.iter().find(|(known, _)| known == name);
        let stranger = Caller::stranger(self.server.as_ref().unwrap());
        stranger.bearing(&token.unwrap().1)
    }

    /// Tells a receiver of what waits, at once; returns what it made.
    fn tell(&self, receiver: &Receiver, wishes: Value) -> Value {
        let mut wish = json!({ "url": receiver.url, "delay_seconds": 0 });
        for (name, value) in wishes.as_object().into_iter().flatten() {
            wish[name] = value.clone();
        }
        self.owner().post("/webhooks", &wish).expect(201)
    }

    /// An agent asks for something that a person must answer; returns the
    /// approval.
    fn ask(&self, name: &str, command: &str) -> String {
        let run = self
            .caller(name)
            .post("/commands", &json!({ "command": command }));
        let run = run.expect(202);
        assert_eq!(run["state"], "waiting", "{run}");
        run["approval_id"].as_str().unwrap().to_owned()
    }

    fn decide(&self, approval: &str, kind: &str) {
        let path = format!("/approvals/{approval}");
        let shown = self.owner().get(&path).expect(200);
        let decision = json!({ "kind": kind, "fingerprint": shown["fingerprint"] });
        self.owner()
            .post(&format!("{path}/decision"), &decision)
            .expect(200);
    }

    fn webhook(&self, made: &Value) -> Value {
        self.owner().get(&path(made)).expect(200)
    }

    fn notices(&self, made: &Value) -> Vec<Value> {
        let told = self.owner().get(&format!("{}/notices", path(made)));
        told.expect(200)["notices"].as_array().unwrap().clone()
    }

    fn test(&self, made: &Value) -> Value {
        let path = format!("{}/test", path(made));
        self.owner().post(&path, &Value::Null).expect(200)
    }
}

/// The address of a webhook.
fn path(made: &Value) -> String {
    format!("/webhooks/{}", made["webhook_id"].as_str().unwrap())
}
