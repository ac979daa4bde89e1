//! Strings that were never meant well, in every place that takes one: a clear
//! answer, never an error of ours, and nothing changed.

use std::cell::Cell;

use rusqlite::Connection;
use serde_json::{Map, Value, json};

use crate::caller::{Caller, Said, add, add_here, sandbox};
use crate::support::Home;

/// What a name could be mistaken for.
const HOSTILE: &[&str] = &[
    "",
    " ",
    ".",
    "..",
    "../../etc/passwd",
    "..\\..\\x",
    "/etc/passwd",
    "%2e%2e%2f",
    "%00",
    "\0",
    "a\0b",
    "a\nb",
    "a\r\nset-cookie: x=y",
    "' OR '1'='1",
    "'; DROP TABLE terminal_commands; --",
    "\" OR \"\"=\"",
    "1; UPDATE principals SET role='administrator'",
    "x' UNION SELECT hash FROM tokens --",
    "%",
    "_",
    "*",
    "?",
    "#",
    "~",
    "${HOME}",
    "$(id)",
    "`id`",
    "<script>alert(1)</script>",
    "{{7*7}}",
    "null",
    "undefined",
    "-1",
    "0",
    "99999999999999999999999999",
    "NaN",
    "\u{202e}gnp",
    "\u{200b}",
    "\u{feff}",
    "\u{fffd}",
    "\u{1f4a9}",
    "\u{430}dmin",
    "r_",
    "ap_",
    "s_",
    "sb_",
    "tk_",
    "g_",
    "wl_",
];

/// A command that is blocked.
const NEVER: &str = "never run";

/// Everything that can be there, so that a string that means something would
/// do something.
struct Place {
    home: Home,
    _server: crate::support::Server,
    admin: Caller,
    document: Value,
    /// An agent, a sandbox, and its run and question.
    known: Known,
    /// The record itself: asking for it over REST would take most of the time.
    record: Connection,
    /// The last entry of it that was looked at.
    looked: Cell<u64>,
}

struct Known {
    run: String,
    approval: String,
    fingerprint: String,
    session: String,
    grant: String,
    token: String,
}

impl Place {
    fn new() -> Self {
        let home = Home::new();
        let rule = format!("[[rule]]\nreject = \"{NEVER}\"\n");
        home.put("settings/weighlock/rules.toml", &rule);
        let server = home.serve(&[]);
        let owner = Caller::owner(&home);
        let admin = owner.bearing(&add_here(&home, "admin", "administrator"));
        sandbox(
            &home,
            "shop",
            json!({ "rules": "[[rule]]\nask = \"touch *\"\n" }),
        );
        let coder = add(
            &home,
            "coder",
            "agent",
            json!({ "default_sandbox": "shop" }),
        );
        let coder = owner.bearing(&coder);
        let run = coder
            .post("/commands", &json!({ "command": "touch x" }))
            .expect(202);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let approval = text(&run["approval_id"]);
        let shown = owner.get(&format!("/approvals/{approval}")).expect(200);
        let grant = owner.post("/policies/grants", &json!({ "pattern": "make x" }));
        let people = owner.get("/people/coder").expect(200);
        Self {
            known: Known {
                run: text(&run["command_id"]),
                approval,
                fingerprint: text(&shown["fingerprint"]),
                session: text(&run["session_id"]),
                grant: text(&grant.expect(200)["id"]),
                token: text(&people["tokens"][0]["token_id"]),
            },
            document: owner.get("/openapi.json").expect(200),
            admin,
            record: Connection::open(home.state().join("weighlock.db")).unwrap(),
            looked: Cell::default(),
            _server: server,
            home,
        }
    }

