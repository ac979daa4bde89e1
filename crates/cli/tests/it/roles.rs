//! Who may do what: every address, every role, one's own things, others' and
//! what is not there.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::caller::{Caller, Said, add, audit, sandbox};
use crate::support::{Home, Server};

/// In the order of the columns below. `one` is an approver and `local` an
/// operator in one sandbox only; `nobody` comes over TCP without anything to
/// show.
pub(crate) const ROLES: [&str; 8] = [
    "agent", "viewer", "approver", "one", "local", "operator", "admin", "nobody",
];

/// What each is answered. `own` is the asker's, `near` another's in the sandbox
/// that `one` and `local` are for, `far` another's elsewhere, `other` another
/// person, and `absent` is not there. What cannot be asked is left out with a
/// dash.
const EXPECTED: &str = "
#                                           agent viewer approver one local operator admin nobody
GET    /me                           -       200   200    200     200   200   200      200   401
GET    /me/settings                  -       200   200    200     200   200   200      200   401
PUT    /me/settings                  -       403   200    200     200   200   200      200   401
GET    /health                       -       200   200    200     200   200   200      200   401
GET    /health/checks                -       403   200    200     403   403   200      200   401
GET    /limits                       -       403   200    200     200   200   200      200   401
PUT    /limits                       -       403   403    403     403   403   403      200   401
GET    /kept                         -       403   200    200     403   403   200      200   401
GET    /metrics                      -       403   404    404     403   403   404      404   401
POST   /backups                      -       403   403    403     403   403   403      201   401
GET    /folders                      -       403   403    403     403   403   403      200   401
GET    /events                       -       200   200    200     200   200   200      200   401

POST   /commands                     near    200   403    200     200   200   200      200   401
                                     far     404   403    404     404   404   404      200   401
                                     absent  404   403    404     404   404   404      404   401
GET    /commands                     -       200   200    200     200   200   200      200   401
GET    /commands/export              -       200   200    200     200   200   200      200   401
GET    /commands/{id}                own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /commands/{id}/audit          own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /commands/{id}/output         own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /commands/{id}/stream         own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /commands/{id}/recording      own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /commands/{id}/recording/index
                                     own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /commands/{id}/output/find    own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /commands/{id}/output/raw     own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /commands/{id}/stop           own     200   -      200     200   200   200      200   401
                                     near    404   403    403     403   200   200      200   401
                                     far     404   403    403     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /commands/{id}/stdin          own     204   -      204     204   204   204      204   401
                                     near    404   403    403     403   204   204      204   401
                                     far     404   403    403     404   404   204      204   401
                                     absent  404   404    404     404   404   404      404   401
POST   /commands/{id}/approve        own     403   -      200     200   200   200      200   401
                                     near    404   403    200     200   200   200      200   401
                                     far     404   403    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /commands/{id}/reject         own     403   -      200     200   200   200      200   401
                                     near    404   403    200     200   200   200      200   401
                                     far     404   403    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /commands/{id}/withdraw       own     200   -      200     200   200   200      200   401
                                     near    404   403    403     403   200   200      200   401
                                     far     404   403    403     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /commands/{id}/finalize       own     200   -      200     200   200   200      200   401
                                     near    404   403    403     403   403   403      200   401
                                     far     404   403    403     404   404   403      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /commands/{id}/changes        own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /commands/{id}/changes/{index}/diff
                                     own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /commands/{id}/patch          own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /commands/{id}/revert         own     403   -      200     200   200   200      200   401
                                     near    404   403    200     200   200   200      200   401
                                     far     404   403    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401

GET    /approvals                    -       200   200    200     200   200   200      200   401
GET    /approvals/{id}               own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /approvals/{id}/rule-proposals
                                     own     403   -      200     200   200   200      200   401
                                     near    404   403    200     200   200   200      200   401
                                     far     404   403    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /approvals/{id}/decision      own     403   -      200     200   200   200      200   401
                                     near    404   403    200     200   200   200      200   401
                                     far     404   403    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /approvals/{id}/extend        own     403   -      200     200   200   200      200   401
                                     near    404   403    200     200   200   200      200   401
                                     far     404   403    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /approvals/{id}/preview       own     403   -      200     200   200   200      200   401
                                     near    404   403    200     200   200   200      200   401
                                     far     404   403    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401

GET    /sessions                     -       200   200    200     200   200   200      200   401
GET    /sessions/{id}                own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /sessions/{id}/close          own     200   -      200     200   200   200      200   401
                                     near    404   403    403     403   200   200      200   401
                                     far     404   403    403     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /drafts                       -       200   200    200     200   200   200      200   401
GET    /sessions/{id}/draft          own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /sessions/{id}/draft/{index}/diff
                                     own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /sessions/{id}/draft/patch    own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /sessions/{id}/draft          own     403   -      200     200   200   200      200   401
                                     near    404   403    200     200   200   200      200   401
                                     far     404   403    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401

