//! What whoever looks after a server is told: by `doctor`, by numbers, by logs.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use serde_json::{Value, json};
use weighlock_api::{Check, Level};
use weighlock_engine::{Clock, Config, Engine, Nursery, Principal};

use crate::caller::{Caller, add};
use crate::generated::root;
use crate::support::{Home, Server, eventually, signal};

const DAY: i64 = 24 * 3600;

#[test]
fn doctor_tells_of_backups_room_clock_limits_and_account() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let found = |name: &str| {
        let done = home.call(&["doctor", "--json"]);
        let all: Value = serde_json::from_str(&done.out).unwrap();
        let all = all["checks"].as_array().unwrap();
        let found = all.iter().find(|check| check["name"] == name);
        found
            .unwrap_or_else(|| panic!("no {name}: {all:?}"))
            .clone()
    };
    assert_eq!(found("backup")["found"], "none was made yet");
    assert_eq!(home.call(&["backup"]).code, Some(0));
    assert_eq!(found("backup")["found"], "the last was made just now");
    for name in ["disk", "clock", "limits", "account", "metrics"] {
        assert_ne!(found(name)["level"], "problem", "{}", found(name));
    }
    // With a second person, it matters whose account it is.
    add(&home, "ana", "approver", Value::Null);
    let account = found("account");
    assert!(
        account["level"] == "ok" || !account["fix"].is_null(),
        "{account}"
    );
}

#[test]
fn doctor_tells_what_to_do_about_an_old_record_and_a_clock_that_was_set() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let now = Arc::new(AtomicI64::new(1_800_000_000));
        let clock = {
            let now = Arc::clone(&now);
            Clock::new(move || Timestamp::from_second(now.load(Ordering::Relaxed)).unwrap())
        };
        let program = env!("CARGO_BIN_EXE_weighlock").into();
        let nursery = Nursery::new(program, vec!["__nursery".into()]).unwrap();
        let base = dir.path().join("base");
        std::fs::create_dir(&base).unwrap();
        let config = Config::new(dir.path().join("state"), base);
        let engine = Engine::open(config, clock, nursery).await.unwrap();
        let who = Principal::library("test");
        let check = async |name: &str| -> Check {
            let all = engine.doctor().checks(&who).await.unwrap().checks;
            all.into_iter().find(|check| check.name == name).unwrap()
        };
        assert_eq!(check("backup").await.level, Level::Ok);
        assert_eq!(check("clock").await.level, Level::Ok);
        now.fetch_add(8 * DAY, Ordering::Relaxed);
        let (backup, clock) = (check("backup").await, check("clock").await);
        assert_eq!(backup.found, "none was ever made");
        assert!(backup.fix.unwrap().contains("weighlock backup DIR"));
        assert!(
            clock.found.contains("ahead while the server ran"),
            "{}",
            clock.found
        );
        assert!(clock.fix.is_some());
        engine.backups().create(None, &who).await.unwrap();
        assert_eq!(check("backup").await.level, Level::Ok);
        now.fetch_add(8 * DAY, Ordering::Relaxed);
        let backup = check("backup").await;
        assert_eq!(
            (backup.level, backup.found.as_str()),
            (Level::Hint, "the last was made 8 days ago")
        );
    });
}

fn counting(home: &Home) -> Server {
    home.serve_with("[metrics]\non = true\n")
}

fn metrics(home: &Home) -> String {
    let (status, page) = home.api_raw("GET", "/metrics", b"");
    assert_eq!(status, 200);
    String::from_utf8(page).unwrap()
}

/// The value of one line.
fn value(page: &str, line: &str) -> Option<f64> {
    let found = page
        .lines()
        .find_map(|one| one.strip_prefix(line)?.strip_prefix(' '));
    Some(found?.parse().unwrap())
}

#[test]
fn nothing_is_counted_unless_the_settings_say_so() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let (status, problem) = home.api("GET", "/metrics", &Value::Null);
    assert_eq!((status, &problem["code"]), (404, &json!("metrics_off")));
}

