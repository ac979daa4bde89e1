//! What happens, told as it happens, and to whom.

use std::io::BufReader;

use serde_json::{Value, json};

use crate::caller::{Caller, Line, add, add_here, audit, read_head, read_piece, sandbox};
use crate::support::{Home, Talk};

/// An open stream of events.
struct Stream {
    line: BufReader<Box<dyn Line>>,
    /// Read, and not yet told.
    text: String,
}

impl Stream {
    fn open(caller: &Caller, query: &str) -> Self {
        let address = format!("/agent/terminal/events{query}");
        let mut line = BufReader::new(caller.open("GET", &address, b""));
        let (status, head) = read_head(&mut line);
        assert_eq!(status, 200, "{head}");
        assert!(head.contains("text/event-stream"), "{head}");
        Self {
            line,
            text: String::new(),
        }
    }

    /// The same after an event.
    fn after(caller: &Caller, id: u64) -> Self {
        Self::open(&caller.with("last-event-id", &id.to_string()), "")
    }

    /// The data of the next event; none at the end. What is said about it twice
    /// is the same.
    fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let lines = event.lines();
                    let found = lines.filter_map(|line| line.strip_prefix(name)).next();
                    found.map(str::to_owned)
                };
                let told = (field("id: "), field("event: "), field("data: "));
                self.text = rest.to_owned();
                if let (Some(id), Some(name), Some(data)) = told {
                    let data: Value = serde_json::from_str(&data).unwrap();
                    assert_eq!((data["id"].to_string(), &data["event"]), (id, &json!(name)));
                    return Some(data);
                }
            }
            let piece = read_piece(&mut self.line);
            if piece.is_empty() {
                return None;
            }
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// The next so many.
    fn take(&mut self, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.next().expect("an event")).collect()
    }

    /// All up to one of this exact kind.
    fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut all = vec![];
        while all.last().is_none_or(|last: &Value| last["kind"] != kind) {
            all.push(self.next().expect("an event"));
        }
        all
    }
}

/// Events in short: their names, exact words and actors.
fn short(events: &[Value]) -> Vec<[&str; 3]> {
    let one = |event| ["event", "kind", "actor"].map(|field| text(event, field));
    events.iter().map(one).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap()
}

fn ids(events: &[Value]) -> Vec<u64> {
    events
        .iter()
        .map(|event| event["id"].as_u64().unwrap())
        .collect()
}

fn ask(caller: &Caller, command: &str) -> Value {
    let said = caller.post("/commands", &json!({ "command": command }));
    assert!(matches!(said.status, 200 | 202), "{said:?}");
    said.json()
}

fn agent(home: &Home, name: &str) -> Caller {
    let token = add_here(home, name, "agent");
    Caller::owner(home).bearing(&token)
}

#[test]
fn a_question_and_its_run_are_told_in_order() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let (owner, coder, me) = (Caller::owner(&home), agent(&home, "coder"), home.me());
    let mut stream = Stream::open(&owner, "");
    let run = ask(&coder, "touch made");
    let path = format!("/commands/{}", text(&run, "command_id"));
    let asked = stream.take(2);
    assert_eq!(
        short(&asked),
        [
            ["run.created", "run.waiting", "coder"],
            ["approval.created", "approval.asked", "coder"],
        ]
    );
    let approval = format!("/approvals/{}", text(&run, "approval_id"));
    owner
        .post(&format!("{approval}/extend"), &Value::Null)
        .expect(200);
    assert_eq!(
        short(&stream.take(1)),
        [["approval.updated", "approval.extended", me.as_str()]]
    );
    owner
        .post(&format!("{path}/approve"), &Value::Null)
        .expect(200);
    let told = stream.until("run.ended");
    assert_eq!(
        short(&told),
        [
            ["approval.closed", "approval.approved", me.as_str()],
            ["run.updated", "run.approved", me.as_str()],
            ["run.created", "run.started", "coder"],
            ["run.updated", "run.ended", "weighlock"],
        ]
    );
    let all = [asked, told].concat();
    assert!(ids(&all).is_sorted_by(|a, b| a < b), "{all:#?}");
    for event in &all {
        assert_eq!(event["sandbox_id"], "default", "{event}");
        let about = [("approval.", "approval_id"), ("run.", "command_id")];
        for (_, field) in about
            .iter()
            .filter(|(of, _)| text(event, "kind").starts_with(of))
        {
            assert_eq!(event[field], run[field], "{event}");
        }
        let entry = &audit(
            &home,
            &format!("after={}", event["id"].as_u64().unwrap() - 1),
        )[0];
        assert_eq!(
            (&entry["kind"], &entry["actor"]),
            (&event["kind"], &event["actor"])
        );
    }

    ask(&coder, "rm -rf /");
    assert_eq!(
        short(&stream.take(1)),
        [["run.created", "run.blocked", "policy"]]
    );
    let run = ask(&coder, "touch other");
    stream.take(2);
    coder.post(
        &format!("/commands/{}/withdraw", text(&run, "command_id")),
        &Value::Null,
    );
    let mut told = stream.take(2);
    told.sort_by_key(|event| event["kind"].to_string());
    assert_eq!(
        short(&told),
        [
            ["approval.closed", "approval.withdrawn", "coder"],
            ["run.updated", "run.withdrawn", "coder"],
        ]
    );
    owner
        .post("/policies/grants", &json!({ "pattern": "make all" }))
        .expect(200);
    owner.post("/pause", &Value::Null).expect(200);
    owner.post("/resume", &Value::Null).expect(200);
    assert_eq!(
        short(&stream.take(3)),
        [
            ["policy.changed", "grant.given", me.as_str()],
            ["principal.paused", "principal.paused", me.as_str()],
            ["principal.resumed", "principal.resumed", me.as_str()],
        ]
    );
}