    /// Each operation: its method, its path, and what describes it.
    fn operations(&self) -> Vec<(String, String, Value)> {
        let mut all = vec![];
        for (path, methods) in self.document["paths"].as_object().unwrap() {
            let path = path.strip_prefix("/agent/terminal").unwrap();
            for (method, described) in methods.as_object().unwrap() {
                all.push((method.to_uppercase(), path.to_owned(), described.clone()));
            }
        }
        assert!(all.len() > 50, "{}", all.len());
        all
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(name) => self.document.pointer(name.trim_start_matches('#')).unwrap(),
            None => schema,
        }
    }

    /// The address of something that is there, or with another text for its
    /// ids.
    fn address(&self, path: &str, instead: Option<&str>) -> String {
        let known = match path.split('/').nth(1).unwrap() {
            "commands" => &self.known.run,
            "approvals" => &self.known.approval,
            "sessions" => &self.known.session,
            "policies" => &self.known.grant,
            "sandboxes" => "shop",
            _ => "coder",
        };
        let (id, token) = (
            instead.unwrap_or(known),
            instead.unwrap_or(&self.known.token),
        );
        path.replace("{id}", &escaped(id))
            .replace("{token}", &escaped(token))
            .replace("{index}", "0")
    }

    /// A body that an operation takes.
    fn body(&self, method: &str, path: &str) -> Value {
        match (method, path) {
            // Blocked, or there would be a thousand runs.
            ("POST", "/commands") => json!({ "command": NEVER }),
            ("POST", "/policies/explain") => json!({ "command": "true" }),
            ("POST", "/policies/check") => json!({ "text": "" }),
            ("POST", "/policies/grants") => json!({ "pattern": "make y" }),
            ("POST", "/people") => json!({ "principal_id": "new", "role": "agent" }),
            ("POST", "/sandboxes") => json!({ "label": "new", "path": self.home.base() }),
            ("PUT", "/blacklist") => json!({ "commandBlacklist": ["never this"] }),
            ("POST", "/signin") => json!({ "code": "x" }),
            ("POST", "/approvals/{id}/decision") => {
                json!({ "kind": "reject", "fingerprint": self.known.fingerprint })
            }
            _ => json!({}),
        }
    }

    /// Asks, and makes sure of what must hold whatever is asked: an answer that
    /// is no error of ours, and of what is refused no trace but the refusal.
    fn ask(&self, method: &str, path: &str, body: &Value, about: &str) -> Said {
        self.news();
        let said = self.admin.ask(method, path, body);
        let text = String::from_utf8_lossy(&said.bytes);
        assert!(said.status < 500, "{method} {about}: {text}");
        assert!(
            !said.head.contains("set-cookie: x=y"),
            "{method} {about}: {}",
            said.head
        );
        if said.status >= 400 {
            let told = said.json();
            // Of rules, every mistake is told.
            let most = if told["code"] == "bad_rules" {
                usize::MAX
            } else {
                3000
            };
            for field in ["title", "code", "detail", "hint"] {
                let said = told[field].as_str().unwrap_or_default();
                let fits = !said.is_empty() && said.len() < most;
                assert!(fits, "{method} {about}: {text}");
            }
            let caused = self.news();
            let harmless = caused.iter().all(|entry| entry["kind"] == "run.refused");
            assert!(harmless, "{method} {about}: {caused:#?}");
        }
        said
    }

    /// The entries that there are since the last look, and who asks here has
    /// caused.
    fn news(&self) -> Vec<Value> {
        let sql = "SELECT seq, body FROM audit WHERE seq > ?1 ORDER BY seq";
        let mut found = self.record.prepare_cached(sql).unwrap();
        let new = found.query_map([self.looked.get()], |row| {
            Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?))
        });
        let mut entries = vec![];
        for (seq, body) in new.unwrap().map(Result::unwrap) {
            self.looked.set(seq);
            entries.push(serde_json::from_str::<Value>(&body).unwrap());
        }
        entries.retain(|entry| entry["actor"] == "admin");
        entries
    }

    /// Everything is as it was, and what is asked about is still there.
    fn assert_whole(&self) {
        let owner = Caller::owner(&self.home);
        for (path, list) in [
            ("/commands?limit=500", "commands"),
            ("/approvals?status=all", "approvals"),
            ("/people", "people"),
            ("/sandboxes", "sandboxes"),
            ("/sessions", "sessions"),
        ] {
            let found = owner.get(path).expect(200);
            assert!(!found[list].as_array().unwrap().is_empty(), "{path}");
        }
        owner
            .get(&format!("/commands/{}", self.known.run))
            .expect(200);
        self.home.assert_audit_verifies();
    }
}

