//! `weighlock check`: verdicts without a server, for scripts and CI.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Home;

fn check(home: &Home, args: &[&str]) -> (Option<i32>, String, String) {
    let done = home.call(&[&["check"], args].concat());
    (done.code, done.out, done.err)
}

#[test]
fn the_exit_code_is_the_verdict() {
    let home = Home::strict();
    let said = |code, out: &str| (Some(code), out.to_owned(), String::new());
    assert_eq!(check(&home, &["git status | head"]), said(0, "auto\n"));
    assert_eq!(
        check(&home, &["--", "rm", "-r", "a b"]),
        said(3, "ask: `rm` removes files\n")
    );
    assert_eq!(
        check(&home, &["cd /; r\\m -rf './'*"]).0,
        Some(4),
        "however it is written"
    );
    let (code, out, _) = check(&home, &["--json", "rm x"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, Some(3));
    assert_eq!(
        answer,
        json!({ "verdict": "ask", "reasons": ["`rm` removes files"] })
    );
    assert!(!home.state().exists(), "nothing was kept");
}

#[test]
fn without_a_command_it_names_batch() {
    let home = Home::strict();
    let (code, out, err) = check(&home, &[]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("--batch"), "{err}");
}

#[test]
fn every_line_gets_one_and_a_broken_one_does_not_stop_the_rest() {
    let home = Home::strict();
    home.put(
        "settings/weighlock/rules.toml",
        "[[rule]]\nname = \"tests\"\nauto = \"npm test\"\n",
    );
    let lines = [
        r#"{"id": 1, "command": "ls", "extra": [1]}"#,
        r#"{"id": "two", "command": "rm x", "cwd": "/nonexistent"}"#,
        "{",
        r#"{"id": 4}"#,
        "",
        r#"{"id": 5, "command": "npm test"}"#,
        r#"{"id": 6, "command": "ls", "sandbox": "nowhere"}"#,
        r#"{"command": "rm -rf /"}"#,
    ];
    let (code, answers) = batch(&home, &lines.join("\n"));
    assert_eq!(code, Some(1));
    assert_eq!(answers.len(), lines.len());
    assert_eq!(
        answers[0],
        json!({ "id": 1, "verdict": "auto", "reasons": [] })
    );
    assert_eq!(
        answers[1],
        json!({ "id": "two", "verdict": "ask", "reasons": ["`rm` removes files"] })
    );
    assert_eq!(
        answers[5],
        json!({ "id": 5, "verdict": "auto", "reasons": [] })
    );
    assert_eq!(answers[7]["verdict"], "reject");
    assert_eq!(answers[7]["id"], Value::Null);
    for (at, id) in [
        (2, Value::Null),
        (3, json!(4)),
        (4, Value::Null),
        (6, json!(6)),
    ] {
        let error = answers[at]["error"].as_str().expect("an error");
        assert!(error.starts_with(&format!("line {}: ", at + 1)), "{error}");
        assert_eq!(answers[at]["id"], id);
    }
}

#[test]
fn thousands_of_lines_are_quick_and_nothing_is_needed() {
    let home = Home::strict();
    let commands = [
        "git status",
        "rm -rf build/",
        "cat a | sort | uniq -c",
        "npm test",
    ];
    let lines: String = (0..4000)
        .map(|id| format!("{}\n", json!({ "id": id, "command": commands[id % 4] })))
        .collect();
    let began = Instant::now();
    // Neither a home nor a place to keep things.
    let mut command = home.weighlock(&["check", "--batch"]);
    for name in ["HOME", "XDG_CONFIG_HOME", "WEIGHLOCK_STATE_DIR"] {
        command.env_remove(name);
    }
    let (code, answers) = answers(command, &lines);
    assert_eq!((code, answers.len()), (Some(0), 4000));
    assert!(
        answers
            .iter()
            .enumerate()
            .all(|(id, answer)| answer["id"] == id)
    );
    // Unoptimised and beside other tests; optimised it is a fraction.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(60), "{took:?}");
}

#[test]
fn an_answer_does_not_wait_for_the_next_line() {
    let home = Home::strict();
    let mut child = home
        .weighlock(&["check", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for command in ["ls", "rm x"] {
        writeln!(input, "{}", json!({ "id": command, "command": command })).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], command);
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn batch(home: &Home, lines: &str) -> (Option<i32>, Vec<Value>) {
    answers(home.weighlock(&["check", "--batch"]), lines)
}

fn answers(mut command: Command, lines: &str) -> (Option<i32>, Vec<Value>) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = lines.to_owned();
    std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let done = child.wait_with_output().unwrap();
    let out = String::from_utf8(done.stdout).unwrap();
    let answers = out.lines().map(|line| serde_json::from_str(line).unwrap());
    (done.status.code(), answers.collect())
}