GET    /terminals                    -       200   200    200     200   200   200      200   401
POST   /terminals                    near    202   403    202     202   202   202      202   401
                                     far     404   403    404     404   404   404      202   401
                                     absent  404   403    404     404   404   404      404   401
GET    /terminals/{id}               own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /terminals/{id}/screen        own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
DELETE /terminals/{id}               own     204   -      204     204   204   204      204   401
                                     near    404   403    403     403   204   204      204   401
                                     far     404   403    403     404   404   204      204   401
                                     absent  404   404    404     404   404   404      404   401
POST   /terminals/{id}/input         own     204   -      204     204   204   204      204   401
                                     near    404   403    403     403   204   204      204   401
                                     far     404   403    403     404   404   204      204   401
                                     absent  404   404    404     404   404   404      404   401
POST   /terminals/{id}/size          own     204   -      204     204   204   204      204   401
                                     near    404   403    403     403   204   204      204   401
                                     far     404   403    403     404   404   204      204   401
                                     absent  404   404    404     404   404   404      404   401
POST   /terminals/{id}/signal        own     204   -      204     204   204   204      204   401
                                     near    404   403    403     403   204   204      204   401
                                     far     404   403    403     404   404   204      204   401
                                     absent  404   404    404     404   404   404      404   401
POST   /terminals/{id}/exec          own     400   -      400     400   400   400      400   401
                                     near    404   403    403     403   400   400      400   401
                                     far     404   403    403     404   404   400      400   401
                                     absent  404   404    404     404   404   404      404   401
GET    /terminals/{id}/stream        own     426   -      426     426   426   426      426   401
                                     near    404   426    426     426   426   426      426   401
                                     far     404   426    426     404   404   426      426   401
                                     absent  404   404    404     404   404   404      404   401
GET    /terminals/{id}/recording     own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /terminals/{id}/recording/index
                                     own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401

GET    /tasks                        -       200   200    200     200   200   200      200   401
GET    /tasks/{id}                   own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /tasks/{id}/output            own     200   -      200     200   200   200      200   401
                                     near    404   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /wait                         own     200   200    200     200   200   200      200   401
                                     absent  404   404    404     404   404   404      404   401

GET    /sandboxes                    -       200   200    200     200   200   200      200   401
POST   /sandboxes                    -       403   403    403     403   403   403      201   401
GET    /sandboxes/{id}               near    200   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /sandboxes/{id}/protection    near    403   200    200     200   200   200      200   401
                                     far     404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
PATCH  /sandboxes/{id}               near    403   403    403     403   403   403      200   401
                                     far     404   403    403     404   404   403      200   401
                                     absent  404   404    404     404   404   404      404   401
DELETE /sandboxes/{id}               near    403   403    403     403   403   403      204   401
                                     far     404   403    403     404   404   403      204   401
                                     absent  404   404    404     404   404   404      404   401

GET    /people                       -       403   200    200     200   200   200      200   401
POST   /people                       -       403   403    403     403   403   403      201   401
GET    /people/{id}                  own     200   200    200     200   200   200      200   401
                                     other   404   200    200     404   404   200      200   401
                                     absent  404   404    404     404   404   404      404   401
PATCH  /people/{id}                  own     403   403    403     403   403   403      200   401
                                     other   404   403    403     404   404   403      200   401
                                     absent  404   404    404     404   404   404      404   401
POST   /people/{id}/tokens           own     403   403    403     403   403   403      201   401
                                     other   404   403    403     404   404   403      201   401
                                     absent  404   404    404     404   404   404      404   401
DELETE /people/{id}/tokens/{token}   own     403   403    403     403   403   403      204   401
                                     other   404   404    404     404   404   404      204   401
                                     absent  404   404    404     404   404   404      404   401
POST   /people/{id}/tokens/{token}/rotate
                                     own     403   403    403     403   403   403      201   401
                                     other   404   404    404     404   404   404      201   401
                                     absent  404   404    404     404   404   404      404   401

GET    /pauses                       -       200   200    200     200   200   200      200   401
POST   /pause                        other   403   403    403     403   404   200      200   401
                                     absent  403   403    403     403   404   404      404   401
                                     everyone 403  403    403     403   403   200      200   401
POST   /resume                       other   403   403    403     403   404   200      200   401
                                     absent  403   403    403     403   404   404      404   401
                                     everyone 403  403    403     403   403   200      200   401

GET    /policies                     -       403   200    200     200   200   200      200   401
GET    /policies/{id}                -       403   200    200     200   200   200      200   401
                                     absent  403   404    404     404   404   404      404   401
PUT    /policies/{id}                -       403   403    403     403   403   403      200   401
                                     absent  403   403    403     403   403   403      404   401
POST   /policies/{id}/check          -       403   200    200     200   200   200      200   401
                                     absent  403   404    404     404   404   404      404   401
POST   /policies/{id}/edit           -       403   200    200     200   200   200      200   401
                                     absent  403   404    404     404   404   404      404   401
POST   /policies/{id}/compare        -       403   200    200     200   200   200      200   401
                                     absent  403   404    404     404   404   404      404   401