#[test]
fn what_happens_is_counted_in_the_format_of_prometheus() {
    let home = Home::new();
    let _server = counting(&home);
    home.ask("echo secret-word-1", Value::Null);
    home.ask("exit 3", Value::Null);
    home.api("GET", "/commands/nobody-has-this", &Value::Null);
    let term = home.start("until [ -e go ]; do sleep 0.02; done", Value::Null);
    eventually("the ends are counted", || {
        let page = metrics(&home);
        value(&page, "weighlock_runs_ended_total{state=\"succeeded\"}") == Some(1.0)
            && value(&page, "weighlock_runs_ended_total{state=\"failed\"}") == Some(1.0)
            && value(&page, "weighlock_runs_started_total{verdict=\"auto\"}") == Some(3.0)
    });
    let page = metrics(&home);
    assert_eq!(value(&page, "weighlock_runs_running"), Some(1.0));
    assert_eq!(
        value(&page, "weighlock_run_duration_seconds_count"),
        Some(2.0)
    );
    assert_eq!(
        value(&page, "weighlock_run_duration_seconds_bucket{le=\"+Inf\"}"),
        Some(2.0)
    );
    assert_eq!(value(&page, "weighlock_run_start_seconds_count"), Some(3.0));
    assert!(value(&page, "weighlock_store_commit_seconds_count").unwrap() >= 5.0);
    assert_eq!(
        value(&page, "weighlock_errors_total{code=\"no_such_run\"}"),
        Some(1.0)
    );
    assert!(value(&page, "process_resident_memory_bytes").unwrap() > 1e6);
    assert!(value(&page, "process_open_fds").unwrap() > 3.0);
    std::fs::write(home.base().join("go"), "").unwrap();
    home.ended(&term);
    // Nothing that somebody wrote, and no id, is in it.
    for word in ["secret-word-1", "exit 3", &term, "nobody-has-this"] {
        assert!(!page.contains(word), "{word}: {page}");
    }
    check_format(&page);
}

/// Every number has a type and a help before it, once; counters end in
/// `_total`, and buckets grow.
fn check_format(page: &str) {
    let mut types = std::collections::BTreeMap::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name, kind).is_none(), "{name} twice");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        value.parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
        let name = name.split('{').next().unwrap();
        let plain = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let known = types.contains_key(name)
            || plain.is_some_and(|name| types.get(name) == Some(&"histogram"));
        assert!(known, "{line}");
    }
}

#[test]
fn the_guide_names_numbers_that_there_are() {
    let home = Home::new();
    let _server = counting(&home);
    let (status, _) = home.api("POST", "/backups", &json!({}));
    assert_eq!(status, 201);
    let page = metrics(&home);
    let guide = std::fs::read_to_string(root().join("docs/operating.md")).unwrap();
    let apart = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let named = guide.split(apart).filter(|word| {
        let ours = word.strip_prefix("weighlock_");
        // `weighlock_*.deb` and `weighlock_engine=debug` are none.
        ours.is_some_and(|rest| rest.contains('_'))
    });
    let mut all = 0;
    for name in named {
        let name = name.trim_end_matches("_bucket");
        assert!(page.contains(&format!("# TYPE {name} ")), "{name}");
        all += 1;
    }
    assert!(all > 20, "{all}");
}

#[test]
fn only_people_who_may_see_everything_are_told_numbers() {
    let home = Home::new();
    let server = home.serve(&[
        "--listen",
        "127.0.0.1:0",
        "--config",
        &home.config("[metrics]\non = true\n"),
    ]);
    let agent = add(&home, "coder", "agent", Value::Null);
    let viewer = add(&home, "prometheus", "viewer", Value::Null);
    let stranger = Caller::stranger(&server);
    stranger.get("/metrics").expect(401);
    assert_eq!(
        stranger.bearing(&agent).get("/metrics").expect(403)["code"],
        "not_allowed"
    );
    let told = stranger.bearing(&viewer).get("/metrics");
    let kind = told.header("content-type").unwrap_or_default();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
}

#[test]
fn questions_and_decisions_are_counted() {
    let home = Home::strict();
    let _server = counting(&home);
    let (_, run) = home.ask("touch x", json!({ "wait_ms": 0 }));
    assert_eq!(run["state"], "waiting", "{run}");
    eventually("it is asked", || {
        let page = metrics(&home);
        value(&page, "weighlock_questions_total") == Some(1.0)
            && value(&page, "weighlock_questions_waiting") == Some(1.0)
    });
    let id = run["command_id"].as_str().unwrap();
    let (status, told) = home.api("POST", &format!("/commands/{id}/reject"), &json!({}));
    assert_eq!(status, 200, "{told}");
    eventually("it is decided", || {
        let page = metrics(&home);
        value(&page, "weighlock_decisions_total{decision=\"rejected\"}") == Some(1.0)
            && value(&page, "weighlock_runs_ended_total{state=\"rejected\"}") == Some(1.0)
            && value(&page, "weighlock_questions_waiting") == Some(0.0)
    });
}

