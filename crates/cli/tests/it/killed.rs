//! A `weighlock run` that is killed, and could not say that its command is to
//! stop.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::caller::audit;
use crate::support::{Home, Server, eventually};

/// Starts `weighlock run` and waits until its command runs; returns the id of
/// the run, too.
fn start(home: &Home, command: &str) -> (Child, String) {
    let child = home
        .weighlock(&["run", "--no-stdin", "--", command])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    (child, running(home, command))
}

/// Waits until a command runs that has this text; returns the id of the run.
fn running(home: &Home, command: &str) -> String {
    let mut id = None;
    eventually("it runs", || {
        let (_, runs) = home.api("GET", "/commands?state=running", &Value::Null);
        let runs = runs["commands"].as_array().unwrap();
        let run = runs.iter().find(|run| run["command"] == command);
        id = run.map(|run| run["command_id"].as_str().unwrap().to_owned());
        id.is_some()
    });
    id.unwrap()
}

/// The processes whose command line holds this.
fn processes(word: &str) -> usize {
    let line = |pid: u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    crate::support::all_processes()
        .filter(|&pid| String::from_utf8_lossy(&line(pid)).starts_with(word))
        .count()
}

#[test]
fn a_killed_run_takes_its_command_along_and_no_other() {
    let home = Home::new();
    let first: Server = home.serve(&[]);

    // Those that are to go on: in the background, no longer waited for, and
    // those whose server goes while they are waited for.
    let done = home.run(&["--bg", "-q"], "sleep 6101");
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = home.run(&["--wait", "10ms"], "sleep 6102");
    assert_eq!(done.code, Some(75), "{done:?}");
    let (mut restarted, _) = start(&home, "sleep 6103");
    let (mut asked, _) = start(&home, "sleep 6104");
    assert_eq!(first.terminate(), Some(0));
    // The two may have started one by themselves.
    let _second = home.serve(&["--replace"]);
    // They say that it goes on, and end.
    restarted.wait().unwrap();
    asked.wait().unwrap();
    let others: Vec<String> = ["sleep 6101", "sleep 6102", "sleep 6103", "sleep 6104"]
        .map(|command| running(&home, command))
        .into();

    let seconds = format!("6{:05}", std::process::id() % 100_000);
    let (mut killed, id) = start(&home, &format!("sleep {seconds}"));
    let line = format!("sleep\0{seconds}\0");
    eventually("its process is there", || processes(&line) == 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let ended = home.ended(&id);
    assert_eq!(ended["state"], "killed", "{ended}");
    let why = ended["reason"]["text"].as_str().unwrap();
    assert!(
        why.starts_with("Stopped, since nobody waited for it any more."),
        "{why}"
    );
    eventually("its process is gone", || processes(&line) == 0);
    let left = audit(&home, "kind=run.left");
    assert_eq!(left.len(), 1, "{left:?}");

    // By then the others would have been ended, too.
    for id in others {
        assert_eq!(home.get(&id)["state"], json!("running"), "{id}");
        assert_eq!(home.call(&["stop", &id]).code, Some(0));
    }
}