GET    /policies/{id}/versions       -       403   200    200     200   200   200      200   401
                                     absent  403   404    404     404   404   404      404   401
POST   /policies/{id}/back           -       403   403    403     403   403   403      200   401
                                     absent  403   403    403     403   403   403      404   401
POST   /policies/check               -       200   200    200     200   200   200      200   401
GET    /policies/schema              -       200   200    200     200   200   200      200   401
POST   /policies/explain             near    200   200    200     200   200   200      200   401
                                     far     404   404    404     404   404   404      200   401
                                     absent  404   404    404     404   404   404      404   401
GET    /policies/grants              -       403   200    200     200   200   200      200   401
POST   /policies/grants              near    403   403    200     200   200   200      200   401
                                     far     403   403    200     404   404   200      200   401
                                     absent  403   403    404     404   404   404      404   401
DELETE /policies/grants/{id}         own     -     -      204     204   204   204      204   401
                                     near    403   403    204     204   204   204      204   401
                                     far     403   403    204     404   404   204      204   401
                                     absent  403   403    404     404   404   404      404   401
GET    /blacklist                    -       200   200    200     200   200   200      200   401
PUT    /blacklist                    -       403   403    403     403   403   403      200   401
POST   /blacklist/compare            -       403   200    200     200   200   200      200   401
DELETE /blacklist                    -       403   403    403     403   403   403      200   401

GET    /webhooks                     -       403   200    200     200   200   200      200   401
POST   /webhooks                     -       403   201    201     201   201   201      201   401
GET    /webhooks/{id}                own     -     200    200     200   200   200      200   401
                                     other   403   404    404     404   404   404      200   401
                                     absent  403   404    404     404   404   404      404   401
PATCH  /webhooks/{id}                own     -     200    200     200   200   200      200   401
                                     other   403   404    404     404   404   404      200   401
                                     absent  403   404    404     404   404   404      404   401
DELETE /webhooks/{id}                own     -     204    204     204   204   204      204   401
                                     other   403   404    404     404   404   404      204   401
                                     absent  403   404    404     404   404   404      404   401
POST   /webhooks/{id}/secret         own     -     201    201     201   201   201      201   401
                                     other   403   404    404     404   404   404      201   401
                                     absent  403   404    404     404   404   404      404   401
POST   /webhooks/{id}/test           own     -     200    200     200   200   200      200   401
                                     other   403   404    404     404   404   404      200   401
                                     absent  403   404    404     404   404   404      404   401
GET    /webhooks/{id}/notices        own     -     200    200     200   200   200      200   401
                                     other   403   404    404     404   404   404      200   401
                                     absent  403   404    404     404   404   404      404   401

GET    /audit                        -       403   200    200     403   403   200      200   401
POST   /audit/verify                 -       403   200    200     403   403   200      200   401
GET    /audit/export                 -       403   200    200     403   403   200      200   401

POST   /signin/link                  -       403   200    200     200   200   200      200   401
POST   /signin                       -       200   200    200     200   200   200      200   200
POST   /signout                      -       204   204    204     204   204   204      204   401
";

/// One line of it: the method and the path, the object, what each is answered.
pub(crate) type Expectation = (String, &'static str, Vec<&'static str>);

pub(crate) fn expected() -> Vec<Expectation> {
    let mut operation = String::new();
    let mut all = vec![];
    for line in EXPECTED.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace().peekable();
        if line.starts_with(|c: char| c.is_ascii_uppercase()) {
            let method = words.next().unwrap();
            operation = format!("{method} {}", words.next().unwrap());
        }
        if let Some(object) = words.next() {
            let answers: Vec<&str> = words.collect();
            assert_eq!(answers.len(), ROLES.len(), "{operation} {object}");
            all.push((operation.clone(), object, answers));
        }
    }
    all
}

/// Everybody of the table, and two sandboxes.
struct Team {
    home: Home,
    _server: Server,
    callers: BTreeMap<&'static str, Caller>,
    near: String,
    far: String,
    serial: Cell<u32>,
    /// The newest entry of the audit that was looked at.
    seen: Cell<u64>,
    /// What was made and is as it was, by how and for whom: looking changes
    /// nothing, nor does what is refused.
    made: RefCell<BTreeMap<(String, String, String), Value>>,
}

/// What is asked about by name.
const ASKS: &str = "[[rule]]\nask = \"touch *\"\n";

