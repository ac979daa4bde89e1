//! A whole coding session costs its person a handful of questions.

use serde_json::{Value, json};

use super::{Place, sh};
use crate::crew::text;
use crate::support::have;

const SESSION: &str = include_str!("session.txt");

/// What 500 commands may cost, as this is promised.
const MOST_QUESTIONS: usize = 5;

/// What the session finds.
const PROJECT: &[(&str, &str)] = &[
    (
        "README.md",
        "# Ledger\n\nLedger keeps amounts. See docs/notes.md.\n",
    ),
    (".gitignore", "build/\n__pycache__/\n"),
    ("docs/notes.md", "# Notes\n\nAmounts are in cents.\n"),
    ("docs/changes.md", "# Changes\n\n- the beginning\n"),
    ("scripts/release.sh", "#!/bin/sh\ngit tag \"$1\"\n"),
    (
        "Makefile",
        "test:\n\tpython3 -m unittest discover -q -s tests -t .\n\
         build:\n\tmkdir -p build\n\tcp ledger/*.py build/\n\
         check: test build\n\
         clean:\n\trm -rf build\n\
         .PHONY: test build check clean\n",
    ),
    ("ledger/__init__.py", "VERSION = \"0.1.0\"\n"),
    (
        "ledger/cli.py",
        "\"\"\"The command line.\"\"\"\n\nimport sys\n\nfrom ledger import VERSION\n\n\
         COMMANDS = [\"list\"]\n\n\ndef main(words):\n    if words[:1] == [\"--version\"]:\n        \
         print(VERSION)\n    elif words[:1] == [\"--help\"]:\n        print(*COMMANDS)\n    \
         elif words[:1] == [\"list\"]:\n        print(\"nothing\")\n    else:\n        \
         print(\"what?\", file=sys.stderr)\n        return 2\n    return 0\n\n\n\
         if __name__ == \"__main__\":\n    sys.exit(main(sys.argv[1:]))\n",
    ),
    (
        "ledger/store.py",
        "\"\"\"What is kept.\"\"\"\n\n\nclass Store:\n    def __init__(self):\n        \
         self.rows = []\n\n    def add(self, date, amount):\n        \
         self.rows.append((date, amount))\n",
    ),
    (
        "ledger/report.py",
        "\"\"\"What it comes to.\"\"\"\n\n\ndef total(rows):\n    \
         return sum(amount for _, amount in rows)\n",
    ),
    ("tests/__init__.py", ""),
    (
        "tests/test_store.py",
        "import unittest\n\nfrom ledger.store import Store\n\n\nclass Adding(unittest.TestCase):\n    \
         def test_adds(self):\n        store = Store()\n        store.add(\"2024-01-01\", 1)\n        \
         self.assertEqual(store.rows, [(\"2024-01-01\", 1)])\n",
    ),
    (
        "tests/test_report.py",
        "import unittest\n\nfrom ledger.report import total\n\n\nclass Total(unittest.TestCase):\n    \
         def test_sum(self):\n        self.assertEqual(total([(1, 2), (3, 4)]), 6)\n",
    ),
];

const REPOSITORY: &str = "\
git init -q -b main . && git config user.name Ana && git config user.email ana@example.org \
&& git add -A && git commit -q -m 'The beginning'";

/// The commands of the session.
fn commands() -> Vec<String> {
    let text = SESSION.split_once("\n$ ").expect("commands").1;
    let commands = text.trim_end().split("\n$ ");
    commands.map(str::to_owned).collect()
}

/// Runs it all in order, with a yes to every question; returns what was asked.
fn asked(preset: &str) -> Vec<String> {
    let place = Place::with(&format!("preset = \"{preset}\"\n"));
    for (path, text) in PROJECT {
        place.write(path, text);
    }
    let base = place.home.base();
    let done = sh(&base, &base, REPOSITORY);
    assert!(done.status.success(), "{done:?}");
    let mut asked = vec![];
    for (number, command) in commands().iter().enumerate() {
        let run = place.ask(command, json!({ "session_id": "coding" })).json();
        if run["state"] != "waiting" {
            let ended = ["succeeded", "failed"].contains(&text(&run, "state").as_str());
            assert!(ended, "{command}: {run}");
            continue;
        }
        let card = place.card(&run);
        let what = &run["changes"]["paths"];
        asked.push(format!("{number}: {command}: {what} {}", card["reasons"]));
        let kind = match run["changes"] {
            Value::Null => "approve_once",
            _ => "apply_effect",
        };
        place.decide(&card, kind).expect(200);
    }
    // It came to what such a session comes to.
    let done = sh(
        &base,
        &base,
        "git status --porcelain && git log --format=%s | head -1",
    );
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(said.lines().last(), Some("Last words"), "{said}");
    let done = sh(&base, &base, "make check");
    assert!(done.status.success(), "{done:?}");
    place.home.assert_audit_verifies();
    asked
}

#[test]
fn five_hundred_commands_cost_a_handful_of_questions() {
    if !have(&["git", "make", "python3", "patch"]) {
        return;
    }
    assert_eq!(commands().len(), 500);
    let guarded = asked("guarded");
    println!(
        "guarded: {} questions\n{}",
        guarded.len(),
        guarded.join("\n")
    );
    assert!(guarded.len() <= MOST_QUESTIONS, "{}", guarded.join("\n"));
}

#[test]
#[ignore = "takes minutes, and promises nothing: it says how many questions there are"]
fn five_hundred_commands_are_asked_about_more_often_where_that_is_wanted() {
    let strict = asked("strict");
    println!("strict: {} questions", strict.len());
    assert!(strict.len() > MOST_QUESTIONS);
}
