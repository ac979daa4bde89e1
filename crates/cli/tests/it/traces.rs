//! Where the time of a run goes is told to a collector, and only what may be.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{Home, eventually, skip};

/// A little collector: takes what it is sent, and keeps it.
struct Collector {
    address: String,
    bodies: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::<Mutex<Vec<_>>>::default();
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(stream);
                let (mut first, mut length) = (String::new(), 0);
                lines.read_line(&mut first).unwrap();
                loop {
                    let mut line = String::new();
                    lines.read_line(&mut line).unwrap();
                    let line = line.trim().to_ascii_lowercase();
                    if let Some(value) = line.strip_prefix("content-length: ") {
                        length = value.parse().unwrap();
                    }
                    if line.is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                lines.read_exact(&mut body).unwrap();
                let body = serde_json::from_slice(&body).unwrap();
                kept.lock().unwrap().push((first.trim().to_owned(), body));
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                let _ = lines.get_mut().write_all(answer);
            }
        });
        Self { address, bodies }
    }

    fn spans(&self) -> Vec<Value> {
        let bodies = self.bodies.lock().unwrap();
        let spans = bodies.iter().flat_map(|(_, body)| {
            let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
            spans.as_array().unwrap().clone()
        });
        spans.collect()
    }

    fn named(&self, name: &str) -> Option<Value> {
        self.spans().into_iter().find(|span| span["name"] == name)
    }
}

/// An attribute of a span.
fn known(span: &Value, name: &str) -> Value {
    let all = span["attributes"].as_array().unwrap();
    let found = all
        .iter()
        .find(|one| one["key"] == format!("weighlock.{name}"));
    found.map_or(Value::Null, |one| one["value"].clone())
}

#[test]
fn each_stage_of_a_run_is_a_span_of_one_trace_without_its_text() {
    let collector = Collector::open();
    let home = Home::new();
    let _server = home.serve_with(&format!("[traces]\nendpoint = \"{}\"\n", collector.address));
    let (_, run) = home.ask("echo secret-word-4; exit 3", Value::Null);
    let stages = ["judge", "permit", "start", "execute", "run"];
    eventually("all is told", || {
        stages.iter().all(|name| collector.named(name).is_some())
    });
    let root = collector.named("run").unwrap();
    assert_eq!(root["parentSpanId"], "");
    assert_eq!(known(&root, "run")["stringValue"], run["command_id"]);
    assert_eq!(known(&root, "state")["stringValue"], "failed");
    assert_eq!(known(&root, "exit_code")["intValue"], "3");
    assert!(known(&root, "walls")["stringValue"].is_string(), "{root}");
    assert_eq!(root["status"]["code"], 2);
    assert_eq!(
        known(&collector.named("permit").unwrap(), "verdict")["stringValue"],
        "auto"
    );
    for name in stages {
        let span = collector.named(name).unwrap();
        assert_eq!(span["traceId"], root["traceId"], "{span}");
        assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
        assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
        if name != "run" {
            assert_eq!(span["parentSpanId"], root["spanId"], "{span}");
        }
        let time = |name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap();
        assert!(
            time("startTimeUnixNano") <= time("endTimeUnixNano"),
            "{span}"
        );
    }
    let bodies = collector.bodies.lock().unwrap();
    for (first, body) in bodies.iter() {
        assert_eq!(first, "POST /v1/traces HTTP/1.1");
        assert!(!body.to_string().contains("secret-word-4"), "{body}");
        let service = &body["resourceSpans"][0]["resource"]["attributes"][0];
        assert_eq!(
            service,
            &json!({ "key": "service.name", "value": { "stringValue": "weighlock" } })
        );
    }
}

#[test]
fn a_question_and_a_commit_are_spans_and_the_text_is_told_where_the_settings_say_so() {
    let collector = Collector::open();
    let home = Home::strict();
    let settings = format!(
        "[traces]\nendpoint = \"{}\"\ncommands = true\n",
        collector.address
    );
    let _server = home.serve_with(&settings);
    let (_, run) = home.ask("touch told", json!({ "wait_ms": 0 }));
    let id = run["command_id"].as_str().unwrap();
    let (status, told) = home.api("POST", &format!("/commands/{id}/approve"), &json!({}));
    assert!(status < 300, "{told}");
    eventually("all is told", || {
        ["ask", "execute", "run"]
            .iter()
            .all(|name| collector.named(name).is_some())
    });
    let ask = collector.named("ask").unwrap();
    assert_eq!(known(&ask, "answer")["stringValue"], "approved");
    let permit = collector.named("permit").unwrap();
    assert_eq!(known(&permit, "command")["stringValue"], "touch told");
}