impl Team {
    fn new() -> Self {
        let home = Home::new();
        let server = home.serve(&["--listen", "127.0.0.1:0"]);
        let id = |made: Value| made["sandbox_id"].as_str().unwrap().to_owned();
        let near = id(sandbox(
            &home,
            "near",
            json!({ "rules": ASKS, "review": "effects" }),
        ));
        let guard = json!({ "rules": ASKS, "agents": ["other"], "review": "effects" });
        let far = id(sandbox(&home, "far", guard));
        let stranger = Caller::stranger(&server);
        let mut callers = BTreeMap::from([("nobody", stranger.clone())]);
        let default = json!({ "default_sandbox": "near" });
        let only = json!({ "sandboxes": ["near"], "default_sandbox": "near" });
        for (name, role, more) in [
            ("agent", "agent", default.clone()),
            ("other", "agent", default.clone()),
            ("idle", "agent", default.clone()),
            ("viewer", "viewer", json!({})),
            ("approver", "approver", default.clone()),
            ("one", "approver", only.clone()),
            ("local", "operator", only),
            ("operator", "operator", default.clone()),
            ("admin", "administrator", default),
        ] {
            let token = add(&home, name, role, more);
            callers.insert(name, stranger.bearing(&token));
        }
        Self {
            callers,
            near,
            far,
            serial: Cell::new(0),
            seen: Cell::new(0),
            made: RefCell::default(),
            _server: server,
            home,
        }
    }

    fn next(&self) -> u32 {
        self.serial.set(self.serial.get() + 1);
        self.serial.get()
    }

    fn owner(&self) -> Caller {
        Caller::owner(&self.home)
    }

