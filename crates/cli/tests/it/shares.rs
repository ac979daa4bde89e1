//! One principal against the others: none of them takes all that there is, over
//! TCP, of runs, terminals and questions, and of the record.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::caller::{Caller, Line};
use crate::crew::{Crew, text};
use crate::support::{Home, eventually};

/// Connections over TCP of those who are known, and of strangers.
const CONNECTIONS: usize = 256;

/// After this time the server closes a connection that has said nothing.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// Somebody of the crew, over TCP.
fn over_tcp(crew: &Crew, who: &str) -> Caller {
    let stranger = Caller::stranger(crew.server());
    stranger.bearing(crew.token(who))
}

/// Opens a stream of events, if that is answered.
fn stream(caller: &Caller) -> Result<Box<dyn Line>, u16> {
    let mut line = caller.open("GET", "/agent/terminal/events", b"");
    let mut head = [0; 12];
    line.read_exact(&mut head).unwrap();
    match &head {
        b"HTTP/1.1 200" => Ok(line),
        _ => Err(String::from_utf8_lossy(&head[9..]).parse().unwrap()),
    }
}

#[test]
fn streams_of_one_agent_leave_tcp_to_others() {
    let crew = Crew::on_tcp();
    let coder = over_tcp(&crew, "coder");
    let streams: Vec<_> = (0..CONNECTIONS).map(|_| stream(&coder)).collect();
    let open = streams.iter().filter(|stream| stream.is_ok()).count();
    assert!((64..CONNECTIONS / 2).contains(&open), "{open}");
    let refused = coder.get("/health");
    assert_eq!(refused.outcome(), (429, "too_many_connections".into()));
    let told = refused.json();
    let told = told["detail"].as_str().unwrap();
    assert!(
        told.starts_with(&format!("agent `coder` has {open} of the 256 connections")),
        "{told}"
    );
    // Another agent does the same, and people come in nevertheless.
    let linter = over_tcp(&crew, "linter");
    let more: Vec<_> = (0..CONNECTIONS).map(|_| stream(&linter)).collect();
    assert!(more.iter().any(Result::is_ok));
    for who in ["ana", "ben", "olga"] {
        let caller = over_tcp(&crew, who);
        let own: Vec<_> = (0..4).map(|_| stream(&caller)).collect();
        assert!(own.iter().all(Result::is_ok), "{who}");
        caller.get("/commands").expect(200);
    }
    // What was closed is free again.
    drop((streams, more));
    eventually("there is room", || coder.get("/commands").status == 200);
}

#[test]
fn strangers_who_say_nothing_keep_nobody_out() {
    let crew = Crew::on_tcp();
    let address = crew.server().address();
    let ana = over_tcp(&crew, "ana");
    let stays = stream(&ana).ok().unwrap();
    let began = Instant::now();
    // More than there are places, silent, in the middle of a request, and with
    // a request that anybody may make.
    let crowd: Vec<TcpStream> = (0..3 * CONNECTIONS)
        .map(|n| {
            let mut one = TcpStream::connect(&address).unwrap();
            let said = match n % 3 {
                0 => "".to_owned(),
                1 => "GET / HTTP/1.1\r\nhost:".to_owned(),
                _ => format!("GET / HTTP/1.1\r\nhost: {address}\r\n\r\n"),
            };
            let _ = one.write_all(said.as_bytes());
            one
        })
        .collect();
    ana.get("/commands").expect(200);
    let waited = began.elapsed();
    assert!(
        waited < HEAD_WITHIN,
        "let in when others had gone by themselves: {waited:?}"
    );
    drop((crowd, stays));
}

#[test]
fn sleeps_of_one_agent_leave_runs_to_others() {
    let crew = Crew::with("preset = \"blacklist\"\n[limits]\nrunning_max = 12\n");
    let sleep = |who: &str| crew.ask(who, "sleep 60", json!({ "background": true }));
    let asked: Vec<u16> = (0..14).map(|_| sleep("coder").status).collect();
    let began = asked.iter().filter(|&&status| status == 202).count();
    assert_eq!(began, 5, "{asked:?}");
    let refused = sleep("coder");
    assert_eq!(refused.outcome(), (503, "too_many_runs".into()));
    let refused = refused.json();
    assert_eq!(
        refused["detail"],
        "agent `coder` uses 5 of 12 runs, and the rest is reserved for others; \
         nothing was run"
    );
    for who in ["linter", "ana", "owner"] {
        sleep(who).expect(202);
    }
    // However many agents there are, a person's run begins.
    while sleep("linter").status == 202 {}
    let ended = crew.ask("olga", "echo through", Value::Null).expect(200);
    assert_eq!(ended["stdout"], "through\n");
}

#[test]
fn terminals_of_one_agent_leave_some_to_others() {
    let crew = Crew::with("preset = \"blacklist\"\n[limits]\nrunning_max = 6\n");
    let open = |who: &str, name: &str| {
        let body = json!({ "name": name, "description": "a shell", "command": "sleep 60" });
        crew.call(who).post("/terminals", &body)
    };
    let opened = (0..8).map(|n| open("coder", &format!("t{n}")).status);
    let opened: Vec<u16> = opened.collect();
    assert!(
        opened.iter().filter(|&&status| status < 300).count() <= 3,
        "{opened:?}"
    );
    assert_eq!(
        open("coder", "more").outcome(),
        (503, "too_many_runs".into())
    );
    assert!(open("owner", "mine").status < 300);
    assert!(open("linter", "ours").status < 300);
}

