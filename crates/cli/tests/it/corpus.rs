//! What the policy lets run unasked really runs, in walls where it can only
//! read, and says what it says outside.

use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::json;

use crate::support::Home;

const CORPUS: &str = include_str!("../../../policy/tests/corpus/policy-dev.jsonl");

/// Lines that may well say something else the second time, or inside.
const DIFFERS: &[(&str, &str)] = &[
    ("df -h", "inside there are other mounts"),
    ("which git", "inside there may be another PATH"),
    ("type -a git", "inside there may be another PATH"),
    ("whereis bash", "inside there may be another PATH"),
    ("command -v python3", "inside there may be another PATH"),
    ("python3 --version", "inside there may be another PATH"),
    ("rustc -V", "inside there may be another PATH"),
    ("cat ~/.bashrc", "inside there is another home"),
    ("npm -v", "it writes a cache, and says so when it cannot"),
    (
        "apt-cache policy curl",
        "it reads lists that only root sees",
    ),
    (
        "apt list --installed 2>/dev/null | head",
        "a pipe that closes early",
    ),
];

#[derive(Deserialize)]
struct Line {
    command: String,
    expect: String,
    #[serde(default)]
    also_ok: Vec<String>,
}

#[test]
fn what_is_auto_does_inside_what_it_does_outside() {
    let home = Home::new();
    make_project(&home);
    let _server = home.serve_with("preset = \"strict\"\n");
    let (mut same, mut wrong, mut missing) = (0, vec![], vec![]);
    for line in CORPUS.lines() {
        let line: Line = serde_json::from_str(line).unwrap();
        let differs = DIFFERS.iter().any(|(command, _)| *command == line.command);
        if line.expect != "auto" {
            continue;
        }
        let outside = bash(&home, &line.command);
        if outside.missing {
            missing.push(line.command);
            continue;
        }
        let body = json!({ "command": line.command, "cwd": home.base() });
        let (status, run) = home.api("POST", "/commands", &body);
        if run["reason"]["code"] == "pending_approval" && line.also_ok.iter().any(|ok| ok == "ask")
        {
            continue;
        }
        let runs = status == 200 && run["state"] != "rejected" && !run["exit_code"].is_null();
        let says = run["exit_code"] == json!(outside.code) && run["stdout"] == outside.out;
        if runs && (says || differs) {
            same += 1;
        } else {
            wrong.push(format!(
                "{:?}\n  outside: {:?} {:?}\n  inside:  {run}",
                line.command, outside.code, outside.out
            ));
        }
    }
    eprintln!(
        "{same} the same, {} programs are missing: {missing:?}",
        missing.len()
    );
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(same > 80, "only {same} were compared");
}

struct Outside {
    code: Option<i32>,
    out: String,
    /// A program is not on this machine.
    missing: bool,
}

fn bash(home: &Home, command: &str) -> Outside {
    let done = clean(home, "bash").args(["-c", command]).output().unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    let out = String::from_utf8_lossy(&done.stdout);
    Outside {
        code: done.status.code(),
        missing: done.status.code() == Some(127)
            || [&*err, &*out]
                .iter()
                .any(|said| said.contains("command not found")),
        out: out.into_owned(),
    }
}

/// A program as the server would start it, but without walls.
fn clean(home: &Home, program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.around().join("home"))
        .current_dir(home.base())
        .stdin(Stdio::null());
    command
}

/// The project that the lines are about.
fn make_project(home: &Home) {
    let numbers: Vec<String> = (1..=200).map(|n| n.to_string()).collect();
    for (path, text) in [
        (
            "README.md",
            "# Project\n\nTODO: write. see /etc/hosts\nwhere it is\n",
        ),
        ("src/main.rs", "fn main() {\n    println!(\"hello\");\n}\n"),
        ("src/lib.rs", "pub fn one() -> u8 {\n    1\n}\n"),
        ("docs/a.md", "# A\n\ntext\n"),
        ("words.txt", "apple\npear\nplum\n"),
        ("big.txt", &(numbers.join("\n") + "\n")),
        (
            "package.json",
            "{ \"name\": \"x\", \"version\": \"1.0.0\" }\n",
        ),
        ("Makefile", "all:\n\techo all\n"),
        ("format.sh", "echo format\n"),
        ("scripts/setup.sh", "echo setup\n"),
        ("tool.py", "print(1)\n"),
    ] {
        home.put(&format!("base/{path}"), text);
    }
    home.put("home/.bashrc", "# nothing\n");
    let setup = "
        tar czf archive.tar.gz src
        git init -q -b main
        git config user.name dev
        git config user.email dev@example.com
        export GIT_AUTHOR_DATE='2024-05-01T12:00:00Z' GIT_COMMITTER_DATE='2024-05-01T12:00:00Z'
        git add README.md && git commit -qm 'first'
        git add . && git commit -qm 'second'
        git tag v1.0.0
        echo 'more' >> docs/a.md && git commit -qam 'third'
    ";
    let made = clean(home, "bash").args(["-ec", setup]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
}