    /// Whose a thing is, and where.
    fn whose<'a>(&'a self, role: &'a str, object: &str) -> (&'a str, &'a str) {
        match object {
            "own" if role != "nobody" => (role, &self.near),
            "own" | "near" => ("other", &self.near),
            _ => ("other", &self.far),
        }
    }

    /// Makes something, unless one of its kind is there.
    fn make(&self, how: &str, role: &str, object: &str, make: impl FnOnce() -> Value) -> Value {
        let key = self.key(how, role, object);
        if let Some(made) = self.made.borrow().get(&key) {
            return made.clone();
        }
        let made = make();
        self.made.borrow_mut().insert(key, made.clone());
        made
    }

    /// It is no longer as it was made.
    fn forget(&self, how: &str, role: &str, object: &str) {
        let key = self.key(how, role, object);
        self.made.borrow_mut().remove(&key);
    }

    fn key(&self, how: &str, role: &str, object: &str) -> (String, String, String) {
        let (name, sandbox) = self.whose(role, object);
        (how.to_owned(), name.to_owned(), sandbox.to_owned())
    }

    /// Asks for a command; with what is told of it.
    fn command(&self, role: &str, object: &str, command: &str, wishes: Value) -> Value {
        let (name, sandbox) = self.whose(role, object);
        let mut body = json!({ "command": command, "sandbox_id": sandbox,
                               "env": { "WL_MARK": self.home.mark } });
        for (key, wish) in wishes.as_object().into_iter().flatten() {
            body[key] = wish.clone();
        }
        let said = self.callers[name].post("/commands", &body);
        assert!(matches!(said.status, 200 | 202), "{said:?}");
        said.json()
    }

    /// One that waits for a person, unlike all before it.
    fn waiting(&self, role: &str, object: &str) -> Value {
        let run = self.command(role, object, &format!("touch {}", self.next()), json!({}));
        assert_eq!(run["state"], "waiting", "{run}");
        run
    }

    /// One whose changes wait for a person.
    fn holding(&self, role: &str, object: &str, mut wishes: Value) -> Value {
        wishes["preview"] = true.into();
        if wishes.get("session_id").is_none() {
            wishes["session_id"] = format!("talk {}", self.next()).into();
        }
        let run = self.command(role, object, &format!("mkdir {}", self.next()), wishes);
        assert_eq!(run["changes"]["state"], "held", "{run}");
        run
    }

    /// Makes what an operation is about, and returns its address and body.
    fn request(&self, operation: &str, role: &str, object: &str) -> (String, Value) {
        let (_, path) = operation.split_once(' ').unwrap();
        let kind = path.split('/').nth(1).unwrap();
        match (kind, path.contains("{id}")) {
            ("commands" | "tasks", true) => self.about_command(operation, role, object),
            ("approvals", true) => self.about_approval(operation, role, object),
            ("sessions", true) => self.about_session(operation, role, object),
            ("wait", _) => (path.to_owned(), self.wait(role, object)),
            ("terminals", true) => self.about_terminal(operation, role, object),
            ("sandboxes", true) => self.about_sandbox(operation, role, object),
            ("people", true) => self.about_person(path, role, object),
            ("webhooks", true) => self.about_webhook(operation, role, object),
            ("policies", true) if path.contains("grants") => self.about_grant(path, role, object),
            ("policies", true) => {
                let id = if object == "absent" {
                    "nowhere"
                } else {
                    "server"
                };
                (path.replace("{id}", id), self.body(operation, object))
            }
            _ => (path.to_owned(), self.body(operation, object)),
        }
    }

    fn about_command(&self, operation: &str, role: &str, object: &str) -> (String, Value) {
        let (_, path) = operation.split_once(' ').unwrap();
        let deed = path.rsplit('/').next().unwrap();
        let body = match deed {
            "stop" => json!({ "grace_ms": 100 }),
            "finalize" => json!({ "stdout": "done", "exit_code": 0 }),
            "stdin" => json!("x"),
            _ => Value::Null,
        };
        let path = match deed {
            "find" => format!("{path}?q=hi"),
            _ => path.replace("{index}", "0"),
        };
        let sleep = json!({ "background": true, "stdin_open": true, "timeout_ms": 120_000 });
        let run = || match deed {
            "stop" | "stdin" => self.command(role, object, "sleep 1000", sleep),
            "approve" | "reject" | "withdraw" => self.waiting(role, object),
            "changes" | "diff" | "patch" => self.holding(role, object, json!({})),
            "revert" => self.command(role, object, &format!("mkdir {}", self.next()), json!({})),
            "finalize" => self.command(role, object, "true", json!({ "executor": "external" })),
            _ => self.command(role, object, "echo hi", json!({})),
        };
        let run = match object {
            "absent" => json!({ "command_id": "r_00000000000000zzzzzzzz" }),
            _ => self.make(how(operation), role, object, run),
        };
        (
            path.replace("{id}", run["command_id"].as_str().unwrap()),
            body,
        )
    }

    fn about_approval(&self, operation: &str, role: &str, object: &str) -> (String, Value) {
        let (_, path) = operation.split_once(' ').unwrap();
        let waiting = || self.waiting(role, object);
        let (id, fingerprint) = match object {
            "absent" => (json!("ap_00000000000000zzzzzzzz"), json!("0")),
            _ => {
                let run = self.make(how(operation), role, object, waiting);
                let id = run["approval_id"].clone();
                let shown = self
                    .owner()
                    .get(&format!("/approvals/{}", id.as_str().unwrap()));
                (id, shown.expect(200)["fingerprint"].clone())
            }
        };
        let body = match path.ends_with("decision") {
            true => json!({ "kind": "approve_once", "fingerprint": fingerprint }),
            false => Value::Null,
        };
        (path.replace("{id}", id.as_str().unwrap()), body)
    }

    fn about_session(&self, operation: &str, role: &str, object: &str) -> (String, Value) {
        let (_, path) = operation.split_once(' ').unwrap();
        let label = json!({ "session_id": format!("talk {}", self.next()) });
        let run = || match path.contains("draft") {
            true => self.holding(role, object, label),
            false => self.command(role, object, "true", label),
        };
        let id = match object {
            "absent" => json!("s_00000000000000zzzzzzzz"),
            _ => self.make(how(operation), role, object, run)["session_id"].clone(),
        };
        let body = match path.ends_with("draft") {
            true => json!({ "changes": "discard" }),
            false => Value::Null,
        };
        let path = path.replace("{index}", "0");
        (path.replace("{id}", id.as_str().unwrap()), body)
    }

    fn about_terminal(&self, operation: &str, role: &str, object: &str) -> (String, Value) {
        let (_, path) = operation.split_once(' ').unwrap();
        let (name, sandbox) = self.whose(role, object);
        let body = match path.rsplit('/').next() {
            Some("input") => json!({ "text": "x" }),
            Some("exec") => json!({ "command": "true" }),
            Some("size") => json!({ "columns": 100, "rows": 30 }),
            Some("signal") => json!({ "signal": "CONT" }),
            _ => Value::Null,
        };
        let open = || {
            let new = self.terminal(sandbox);
            self.callers[name].post("/terminals", &new).expect(202)
        };
        let id = match object {
            "absent" => json!("nothing-of-that-name"),
            _ => self.make(how(operation), role, object, open)["terminal_id"].clone(),
        };
        (path.replace("{id}", id.as_str().unwrap()), body)
    }

    fn wait(&self, role: &str, object: &str) -> Value {
        let id = match (object, role) {
            ("absent", _) => json!("r_00000000000000zzzzzzzz"),
            // Who may run nothing looks at what somebody else has run.
            (_, "viewer") => self.command(role, "near", "true", json!({}))["command_id"].clone(),
            _ => self.command(role, object, "true", json!({}))["command_id"].clone(),
        };
        json!({ "for": [{ "id": id }] })
    }

    fn terminal(&self, sandbox: &str) -> Value {
        json!({ "name": format!("t{}", self.next()), "description": "for the table",
                "command": "sleep 1000", "sandbox_id": sandbox,
                "env": { "WL_MARK": self.home.mark } })
    }

    fn about_sandbox(&self, operation: &str, role: &str, object: &str) -> (String, Value) {
        let (method, path) = operation.split_once(' ').unwrap();
        let label = match (method, object) {
            (_, "absent") => "nowhere".to_owned(),
            // Nobody else can take one away.
            ("DELETE", _) if role == "admin" => {
                let label = format!("short-lived-{}", self.next());
                sandbox(&self.home, &label, json!({}));
                label
            }
            _ => object.to_owned(),
        };
        let body = match method {
            "PATCH" => json!({ "is_active": true }),
            _ => Value::Null,
        };
        (path.replace("{id}", &label), body)
    }

    fn about_person(&self, path: &str, role: &str, object: &str) -> (String, Value) {
        let name = match (object, role) {
            ("absent", _) if !path.contains("{token}") => "no-such-person",
            ("other", _) | (_, "nobody") => "other",
            _ => role,
        };
        let token = match object {
            "absent" => json!("tk_none"),
            _ => {
                let tokens = format!("/people/{name}/tokens");
                self.owner().post(&tokens, &Value::Null).expect(201)["token_id"].clone()
            }
        };
        let body = match path {
            "/people/{id}" => json!({ "is_active": true }),
            _ => Value::Null,
        };
        let path = path.replace("{id}", name);
        (path.replace("{token}", token.as_str().unwrap()), body)
    }

    fn about_grant(&self, path: &str, role: &str, object: &str) -> (String, Value) {
        let by = match object {
            "own" if role != "nobody" => self.callers[role].clone(),
            _ => self.owner(),
        };
        let id = match object {
            "absent" => json!("g_zzzzzz"),
            _ => by.post("/policies/grants", &self.grant(object)).expect(200)["id"].clone(),
        };
        (path.replace("{id}", id.as_str().unwrap()), Value::Null)
    }

    fn about_webhook(&self, operation: &str, role: &str, object: &str) -> (String, Value) {
        let (method, path) = operation.split_once(' ').unwrap();
        let by = match object {
            "own" if role != "nobody" => self.callers[role].clone(),
            _ => self.owner(),
        };
        let add = || by.post("/webhooks", &webhook()).expect(201);
        let id = match object {
            "absent" => json!("wh_00000000000000zzzzzzzz"),
            _ => self.make(how(operation), role, object, add)["webhook_id"].clone(),
        };
        let body = match method {
            "PATCH" => json!({ "label": "changed" }),
            _ => Value::Null,
        };
        (path.replace("{id}", id.as_str().unwrap()), body)
    }

    fn grant(&self, object: &str) -> Value {
        let sandbox = match object {
            "own" => "near",
            "absent" => "nowhere",
            object => object,
        };
        json!({ "pattern": format!("make {}", self.next()), "sandbox": sandbox })
    }

    /// What is asked where the address names nothing.
    fn body(&self, operation: &str, object: &str) -> Value {
        let sandbox = if object == "absent" {
            "nowhere"
        } else {
            object
        };
        let principal = match object {
            "absent" => json!("no-such-person"),
            "everyone" => Value::Null,
            _ => json!("idle"),
        };
        match operation {
            "POST /commands" => json!({ "command": "true", "sandbox_id": sandbox }),
            "POST /terminals" => self.terminal(sandbox),
            "POST /policies/explain" => json!({ "command": "true", "sandbox": sandbox }),
            "POST /policies/grants" => self.grant(object),
            "PUT /policies/{id}" => json!({ "text": "# None yet.\n" }),
            "POST /policies/check"
            | "POST /policies/{id}/check"
            | "POST /policies/{id}/compare" => json!({ "text": "" }),
            "POST /policies/{id}/back" => json!({ "version": 1 }),
            "PUT /me/settings" | "PUT /limits" => json!({}),
            "POST /policies/{id}/edit" => json!({ "text": "", "rule": { "patterns": ["ls"] } }),
            "POST /webhooks" => webhook(),
            "POST /pause" | "POST /resume" => json!({ "principal": principal }),
            "POST /people" => {
                json!({ "principal_id": format!("new-{}", self.next()), "role": "agent" })
            }
            "POST /sandboxes" => {
                let label = format!("new-{}", self.next());
                let dir = self.home.base().join(&label);
                std::fs::create_dir(&dir).unwrap();
                json!({ "label": label, "path": dir })
            }
            "PUT /blacklist" | "POST /blacklist/compare" => {
                json!({ "commandBlacklist": ["never this"] })
            }
            "POST /signin" => {
                let link = self.owner().post("/signin/link", &Value::Null).expect(200);
                let code = link["link"].as_str().unwrap().split_once('#').unwrap().1;
                json!({ "code": code })
            }
            _ => Value::Null,
        }
    }

    /// The last entry that anybody has caused.
    fn newest(&self) -> u64 {
        let news = audit(&self.home, &format!("after={}", self.seen.get()));
        if let Some(newest) = news.last() {
            self.seen.set(newest["seq"].as_u64().unwrap());
        }
        self.seen.get()
    }

    /// Asks, and makes sure that what is refused changed nothing: every change
    /// has an entry.
    fn probe(&self, operation: &str, role: &str, object: &str) -> Said {
        let (method, _) = operation.split_once(' ').unwrap();
        let (path, body) = self.request(operation, role, object);
        let before = self.newest();
        let said = self.callers[role].ask(method, &path, &body);
        if said.status < 400 && method != "GET" {
            self.forget(how(operation), role, object);
        }
        if said.status >= 400 {
            let caused = audit(&self.home, &format!("actor={role}&after={before}"));
            let refused = |kind: &Value| kind == "agent.refused" || kind == "run.refused";
            assert!(
                caused.iter().all(|entry| refused(&entry["kind"])),
                "{operation} of {role}, {object}: {caused:#?}"
            );
        }
        said
    }
}