#[test]
fn whoever_comes_back_misses_nothing_and_hears_nothing_twice() {
    let home = Home::new();
    let server = home.serve(&[]);
    let owner = Caller::owner(&home);
    let mut stream = Stream::open(&owner, "?after=0");
    ask(&owner, "echo 1");
    let first = stream.until("run.ended");
    let last = *ids(&first).last().unwrap();
    ask(&owner, "echo 2");
    stream.until("run.ended");
    server.kill();
    assert!(stream.next().is_none(), "it ends with its server");

    let _server = home.serve(&[]);
    ask(&owner, "echo 3");
    let whole = Stream::open(&owner, "?after=0").take(6);
    assert_eq!(whole[..2], first[first.len() - 2..]);
    let mut missed = Stream::after(&owner, last);
    assert_eq!(missed.take(4), whole[2..]);
    // What happens from now on follows what was missed; the header counts more
    // than the query.
    let with = owner.with("last-event-id", &ids(&whole)[4].to_string());
    let mut both = Stream::open(&with, "?after=0");
    assert_eq!(both.take(1), whole[5..]);
    ask(&owner, "echo 4");
    assert_eq!(missed.take(2), both.take(2));
    // Nothing is due to those who ask for no more than what comes.
    let mut fresh = Stream::open(&owner, "");
    ask(&owner, "echo 5");
    assert_eq!(fresh.take(2), missed.take(2));
    for odd in ["-1", "x", "1.5", ""] {
        let mut stream = Stream::open(&owner.with("last-event-id", odd), "");
        ask(&owner, "echo 6");
        assert_eq!(stream.take(2), missed.take(2), "{odd}");
    }
}

