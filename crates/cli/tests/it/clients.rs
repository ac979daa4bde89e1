//! Clients come and go, many of them, and nothing of them stays.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Home, Talk, children, eventually};

/// How many runs a soak has unless `WL_SOAK` says so.
const SOAK: usize = 1000;

/// How many keepers the nursery has ready at the most.
const READY: usize = 4;

#[test]
fn a_run_goes_on_when_its_client_vanishes() {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut talk = Talk::open(&home);
    let command = "echo begun >> ran; until [ -e go ]; do sleep 0.02; done; echo done; exit 9";
    talk.send("POST", "/commands", &home.wish(command, Value::Null));
    eventually("it runs", || home.lines("ran") == ["begun"]);
    drop(talk);
    let (_, list) = home.api("GET", "/commands", &Value::Null);
    let run = &list["commands"][0];
    assert_eq!(run["state"], "running", "{run}");
    fs::write(home.base().join("go"), "").unwrap();
    let run = home.ended(run["command_id"].as_str().expect("an id"));
    assert_eq!(
        (&run["exit_code"], &run["stdout"]),
        (&json!(9), &json!("done\n")),
        "{run}"
    );
    assert_eq!(home.lines("ran"), ["begun"]);
    home.assert_audit_verifies();
    drop(server);
}

#[test]
fn clients_that_vanish_leave_no_descriptor_behind() {
    let home = Home::new();
    let server = home.serve(&[]);
    let pid = server.child.id();
    home.ask("true", Value::Null);
    let before = settled(|| descriptors(pid));
    for n in 0..200 {
        let mut talk = Talk::open(&home);
        let more = if n % 2 == 0 {
            "sleep 0.2"
        } else {
            "yes | head -c 100000"
        };
        let command = format!("touch begun{n}; {more}; echo {n} >> ran");
        talk.send("POST", "/commands", &home.wish(&command, Value::Null));
        // Some leave before their request is read.
        if n % 4 < 2 {
            let begun = home.base().join(format!("begun{n}"));
            eventually("it has begun", || begun.exists());
        }
    }
    eventually("all that were begun are recorded", || {
        let (_, list) = home.api("GET", "/commands?limit=500", &Value::Null);
        let runs = list["commands"].as_array().expect("a list");
        runs.len() == home.lines("ran").len() + 1 && runs.iter().all(|run| run["open"] == false)
    });
    assert!(home.lines("ran").len() >= 100);
    eventually("descriptors are as before", || descriptors(pid) <= before);
    check_no_zombies(pid);
    home.assert_audit_verifies();
}

#[test]
fn a_thousand_runs_leave_nothing_behind() {
    let count = std::env::var("WL_SOAK").map_or(SOAK, |count| count.parse().unwrap());
    let home = Home::new();
    let server = home.serve(&[]);
    let pid = server.child.id();
    let body = home.wish("true", Value::Null);
    let mut talk = Talk::open(&home);
    for _ in 0..10 {
        talk.ask("POST", "/commands", &body);
    }
    let before = settled(|| descriptors(pid));
    let mut slowest = Duration::ZERO;
    for n in 0..count {
        let began = Instant::now();
        let answer = talk.ask("POST", "/commands", &body);
        slowest = slowest.max(began.elapsed());
        assert_eq!(answer.body["exit_code"], 0, "{n}: {}", answer.body);
    }
    eprintln!("{count} runs, the slowest took {slowest:?}");
    eventually("descriptors are as before", || descriptors(pid) <= before);
    check_no_zombies(pid);
    eventually("no directory is left", || home.run_dirs() == 0);
    home.assert_audit_verifies();
}

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// What a count comes to once it does not change any more.
fn settled(count: impl Fn() -> usize) -> usize {
    let (mut last, mut same) = (count(), 0);
    eventually("it stays the same", || {
        let now = count();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same > 20
    });
    last
}

/// Neither the server nor the nursery has children that nobody buried, and
/// the nursery none but the keepers it has ready.
fn check_no_zombies(server: u32) {
    let nursery = children(server);
    let [(nursery, _)] = nursery[..] else {
        panic!("only the nursery: {nursery:?}");
    };
    eventually("all used keepers are gone", || {
        let left = children(nursery);
        left.len() <= READY && left.iter().all(|(_, state)| *state != 'Z')
    });
}