#[test]
fn what_is_tried_and_rejected_is_one_run_with_one_span_that_covers_its_stages() {
    let collector = Collector::open();
    let home = Home::untouched();
    let settings = format!(
        "[metrics]\non = true\n[effects]\nreview = \"effects\"\n[traces]\nendpoint = \"{}\"\n",
        collector.address
    );
    let _server = home.serve_with(&settings);
    let (_, run) = home.ask("touch tried", json!({ "wait_ms": 0 }));
    let id = run["command_id"].as_str().unwrap();
    eventually("it waits", || home.get(id)["state"] == "waiting");
    if home.get(id)["changes"]["state"] != "held" {
        skip("this machine shows no copies");
        return;
    }
    let ended = || {
        let (_, page) = home.api_raw("GET", "/metrics", b"");
        let page = String::from_utf8(page).unwrap();
        let all = page
            .lines()
            .filter(|line| line.starts_with("weighlock_runs_ended_total{"));
        let some = all.filter(|line| !line.ends_with(" 0"));
        some.map(str::to_owned).collect::<Vec<_>>()
    };
    eventually("it was run", || collector.named("execute").is_some());
    assert_eq!(ended(), Vec::<String>::new(), "nobody has decided");
    let (status, told) = home.api("POST", &format!("/commands/{id}/reject"), &json!({}));
    assert_eq!(status, 200, "{told}");
    eventually("it is told", || collector.named("run").is_some());
    assert_eq!(
        ended(),
        ["weighlock_runs_ended_total{state=\"rejected\"} 1"]
    );
    let spans = collector.spans();
    let time = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<u128>().unwrap();
    let roots: Vec<_> = spans.iter().filter(|span| span["name"] == "run").collect();
    assert_eq!(roots.len(), 1, "{spans:?}");
    assert_eq!(known(roots[0], "state")["stringValue"], "rejected");
    for name in ["judge", "permit", "start", "execute", "settle", "ask"] {
        let span = spans.iter().find(|span| span["name"] == name);
        let span = span.unwrap_or_else(|| panic!("no {name}: {spans:?}"));
        assert!(
            time(roots[0], "startTimeUnixNano") <= time(span, "startTimeUnixNano")
                && time(span, "endTimeUnixNano") <= time(roots[0], "endTimeUnixNano"),
            "{span} is not in {}",
            roots[0]
        );
    }
    let ids: std::collections::BTreeSet<_> = { spans.iter() }
        .map(|span| span["spanId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), spans.len(), "{spans:?}");
    let (ask, execute) = (collector.named("ask"), collector.named("execute"));
    assert!(
        time(&ask.unwrap(), "startTimeUnixNano") + 1_000_000
            >= time(&execute.unwrap(), "startTimeUnixNano"),
        "people are asked about what was run"
    );
}

#[test]
fn an_endpoint_with_a_password_or_without_a_host_is_refused_and_not_repeated() {
    let home = Home::new();
    for (endpoint, why) in [
        ("http://user:s3cret@127.0.0.1:4318", "before its host"),
        ("https://s3cret@collector", "before its host"),
        ("http://", "is not an address"),
        ("http:///v1", "is not an address"),
        ("http://:4318", "is not an address"),
    ] {
        let settings = home.config(&format!("[traces]\nendpoint = \"{endpoint}\"\n"));
        let refused = home.try_serve(&["--config", &settings]);
        let done = refused
            .err()
            .unwrap_or_else(|| panic!("{endpoint} is taken"));
        assert!(done.err.contains(why), "{endpoint}: {done:?}");
        assert!(!done.err.contains("s3cret"), "{done:?}");
    }
}

#[test]
fn a_collector_that_is_away_costs_spans_and_nothing_else() {
    let home = Home::new();
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let settings = format!("[metrics]\non = true\n[traces]\nendpoint = \"http://{gone}\"\n");
    let _server = home.serve_with(&settings);
    let (_, run) = home.ask("echo fine", Value::Null);
    assert_eq!(run["stdout"], "fine\n");
    eventually("spans are counted as lost", || {
        let (_, page) = home.api_raw("GET", "/metrics", b"");
        let page = String::from_utf8(page).unwrap();
        let lost = page
            .lines()
            .find_map(|line| line.strip_prefix("weighlock_spans_lost_total "));
        lost.is_some_and(|lost| lost != "0")
    });
    let doctor = home.call(&["doctor"]);
    assert!(
        doctor.out.contains("spans of traces were lost"),
        "{doctor:?}"
    );
    assert!(doctor.out.contains("see that the collector"), "{doctor:?}");
}