#[test]
fn questions_of_one_agent_leave_some_to_others() {
    let crew = Crew::with("[approvals]\nmax_pending = 5\n[effects]\nreview = \"before\"\n");
    for n in 0..5 {
        crew.waiting("coder", &format!("touch made{n}"), Value::Null);
    }
    let refused = crew.ask("coder", "touch more", Value::Null);
    assert_eq!(refused.outcome(), (429, "too_many_waiting".into()));
    for who in ["linter", "ana", "owner"] {
        crew.waiting(who, "touch mine", Value::Null);
    }
    assert_eq!(crew.inbox().len(), 8);
}

/// Bytes of the database, with what is not yet in its file.
fn database(home: &Home) -> u64 {
    let size = |name: &str| {
        let meta = std::fs::metadata(home.state().join(name));
        meta.map_or(0, |meta| meta.len())
    };
    size("weighlock.db") + size("weighlock.db-wal")
}

const MIB: u64 = 1024 * 1024;

#[test]
fn refused_commands_do_not_fill_the_record() {
    let crew = Crew::new();
    let long = format!("sudo {}", "x".repeat(110_000));
    let before = database(&crew.home);
    // As many would take 50 MiB if they were stored whole.
    for n in 1000..1200 {
        let refused = crew.ask("coder", &format!("{long}{n}"), Value::Null);
        assert_eq!(refused.expect(200)["state"], "blocked", "{n}");
    }
    let grown = database(&crew.home) - before;
    assert!(grown < 10 * MIB, "{} MiB", grown / MIB);
    // The whole is told by its length and its hash.
    let run = crew.home.newest();
    assert_eq!(text(&run, "command").len(), 4096);
    let warned = run["warnings"].to_string();
    assert!(warned.contains("of its 110009 bytes"), "{warned}");
    assert!(warned.contains("SHA-256"), "{warned}");
    let query = format!("run={}", text(&run, "command_id"));
    let entries = crate::caller::audit(&crew.home, &query);
    assert_eq!(entries[0]["detail"]["command_bytes"], 110_009);
    crew.home.assert_audit_verifies();
}

#[test]
fn one_principal_fills_a_part_of_the_record() {
    let crew = Crew::with("[store]\nquota_mib = 1\n");
    let asked = (0..2000).map(|n| crew.ask("coder", &format!("sudo {n}"), Value::Null));
    let refused = asked.into_iter().position(|said| said.status == 429);
    let taken = refused.expect("some day it is enough");
    assert!(taken > 100, "{taken}");
    let count = |sql: &str| -> i64 {
        let database = Connection::open(crew.home.state().join("weighlock.db")).unwrap();
        database.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let entries = count("SELECT count(*) FROM audit");
    for _ in 0..20 {
        let refused = crew.ask("coder", "ls", Value::Null);
        assert_eq!(refused.outcome(), (429, "over_quota".into()));
        let told = crew.call("coder").post("/people/coder/tokens", &json!({}));
        assert_eq!(told.status, 403);
    }
    assert_eq!(
        count("SELECT count(*) FROM audit"),
        entries,
        "nothing more is recorded"
    );
    let told = "SELECT count(*) FROM audit WHERE kind = 'principal.over_quota'";
    assert_eq!(count(told), 1, "but that");
    // Others go on.
    for who in ["linter", "owner"] {
        crew.ask(who, "ls", Value::Null).expect(200);
    }
    crew.home.assert_audit_verifies();
}

#[test]
fn a_body_that_is_too_large_is_refused_before_it_comes() {
    let crew = Crew::on_tcp();
    for caller in [crew.call("coder"), over_tcp(&crew, "coder")] {
        for (address, length) in [
            ("/agent/terminal/commands", 10usize << 30),
            ("/agent/terminal/commands", 4 * 1024 * 1024 + 1),
            ("/mcp", 10 << 30),
        ] {
            let mut line = caller.begin("POST", address, length);
            // Nothing of it is sent.
            let mut said = vec![];
            line.read_to_end(&mut said).unwrap();
            let said = String::from_utf8_lossy(&said).to_lowercase();
            assert!(said.starts_with("http/1.1 413"), "{address}: {said}");
            assert!(said.contains("connection: close"), "{address}: {said}");
        }
    }
}

#[test]
fn no_answer_is_kept_by_anybody_on_the_way() {
    let crew = Crew::on_tcp();
    let (owner, coder) = (crew.call("owner"), crew.call("coder"));
    let stranger = Caller::stranger(crew.server());
    let check = |caller: &Caller, method: &str, address: &str| {
        let said = caller.send(method, address, b"{}");
        let kept = said.header("cache-control");
        assert_eq!(kept, Some("no-store"), "{method} {address}: {}", said.head);
        said.status
    };
    let run = crew.ask("coder", "echo private", Value::Null).expect(200);
    let id = text(&run, "command_id");
    for path in ["", "/output", "/output/raw", "/stream", "/audit"] {
        let address = format!("/agent/terminal/commands/{id}{path}");
        assert_eq!(check(&owner, "GET", &address), 200, "{path}");
    }
    let document = owner.get("/openapi.json").expect(200);
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let (method, address) = (method.to_uppercase(), path.replace(['{', '}'], ""));
            check(&coder, &method, &address);
            check(&stranger, &method, &address);
            if method == "GET" {
                check(&owner, &method, &address);
            }
            seen += 1;
        }
    }
    assert!(seen > 80, "{seen}");
    check(&stranger, "GET", "/");
    let said = owner.send("POST", "/mcp", b"{}");
    assert_eq!(
        said.header("cache-control"),
        Some("no-store"),
        "{}",
        said.head
    );
}