/// One that nobody listens to.
fn webhook() -> Value {
    json!({ "url": "http://127.0.0.1:1/" })
}

/// How what an operation is about is made: for those that only look, the same
/// as for others of them.
fn how(operation: &str) -> &str {
    let Some(path) = operation.strip_prefix("GET ") else {
        return operation;
    };
    let kind = path.split('/').nth(1).unwrap();
    let mut parts = path.split('/');
    let changes = parts.any(|part| ["draft", "changes", "patch"].contains(&part));
    match (kind, changes) {
        ("sessions", true) => "draft",
        (_, true) => "changes",
        ("tasks", false) => "commands",
        (_, false) => kind,
    }
}

#[test]
fn everybody_may_what_their_role_says_and_nothing_else() {
    let team = Team::new();
    let document = team.owner().get("/openapi.json").expect(200);
    let paths = document["paths"].as_object().unwrap().iter();
    let described: BTreeSet<String> = paths
        .flat_map(|(path, methods)| {
            let path = path.strip_prefix("/agent/terminal").unwrap();
            let methods = methods.as_object().unwrap().keys();
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    let expected = expected();
    let foreseen: BTreeSet<String> = expected.iter().map(|(op, ..)| op.clone()).collect();
    assert_eq!(described, foreseen, "an address without an expectation");

    let mut wrong = vec![];
    for (operation, object, answers) in &expected {
        for (role, answer) in ROLES.iter().zip(answers) {
            if *answer == "-" {
                continue;
            }
            let said = team.probe(operation, role, object);
            if said.status.to_string() != *answer {
                let told = said.json()["code"].clone();
                wrong.push(format!(
                    "{operation} of {role}, {object}: {} {told}, not {answer}",
                    said.status
                ));
            }
            if operation == "POST /pause" && said.status == 200 {
                let again = team.body(operation, object);
                team.owner().post("/resume", &again).expect(200);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    team.home.assert_audit_verifies();
}

/// The names of what a list has, sorted.
fn listed(said: &Said, list: &str, field: &str) -> Vec<String> {
    let found = said.expect(200);
    let found = found[list].as_array().unwrap();
    let mut names: Vec<String> = { found.iter() }
        .map(|one| one[field].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn lists_have_what_each_may_see() {
    let team = Team::new();
    for (name, sandbox) in [("agent", "near"), ("other", "near"), ("other", "far")] {
        let body = json!({ "command": format!("touch {name}-{sandbox}"), "sandbox_id": sandbox });
        team.callers[name].post("/commands", &body).expect(202);
    }
    let waits = ["touch agent-near", "touch other-far", "touch other-near"];
    let near = ["touch agent-near", "touch other-near"];
    let people = team.owner().get("/people");
    let everybody = listed(&people, "people", "principal_id");
    for role in &ROLES[..7] {
        let get = |path: &str| team.callers[role].get(path);
        let commands: &[&str] = match *role {
            "agent" => &waits[..1],
            "one" | "local" => &near,
            _ => &waits,
        };
        let sandboxes: &[&str] = match *role {
            "agent" => &["default", "near"],
            "one" | "local" => &["near"],
            _ => &["default", "far", "near"],
        };
        assert_eq!(
            listed(&get("/commands"), "commands", "command"),
            commands,
            "{role}"
        );
        assert_eq!(
            listed(&get("/approvals"), "approvals", "command"),
            commands,
            "{role}"
        );
        assert_eq!(
            get("/approvals").json()["waiting"],
            commands.len(),
            "{role}"
        );
        assert_eq!(get("/me").expect(200)["waiting"], commands.len(), "{role}");
        let sessions = listed(&get("/sessions"), "sessions", "session_id");
        assert_eq!(sessions.len(), commands.len(), "{role}");
        assert_eq!(
            listed(&get("/sandboxes"), "sandboxes", "label"),
            sandboxes,
            "{role}"
        );
        assert_eq!(
            listed(&get("/health"), "sandboxes", "name"),
            sandboxes,
            "{role}"
        );
        // Asking for what is not one's own finds nothing.
        let far = get(&format!("/commands?sandbox={}", team.far));
        let seen = commands.iter().filter(|command| command.ends_with("far"));
        assert_eq!(
            listed(&far, "commands", "command").len(),
            seen.count(),
            "{role}"
        );
        let others = get("/approvals?agent=other&status=all");
        let seen = commands.iter().filter(|command| command.contains("other"));
        assert_eq!(
            listed(&others, "approvals", "command").len(),
            seen.count(),
            "{role}"
        );
        match *role {
            "agent" => assert_eq!(get("/people").status, 403),
            "one" | "local" => {
                assert_eq!(listed(&get("/people"), "people", "principal_id"), [*role]);
            }
            _ => assert_eq!(listed(&get("/people"), "people", "principal_id"), everybody),
        }
    }
}

#[test]
fn what_an_agent_may_not_do_is_on_record_when_it_tries() {
    let team = Team::new();
    let agent = &team.callers["agent"];
    let own = team.waiting("agent", "own");
    let far = team.waiting("agent", "far");
    let id = |run: &Value, field: &str| run[field].as_str().unwrap().to_owned();
    let (run, approval) = (id(&own, "command_id"), id(&own, "approval_id"));
    let (far_run, far_approval) = (id(&far, "command_id"), id(&far, "approval_id"));
    let fingerprint = agent.get(&format!("/approvals/{approval}")).expect(200);
    let fingerprint = fingerprint["fingerprint"].clone();
    let mut expected = vec![];
    let mut refused =
        |path: String, body: Value, outcome: (u16, &str), what: &str, about: Value| {
            let said = agent.post(&path, &body);
            assert_eq!(said.outcome(), (outcome.0, outcome.1.to_owned()), "{path}");
            expected.push((json!(what), about));
        };
    let never = (403, "never_agents");
    for kind in ["approve_once", "approve_always", "approve_edited", "reject"] {
        let decision = json!({ "kind": kind, "fingerprint": fingerprint, "command": "true" });
        let path = format!("/approvals/{approval}/decision");
        refused(path, decision, never, "decide", json!(approval));
    }
    let decision = json!({ "kind": "approve_once", "fingerprint": fingerprint });
    let path = format!("/approvals/{far_approval}/decision");
    refused(
        path,
        decision,
        (404, "no_such_approval"),
        "decide",
        json!(far_approval),
    );
    for deed in ["approve", "reject"] {
        let path = format!("/commands/{run}/{deed}");
        refused(path, Value::Null, never, "decide", json!(run));
        let path = format!("/commands/{far_run}/{deed}");
        refused(
            path,
            Value::Null,
            (404, "no_such_run"),
            "decide",
            json!(far_run),
        );
        let path = format!("/commands/r_none/{deed}");
        refused(
            path,
            Value::Null,
            (404, "no_such_run"),
            "decide",
            json!("r_none"),
        );
    }
    let path = format!("/approvals/{approval}/extend");
    refused(path, Value::Null, never, "give more time", json!(approval));
    let grant = json!({ "pattern": "touch *", "sandbox": "near" });
    refused(
        "/policies/grants".into(),
        grant,
        never,
        "allow anything",
        json!("touch *"),
    );
    for path in ["/pause", "/resume"] {
        refused(
            path.into(),
            Value::Null,
            never,
            "pause or resume",
            Value::Null,
        );
    }
    refused(
        "/signin/link".into(),
        Value::Null,
        never,
        "sign in",
        Value::Null,
    );

    let entries = audit(&team.home, "actor=agent&kind=agent.refused");
    let found: Vec<(Value, Value)> = { entries.iter() }
        .map(|entry| {
            (
                entry["detail"]["what"].clone(),
                entry["detail"]["about"].clone(),
            )
        })
        .collect();
    assert_eq!(found, expected);
    for entry in &entries {
        let origin = entry["detail"]["origin"].as_str().unwrap();
        assert!(origin.starts_with("token wl_"), "{entry}");
    }
    for run in [&run, &far_run] {
        assert_eq!(team.home.get(run)["state"], "waiting");
    }
}

#[test]
fn whoever_runs_a_command_itself_hears_at_once_that_it_may() {
    let team = Team::new();
    let agent = &team.callers["agent"];
    let report = json!({ "stdout": "done\n", "stderr": "", "exit_code": 3 });
    let began = agent.post(
        "/commands",
        &json!({ "command": "make", "executor": "external" }),
    );
    let run = began.expect(202);
    assert_eq!(
        (&run["state"], &run["executor"]),
        (&json!("running"), &json!("external"))
    );
    let path = format!("/commands/{}", run["command_id"].as_str().unwrap());
    let ended = agent.post(&format!("{path}/finalize"), &report).expect(200);
    assert_eq!(
        (&ended["state"], &ended["exit_code"], &ended["stdout"]),
        (&json!("failed"), &json!(3), &json!("done\n"))
    );
    let again = agent.post(&format!("{path}/finalize"), &report);
    assert_eq!(again.outcome(), (409, "already_final".into()));

    // The same where a person has to allow it first, for those who wait.
    let wish = json!({ "command": "touch x", "executor": "external", "wait_ms": 60_000 });
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| agent.post("/commands", &wish).expect(202));
        let owner = team.owner();
        let mut inbox = Value::Null;
        crate::support::eventually("it is asked about", || {
            inbox = owner.get("/approvals").json()["approvals"][0].clone();
            inbox.is_object()
        });
        let id = inbox["approval_id"].as_str().unwrap();
        let decision = json!({ "kind": "approve_once", "fingerprint": inbox["fingerprint"] });
        owner
            .post(&format!("/approvals/{id}/decision"), &decision)
            .expect(200);
        assert_eq!(asking.join().unwrap()["state"], "running");
    });
    let ours = team.command("agent", "own", "true", json!({}));
    let path = format!(
        "/commands/{}/finalize",
        ours["command_id"].as_str().unwrap()
    );
    assert_eq!(
        agent.post(&path, &report).outcome(),
        (409, "not_external".into())
    );
}