#[test]
fn each_hears_what_concerns_them() {
    let home = Home::new();
    let _server = home.serve(&[]);
    sandbox(&home, "near", json!({}));
    let (owner, coder, other) = (
        Caller::owner(&home),
        agent(&home, "coder"),
        agent(&home, "other"),
    );
    let one = json!({ "sandboxes": ["near"], "default_sandbox": "near" });
    let one = owner.bearing(&add(&home, "one", "approver", one));
    let began = audit(&home, "").len();
    let everything = |caller: &Caller| {
        // Something of their own ends what there is to hear.
        let pause = json!({ "principal": null });
        owner.post("/pause", &pause).expect(200);
        owner.post("/resume", &pause).expect(200);
        let mut stream = Stream::open(caller, &format!("?after={began}"));
        let mut all: Vec<Value> = vec![];
        let newest = audit(&home, "kind=principal.resumed").last().unwrap()["seq"].clone();
        while all.last().is_none_or(|last| last["id"] != newest) {
            all.push(stream.next().expect("an event"));
        }
        let told = all
            .iter()
            .filter(|event| event["kind"] != "principal.paused");
        told.map(|event| format!("{} {}", text(event, "kind"), text(event, "actor")))
            .filter(|told| !told.starts_with("principal.resumed"))
            .collect::<Vec<String>>()
    };
    ask(&coder, "true");
    ask(&other, "true");
    let near = json!({ "command": "true", "sandbox_id": "near" });
    other.post("/commands", &near).expect(200);
    owner
        .post("/policies/grants", &json!({ "pattern": "make all" }))
        .expect(200);
    let me = home.me();
    let run = |who: &str| [format!("run.started {who}"), "run.ended weighlock".into()];
    let grant = [format!("grant.given {me}")];
    assert_eq!(everything(&coder), run("coder"));
    assert_eq!(everything(&other), [run("other"), run("other")].concat());
    assert_eq!(everything(&one), [&run("other")[..], &grant].concat());
    let all = [&run("coder")[..], &run("other"), &run("other"), &grant].concat();
    assert_eq!(everything(&owner), all);

    // A pause is heard by whom it is about, and by those who know of everybody.
    let mut streams = [&coder, &one, &owner].map(|who| Stream::open(who, ""));
    for name in [json!("other"), json!("coder"), Value::Null] {
        let whose = json!({ "principal": name });
        owner.post("/pause", &whose).expect(200);
        owner.post("/resume", &whose).expect(200);
    }
    let pauses = audit(&home, "kind=principal.");
    let seq = |of: &[Value]| -> Vec<u64> {
        of.iter()
            .map(|entry| entry["seq"].as_u64().unwrap())
            .collect()
    };
    let last = seq(&pauses[pauses.len() - 6..]);
    for (stream, heard) in streams.iter_mut().zip([&last[2..], &last[4..], &last]) {
        assert_eq!(ids(&stream.take(heard.len())), heard);
    }
}

#[test]
fn a_stream_ends_when_its_reader_is_let_in_no_more() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let owner = Caller::owner(&home);
    let token = add(&home, "viewer", "viewer", json!({}));
    let mut stream = Stream::open(&owner.bearing(&token), "");
    ask(&owner, "true");
    stream.take(2);
    let path = format!("/people/viewer/tokens/{}", &token[..9]);
    owner.ask("DELETE", &path, &Value::Null).expect(204);
    ask(&owner, "true");
    assert_eq!(stream.next(), None);

    // Whose role has changed comes in again, as what they are now.
    let viewer = owner.bearing(&home.token("viewer"));
    let mut stream = Stream::open(&viewer, "");
    let patch = json!({ "role": "approver" });
    owner.ask("PATCH", "/people/viewer", &patch).expect(200);
    ask(&owner, "true");
    assert_eq!(stream.next(), None);
    let mut stream = Stream::open(&viewer, "");
    ask(&owner, "true");
    stream.take(2);
}

#[test]
fn whoever_has_missed_too_much_looks_at_everything_again() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let owner = Caller::owner(&home);
    let before = audit(&home, "").len() as u64;
    let mut talk = Talk::open(&home);
    // Each leaves one entry, and runs nothing.
    let nonsense = json!({ "command": "true", "cwd": "nowhere" });
    for _ in 0..=1000 {
        assert_eq!(talk.ask("POST", "/commands", &nonsense).status, 400);
    }
    let newest = before + 1001;
    for (after, expected) in [
        (before, Some(newest)),
        (0, Some(newest)),
        (newest + 1, Some(newest)),
        (u64::MAX, Some(newest)),
        (before + 1, None),
    ] {
        let mut stream = Stream::after(&owner, after);
        if let Some(newest) = expected {
            let reset = stream.next().unwrap();
            assert_eq!(
                (&reset["event"], &reset["id"]),
                (&json!("reset"), &json!(newest))
            );
        }
        drop(stream);
    }
    // After it, and for those who have missed just not too much, it goes on.
    let mut reset = Stream::after(&owner, before);
    let mut near = Stream::after(&owner, before + 1);
    ask(&owner, "true");
    assert_eq!(reset.next().unwrap()["event"], "reset");
    assert_eq!(
        short(&near.take(1)),
        [["run.created", "run.started", home.me().as_str()]]
    );
    assert_eq!(
        short(&reset.take(1)),
        [["run.created", "run.started", home.me().as_str()]]
    );
}
