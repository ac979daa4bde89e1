//! Made-up requests to every address of the service: whatever comes, the
//! answer is no failure of ours, and the server stays well.
//!
//! `WL_RANDOM=100000 WL_SEED=7` looks longer, elsewhere. Fuzzing by coverage
//! would have to build the whole server with other flags, which takes minutes.

use serde_json::{Map, Value, json};

use crate::support::Home;

/// How many requests are made unless `WL_RANDOM` says so.
const REQUESTS: u64 = 1500;

/// The description of the service.
const DOCUMENT: &str = include_str!("../../../../docs/openapi.json");

/// These answer for as long as somebody listens, wait, or tell others.
const LEFT_OUT: [&str; 7] = [
    "/events",
    "/stream",
    "/wait",
    "/test",
    "/signin",
    "/signin/link",
    "/signout",
];

/// How long something waits is left to the server; so is whom it may lock out.
const UNSAID: [&str; 4] = ["wait_ms", "follow", "grace_ms", "uid"];

/// Values that were trouble somewhere.
const ODD: [&str; 14] = [
    "",
    "ls",
    "touch x",
    "rm -rf /",
    "\0",
    "a\nb",
    "\u{202e}x",
    "r_",
    "../..",
    "default",
    "99999999999999999999",
    "-1",
    "\u{1f600}",
    "echo '",
];

#[test]
fn made_up_requests_are_answered_and_never_by_a_failure() {
    let number = |name: &str, usual| std::env::var(name).map_or(usual, |it| it.parse().unwrap());
    let (requests, seed) = (number("WL_RANDOM", REQUESTS), number("WL_SEED", 1));
    println!("seed {seed}");
    let home = Home::strict();
    let mut server = home.serve(&[]);
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let known = known(&home);
    let mut made = Maker {
        dice: seed * 2 + 1,
        document: &document,
        known,
    };
    for n in 0..requests {
        let (method, address, body) = made.request();
        let (status, said) = home.api_raw(&method, &address, &body);
        let said = String::from_utf8_lossy(&said);
        let body = String::from_utf8_lossy(&body);
        assert!(
            status < 500,
            "{n}: {method} {address} {body}: {status} {said}"
        );
    }
    assert_eq!(
        server.child.try_wait().unwrap(),
        None,
        "the server stays up"
    );
    assert_eq!(home.api("GET", "/health", &Value::Null).0, 200);
    home.assert_audit_verifies();
}

/// Ids of things that are there.
fn known(home: &Home) -> Vec<String> {
    let (_, ran) = home.ask("echo hi", Value::Null);
    let (_, waits) = home.ask("touch made", json!({ "wait_ms": 0 }));
    let mut known = vec!["default".to_owned(), "server".to_owned(), home.me()];
    for (of, name) in [
        (&ran, "command_id"),
        (&ran, "session_id"),
        (&waits, "approval_id"),
    ] {
        known.extend(of[name].as_str().map(str::to_owned));
    }
    known
}

struct Maker<'a> {
    dice: u64,
    document: &'a Value,
    known: Vec<String>,
}

impl Maker<'_> {
    /// Method, path with query, and body.
    fn request(&mut self) -> (String, String, Vec<u8>) {
        let paths = self.document["paths"].as_object().expect("addresses");
        let wanted = |path: &&String| !LEFT_OUT.iter().any(|end| path.ends_with(end));
        let all: Vec<&String> = paths.keys().filter(wanted).collect();
        let path = all[self.below(all.len())];
        let deeds = paths[path].as_object().expect("methods");
        let (method, deed) = deeds.iter().nth(self.below(deeds.len())).expect("one");
        let deed = deed.clone();
        let mut address = path.trim_start_matches("/agent/terminal").to_owned();
        while let (Some(from), Some(to)) = (address.find('{'), address.find('}')) {
            let id = self.word();
            address.replace_range(from..=to, &escaped(&id));
        }
        address.push_str(&self.query(&deed));
        let body = self.body(&deed);
        (method.to_uppercase(), address, body)
    }

    fn query(&mut self, deed: &Value) -> String {
        let mut query = String::new();
        for parameter in deed["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap_or_default();
            if parameter["in"] == "query" && self.below(2) == 0 && !UNSAID.contains(&name) {
                let sign = if query.is_empty() { '?' } else { '&' };
                let value = self.word();
                query.push_str(&format!("{sign}{name}={}", escaped(&value)));
            }
        }
        query
    }

    fn body(&mut self, deed: &Value) -> Vec<u8> {
        let schema = &deed["requestBody"]["content"]["application/json"]["schema"];
        let mut bytes = match schema.is_null() {
            true => self.word().into_bytes(),
            false => self.value(&schema.clone(), 0).to_string().into_bytes(),
        };
        // Now and then it is broken on its way.
        if self.below(6) == 0 && !bytes.is_empty() {
            let at = self.below(bytes.len());
            bytes[at] = self.next() as u8;
        }
        bytes
    }

    /// Something that the schema describes, more or less.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if depth > 6 || self.below(12) == 0 {
            return self.anything();
        }
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap_or_default();
            let named = self.document["components"]["schemas"][name].clone();
            return self.value(&named, depth + 1);
        }
        for several in ["anyOf", "oneOf", "allOf", "enum"] {
            if let Some(all) = schema[several].as_array().filter(|all| !all.is_empty()) {
                let one = all[self.below(all.len())].clone();
                return if several == "enum" {
                    one
                } else {
                    self.value(&one, depth + 1)
                };
            }
        }
        if !schema["const"].is_null() {
            return schema["const"].clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds[self.below(kinds.len())].clone(),
            kind => kind.clone(),
        };
        match kind.as_str() {
            Some("object") => self.object(schema, depth),
            Some("array") => (0..self.below(3))
                .map(|_| self.value(&schema["items"], depth + 1))
                .collect(),
            Some("string") => self.word().into(),
            Some("boolean") => (self.below(2) == 0).into(),
            Some("integer" | "number") => self.number(),
            _ => self.anything(),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut object = Map::new();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, of) in schema["properties"].as_object().into_iter().flatten() {
            let must = required.iter().any(|one| one == name);
            if !UNSAID.contains(&name.as_str()) && (must || self.below(3) == 0) {
                object.insert(name.clone(), self.value(of, depth + 1));
            }
        }
        object.into()
    }

    fn anything(&mut self) -> Value {
        match self.below(6) {
            0 => Value::Null,
            1 => json!([]),
            2 => json!({}),
            3 => json!([[{ "": [null] }]]),
            4 => self.number(),
            _ => self.word().into(),
        }
    }

    fn number(&mut self) -> Value {
        let all = [
            json!(0),
            json!(1),
            json!(-1),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(1e300),
            json!(0.5),
        ];
        all[self.below(all.len())].clone()
    }

    fn word(&mut self) -> String {
        match self.below(3) {
            0 => ODD[self.below(ODD.len())].to_owned(),
            1 => {
                let which = self.below(self.known.len());
                self.known[which].clone()
            }
            _ => (0..self.below(12))
                .map(|_| char::from(self.next() as u8))
                .collect(),
        }
    }

    fn below(&mut self, sides: usize) -> usize {
        (self.next() % sides.max(1) as u64) as usize
    }

    /// Xorshift: the same each time.
    fn next(&mut self) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice >> 8
    }
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}