/// A text for one piece of an address.
fn escaped(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    text.bytes()
        .map(|byte| match plain(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// Those, and some that are too long to write down.
fn hostile() -> Vec<String> {
    let mut all: Vec<String> = HOSTILE.iter().map(|&text| text.to_owned()).collect();
    all.extend(["x".repeat(10_000), "../".repeat(3000), "é".repeat(2000)]);
    all
}

fn brief(text: &str) -> String {
    text.chars()
        .take(60)
        .collect::<String>()
        .escape_debug()
        .to_string()
}

#[test]
fn as_an_id() {
    let place = Place::new();
    let operations = place.operations();
    let with_id = operations
        .iter()
        .filter(|(_, path, _)| path.contains("{id}"));
    let snapshot = || {
        let owner = Caller::owner(&place.home);
        [
            "/people",
            "/sandboxes",
            "/policies/grants",
            "/approvals",
            "/commands",
            "/sessions",
        ]
        .map(|path| owner.get(path).expect(200))
    };
    let mut before = snapshot();
    // An id can be named by how it begins, and may begin with a digit or two.
    let mut no_ids = hostile();
    no_ids.retain(|text| text.parse::<u8>().is_err());
    for (method, path, _) in with_id {
        for text in &no_ids {
            let address = place.address(path, Some(text));
            let body = place.body(method, path);
            let query = if path.ends_with("/find") { "?q=x" } else { "" };
            let about = format!("{path} {}", brief(text));
            let said = place.ask(method, &format!("{address}{query}"), &body, &about);
            assert!(
                (400..500).contains(&said.status),
                "{method} {about}: {said:?}"
            );
        }
    }
    // A token of somebody else's is nobody's, either.
    for (method, deed) in [("DELETE", ""), ("POST", "/rotate")] {
        for text in hostile() {
            let path = format!("/people/coder/tokens/{}{deed}", escaped(&text));
            let said = place.ask(method, &path, &json!({}), &brief(&text));
            assert!(
                (400..500).contains(&said.status),
                "{method} {text}: {said:?}"
            );
        }
    }
    let mut after = snapshot();
    for all in [&mut before, &mut after] {
        // Time goes on, and whoever asks is seen to have asked.
        for person in all[0]["people"].as_array_mut().unwrap() {
            for token in person["tokens"].as_array_mut().unwrap() {
                token["last_used_at"].take();
            }
        }
        for approval in all[3]["approvals"].as_array_mut().unwrap() {
            approval["expires_in_seconds"].take();
        }
    }
    assert_eq!(before, after);
    place.assert_whole();
}

#[test]
fn as_a_path() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let owner = Caller::owner(&home);
    for address in [
        "/agent/terminal/../../etc/passwd",
        "/agent/terminal/commands/..",
        "/agent/terminal/commands/%2e%2e/people",
        "/agent/terminal//commands",
        "/agent/terminal/commands/",
        "/agent/terminal/commands/x/y/z",
        "/agent/terminal/people/root/tokens/",
        "/agent/terminal/%00",
        "/agent/terminal/\u{e9}",
        "/AGENT/TERMINAL/commands",
        "/agent/terminal/commands%3Fstate=x",
        "/agent/terminal/commands;x=1",
        "/",
        "/etc/passwd",
        "/..;/manager",
        "/.git/config",
        "*",
        "http://evil.test/agent/terminal/people",
        &format!("/agent/terminal/{}", "x/".repeat(10_000)),
        &format!("/{}", "x".repeat(70_000)),
    ] {
        for method in ["GET", "POST", "OPTIONS", "TRACE", "X"] {
            let said = owner.send(method, address, b"");
            // The last of them is us by another name, which over the socket is
            // nobody's lie.
            let ours = address.starts_with("http://") && method == "GET";
            assert!(
                (400..500).contains(&said.status) || ours,
                "{method} {address}: {said:?}"
            );
        }
    }
    assert_eq!(owner.get("/me").status, 200);
}

#[test]
fn as_a_query() {
    let place = Place::new();
    let mut tried = 0;
    for (method, path, described) in place.operations() {
        // It answers for as long as it is asked to.
        if path == "/events" {
            continue;
        }
        for parameter in described["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            if parameter["in"] != "query" {
                continue;
            }
            tried += 1;
            for text in hostile() {
                let address = place.address(&path, None);
                let needs = if path.ends_with("/find") && name != "q" {
                    "q=x&"
                } else {
                    ""
                };
                let address = format!("{address}?{needs}{name}={}", escaped(&text));
                let about = format!("{path}?{name}={}", brief(&text));
                // What nobody waits for must not be waited for here.
                if name == "follow" || name == "wait_ms" && text == "99999999999999999999999999" {
                    continue;
                }
                place.ask(&method, &address, &place.body(&method, &path), &about);
            }
            let twice = format!("{}?{name}=1&{name}=2", place.address(&path, None));
            place.ask(&method, &twice, &place.body(&method, &path), &twice);
        }
        let unknown = format!("{}?surely_unknown=1", place.address(&path, None));
        if described["parameters"].to_string().contains("\"query\"") {
            let said = place.ask(&method, &unknown, &place.body(&method, &path), &unknown);
            assert_eq!(said.outcome(), (400, "invalid_query".into()), "{unknown}");
        }
    }
    assert!(tried > 30, "{tried}");
    place.assert_whole();
}

#[test]
fn as_a_field() {
    let place = Place::new();
    let mut tried = 0;
    for (method, path, described) in place.operations() {
        let content = &described["requestBody"]["content"]["application/json"]["schema"];
        let schema = place.resolve(content);
        let fields = schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default();
        // Whoever guesses is slowed down, and is tried elsewhere.
        if path == "/signin" {
            continue;
        }
        for name in fields.keys() {
            tried += 1;
            for text in hostile() {
                let mut body = place.body(&method, &path);
                body[name] = json!(text);
                let about = format!("{path} {name}: {}", brief(&text));
                place.ask(&method, &place.address(&path, None), &body, &about);
            }
            for odd in [
                json!(["' OR 1=1"]),
                json!({ "..": "\0" }),
                json!(1e300),
                json!([[]]),
            ] {
                let mut body = place.body(&method, &path);
                body[name] = odd;
                let about = format!("{path} {name}: {}", body[name]);
                place.ask(&method, &place.address(&path, None), &body, &about);
            }
        }
        let mut more = Map::from_iter([("surely unknown".to_owned(), json!(1))]);
        more.extend(place.body(&method, &path).as_object().unwrap().clone());
        if !fields.is_empty() {
            let address = place.address(&path, None);
            let said = place.ask(&method, &address, &more.into(), &path);
            assert_eq!(
                said.outcome(),
                (422, "invalid_body".into()),
                "{method} {path}"
            );
        }
    }
    assert!(tried > 40, "{tried}");
    place.assert_whole();
}

#[test]
fn as_a_guard() {
    let place = Place::new();
    let schema = place.document.pointer("/components/schemas/Guard").unwrap();
    let fields = schema["properties"].as_object().unwrap().clone();
    assert!(fields.len() > 10, "{fields:?}");
    for name in fields.keys() {
        for text in hostile() {
            for odd in [json!(text), json!([text])] {
                let patch = json!({ "guard": { name.as_str(): odd } });
                let about = format!("guard {name}: {}", brief(&text));
                let said = place.ask("PATCH", "/sandboxes/shop", &patch, &about);
                // What is taken must be shown again as it is, and does not stop
                // the server from being asked.
                if said.status == 200 {
                    let shown = Caller::owner(&place.home)
                        .get("/sandboxes/shop")
                        .expect(200);
                    assert_eq!(shown, said.json(), "{about}");
                    let run = json!({ "command": "true", "sandbox_id": "shop" });
                    place.ask("POST", "/commands", &run, &about);
                    let default = json!({ "guard": { name.as_str(): null } });
                    place.ask("PATCH", "/sandboxes/shop", &default, &about);
                }
            }
        }
    }
    place.assert_whole();
}

#[test]
fn as_a_header() {
    let place = Place::new();
    let wish = json!({ "command": NEVER });
    for text in hostile() {
        // These end a header, or are none.
        let Some(value) = Some(text).filter(|text| !text.contains(['\0', '\r', '\n'])) else {
            continue;
        };
        for name in [
            "idempotency-key",
            "last-event-id",
            "if-match",
            "cookie",
            "origin",
            "host",
        ] {
            let with = place.admin.with(name, &value);
            let said = with.post("/commands", &wish);
            assert!(said.status < 500, "{name}: {}: {said:?}", brief(&value));
            let said = with.ask("PATCH", "/sandboxes/shop", &json!({}));
            assert!(said.status < 500, "{name}: {}: {said:?}", brief(&value));
        }
    }
    for bytes in ["\u{7f}", "\u{1}"] {
        let said = place
            .admin
            .with("idempotency-key", bytes)
            .post("/commands", &wish);
        assert!((400..500).contains(&said.status), "{said:?}");
    }
    place.assert_whole();
}