#[test]
fn a_run_that_is_lost_is_seen_to_grow_from_none() {
    const LOST: &str = "weighlock_runs_ended_total{state=\"lost\"}";
    let home = Home::new();
    let server = counting(&home);
    assert_eq!(value(&metrics(&home), LOST), Some(0.0));
    let run = home.start("sleep 1000", Value::Null);
    eventually("it runs", || home.get(&run)["state"] == "running");
    let keeper = home.keeper(&run);
    server.kill();
    signal(keeper, "KILL");
    // What was lost with the server is counted before anybody can ask.
    let _server = counting(&home);
    eventually("it is lost", || home.get(&run)["state"] == "lost");
    assert_eq!(value(&metrics(&home), LOST), Some(1.0));
    let guide = std::fs::read_to_string(root().join("docs/operating.md")).unwrap();
    assert!(
        guide.contains(&format!("{LOST} offset 1h")),
        "a series that begins with 1"
    );
}

#[test]
fn a_port_that_is_taken_is_told_as_json_too() {
    let mut home = Home::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    home.set("WEIGHLOCK_LOG_FORMAT", "json");
    let settings = home.config(&format!("listen = \"{address}\"\n"));
    let mut child = home
        .weighlock(&["serve", "--config", &settings])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("it serves", || home.call(&["runs"]).code == Some(0));
    assert_eq!(home.call(&["serve", "--stop"]).code, Some(0));
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    let lines: Vec<Value> = { said.lines() }
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let told = lines
        .iter()
        .any(|line| line["level"] == "WARN" && line["fields"]["address"] == address.to_string());
    assert!(told, "{said}");
}

#[test]
fn doctor_looks_at_the_settings_that_the_server_read() {
    let home = Home::new();
    let path = home.config("[metrics]\non = true\n");
    let _server = home.serve(&["--config", &path]);
    let settings = || {
        let done = home.call(&["doctor", "--json"]);
        let all: Value = serde_json::from_str(&done.out).unwrap();
        let all = all["checks"].as_array().unwrap().clone();
        let found = all.into_iter().find(|check| check["name"] == "settings");
        found.expect("a line about settings")
    };
    assert_eq!(settings()["found"], path);
    assert_eq!(settings()["level"], "ok");
    eventually("a file that was written since", || {
        home.config("[metrics]\non = false\n");
        settings()["level"] == "hint"
    });
    let found = settings()["found"].as_str().unwrap().to_owned();
    assert!(
        found.ends_with("changed since the server started"),
        "{found}"
    );
}

#[test]
fn logs_are_json_where_that_is_said_and_hold_no_secret() {
    let mut home = Home::new();
    home.set("WEIGHLOCK_LOG", "debug");
    let mut child = home
        .weighlock(&["serve", "--listen", "off", "--log-format", "json"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Not by a call of ours, which would start another.
    let socket = home.state().join("weighlock.sock");
    eventually("it serves", || UnixStream::connect(&socket).is_ok());
    let token = add(&home, "coder", "agent", Value::Null);
    Caller::owner(&home).bearing(&token).get("/me").expect(200);
    home.ask(
        "echo secret-word-2",
        json!({ "env": { "KEY": "secret-word-3" } }),
    );
    assert_eq!(home.call(&["serve", "--stop"]).code, Some(0));
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    child.wait().unwrap();
    for word in [&token, "secret-word-2", "secret-word-3"] {
        assert!(!said.contains(word), "{word}: {said}");
    }
    let lines: Vec<Value> = { said.lines() }
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let serves = lines
        .iter()
        .find(|line| line["fields"]["message"] == "serves");
    let serves = serves.unwrap_or_else(|| panic!("{said}"));
    assert_eq!(serves["level"], "INFO");
    assert!(
        serves["timestamp"].is_string() && serves["target"].is_string(),
        "{serves}"
    );
    assert_eq!(
        lines.len(),
        said.lines().count(),
        "nothing but JSON: {said}"
    );
}
