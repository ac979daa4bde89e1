//! Which changes are applied unasked, asked about, or never applied.

use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use super::Place;
use crate::caller::audit;
use crate::crew::text;
use crate::support::have;

#[test]
fn rules_on_changes_reject_ask_and_apply() {
    let rules = "\
max_deletions = 2
[[change]]
name = \"generated\"
auto = \"gen/**\"
[[change]]
name = \"frozen\"
reject = \"frozen/**\"
because = \"is frozen until the release\"
";
    let place = Place::ruled("strict", rules);
    place.write("frozen/file", "one\n");
    place.write("plain", "one\n");
    for n in 0..4 {
        place.write(&format!("gen/{n}"), "x\n");
    }
    // Never applied, and nothing of what else it did.
    let run = place.ask("echo x > plain; echo x > frozen/file", Value::Null);
    let run = run.json();
    assert_eq!(run["state"], "blocked", "{run}");
    let why = text(&run["reason"], "text");
    assert!(why.contains("is frozen until the release"), "{why}");
    assert_eq!(
        (place.read("plain"), place.read("frozen/file")),
        ("one\n".into(), "one\n".into())
    );
    assert_eq!(run["changes"]["state"], "discarded", "{run}");
    // Applied.
    let run = place.unasked("echo y > gen/0", Value::Null);
    assert_eq!(run["changes"]["state"], "applied", "{run}");
    assert_eq!(run["changes"]["applied_by"], "policy", "{run}");
    assert_eq!(place.read("gen/0"), "y\n");
    assert_eq!(place.told(&run), ["changes.applied"]);
    // Too many at once.
    let run = place.held("rm gen/0 gen/1 gen/2", Value::Null);
    let card = place.card(&run);
    assert_eq!(card["risk"], "high", "{card}");
    // One that is asked about is asked about with all the rest.
    let run = place.held("echo z > gen/3; echo z > plain", Value::Null);
    assert_eq!(run["changes"]["paths"], json!(["M gen/3", "M plain"]));
    assert_eq!(place.read("gen/3"), "x\n");
    // What was applied unasked can be undone.
    let run = place.unasked("echo u > gen/3", Value::Null);
    place.with_run(&run, "revert", &Value::Null).expect(200);
    assert_eq!(place.read("gen/3"), "x\n");
}

#[test]
fn guarded_applies_plain_edits_and_asks_about_what_runs_by_itself() {
    let place = Place::guarded();
    for path in [
        ".git/hooks/x",
        ".vscode/tasks.json",
        ".mise.toml",
        "src/main.rs",
    ] {
        place.write(path, "one\n");
    }
    let run = place.unasked("echo x >> src/main.rs; echo y > src/new.rs", Value::Null);
    assert_eq!(run["changes"]["state"], "applied", "{run}");
    assert_eq!(place.read("src/new.rs"), "y\n");
    for path in [
        ".git/hooks/x",
        ".git/hooks/new",
        ".git/config",
        ".mise.toml",
        ".envrc",
        "sub/.envrc",
        ".vscode/tasks.json",
        ".github/workflows/ci.yml",
        "CLAUDE.md",
        ".bashrc",
        ".claude/settings.json",
        ".gitattributes",
    ] {
        let before = place.read(path);
        let command = format!("mkdir -p $(dirname {path}); echo x > {path}; echo x > src/main.rs");
        let run = place.held(&command, Value::Null);
        let changes = place.changes(&run);
        let entries = changes["changes"].as_array().expect("a list").clone();
        let marks: Vec<(String, bool)> = { entries.iter() }
            .filter(|entry| entry["is"] == "file")
            .map(|entry| (text(entry, "path"), entry["mark"].is_string()))
            .collect();
        assert!(marks.contains(&(path.into(), true)), "{path}: {changes}");
        assert!(
            marks.contains(&("src/main.rs".into(), false)),
            "{path}: {changes}"
        );
        assert_eq!(place.card(&run)["risk"], "high", "{path}");
        assert_eq!(place.read(path), before);
        place.decide(&place.card(&run), "reject").expect(200);
    }
}

#[test]
fn what_would_be_dangerous_as_a_file_is_never_applied() {
    let place = Place::guarded();
    place.write("plain", "one\n");
    let before = place.tree();
    let mut cases = vec!["mkfifo pipe; echo x > plain"];
    if have(&["python3"]) {
        cases.push(
            "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; echo x > plain",
        );
    }
    for command in cases {
        let run = place.ask(command, Value::Null).json();
        assert_eq!(run["state"], "blocked", "{command}: {run}");
        assert_eq!(run["reason"]["code"], "changes_blocked", "{command}: {run}");
        assert_eq!(place.tree(), before, "{command}");
    }
}

#[test]
fn nothing_is_applied_that_raises_rights() {
    let place = Place::guarded();
    place.write("plain", "one\n");
    for command in [
        "cp /bin/true su; chmod u+s su; echo x > plain",
        "cp /bin/true su; chmod g+s su; echo x > plain",
        "cp /bin/true su; chmod 6755 su",
        "install -m 4755 /bin/true su",
        "chmod u+s plain",
    ] {
        // The walls refuse the mode itself; if they did not, the copy would be.
        let run = place.ask(command, Value::Null).json();
        assert_ne!(run["state"], "waiting", "{command}: {run}");
        for path in ["su", "plain"] {
            let mode = std::fs::metadata(place.home.base().join(path)).map(|meta| meta.mode());
            assert_eq!(mode.unwrap_or_default() & 0o6000, 0, "{command}: {path}");
        }
        let _ = std::fs::remove_file(place.home.base().join("su"));
    }
}

#[test]
fn losing_everything_is_asked_about_whatever_the_preset() {
    for preset in ["guarded", "bash"] {
        let place = Place::with(&format!("preset = \"{preset}\"\n"));
        for path in ["a", "b/c", "d/e/f"] {
            place.write(path, "one\n");
        }
        let before = place.tree();
        for command in ["rm -rf ./*", "rm -rf a b d", "find . -mindepth 1 -delete"] {
            let run = place.held(command, Value::Null);
            let card = place.card(&run);
            assert_eq!(card["risk"], "high", "{preset}: {command}: {card}");
            assert_eq!(place.tree(), before, "{preset}: {command}");
            place.decide(&card, "reject").expect(200);
        }
    }
}

#[test]
fn more_than_a_hundred_deletions_are_asked_about_whatever_the_preset() {
    let place = Place::with("preset = \"bash\"\n");
    for n in 0..110 {
        place.write(&format!("many/{n}"), "x\n");
    }
    place.write("rest", "x\n");
    let run = place.held("rm -r many", Value::Null);
    assert_eq!(place.card(&run)["risk"], "high");
    place.decide(&place.card(&run), "reject").expect(200);
    let run = place.unasked("rm many/1*", Value::Null);
    assert_eq!(run["changes"]["state"], "applied", "{run}");
}

#[test]
fn review_says_when_a_person_is_asked() {
    // Unasked, but for what no preset applies unasked.
    let place = Place::with("[effects]\nreview = \"none\"\n");
    place.write("file", "one\n");
    let run = place.unasked("rm file; echo x > y", Value::Null);
    assert_eq!(run["changes"]["state"], "applied", "{run}");
    assert_eq!(place.read("y"), "x\n");
    place.held("echo x > .envrc", Value::Null);
    assert_eq!(place.read(".envrc"), "(none)");
    // Nobody asks for less than the sandbox wants; more can be had.
    let run = place
        .ask("echo z > z", json!({ "review": "before" }))
        .expect(202);
    assert_eq!(run["changes"], Value::Null, "{run}");
    let card = place.card(&run);
    place.decide(&card, "approve_once").expect(200);
    let run = place.until(&run, "succeeded");
    assert_eq!(run["sandbox"]["files"], "write", "{run}");
    assert_eq!(place.read("z"), "z\n");

    let place = Place::with("[effects]\nreview = \"before\"\n");
    let run = place.ask("echo x > x", Value::Null).expect(202);
    assert_eq!(
        (&run["state"], &run["changes"]),
        (&json!("waiting"), &Value::Null)
    );
    let run = place.ask("echo x > x", json!({ "review": "none" })).json();
    assert_eq!(run["state"], "waiting", "{run}");
    assert_eq!(place.read("x"), "(none)");
}

#[test]
fn agents_decide_about_nothing() {
    let place = Place::new();
    let run = place.held("echo x > x", Value::Null);
    let held = text(&run, "command_id");
    let applied = place.apply(&place.held("echo y > y", Value::Null));
    let applied = text(&applied, "command_id");
    let session = text(&run, "session_id");
    let approval = text(&run, "approval_id");
    let card = place.card(&run);
    for (path, body) in [
        (
            format!("/commands/{held}/finalize"),
            json!({ "changes": "commit" }),
        ),
        (
            format!("/commands/{held}/finalize"),
            json!({ "changes": "discard" }),
        ),
        (format!("/commands/{applied}/revert"), Value::Null),
        (format!("/approvals/{approval}/preview"), Value::Null),
        (
            format!("/approvals/{approval}/decision"),
            json!({ "kind": "apply_effect", "fingerprint": card["fingerprint"] }),
        ),
        (
            format!("/sessions/{session}/draft"),
            json!({ "changes": "commit" }),
        ),
        (
            format!("/sessions/{session}/draft"),
            json!({ "changes": "discard" }),
        ),
    ] {
        let refused = place.coder().post(&path, &body);
        assert_eq!(refused.status, 403, "{path} {body}: {:?}", refused.json());
        assert_eq!(refused.outcome().1, "never_agents", "{path} {body}");
    }
    assert_eq!(
        (place.read("x"), place.read("y")),
        ("(none)".into(), "y\n".into())
    );
    let tried = audit(&place.home, "kind=agent.refused");
    assert!(tried.len() >= 7, "{tried:?}");
}

#[test]
fn what_others_changed_is_not_to_be_seen() {
    let place = Place::new();
    let run = place.held("echo secret > x", Value::Null);
    let id = text(&run, "command_id");
    let session = text(&run, "session_id");
    for path in [
        format!("/commands/{id}/changes"),
        format!("/commands/{id}/changes/0/diff"),
        format!("/commands/{id}/patch"),
        format!("/sessions/{session}/draft"),
        format!("/sessions/{session}/draft/0/diff"),
        format!("/sessions/{session}/draft/patch"),
    ] {
        assert_eq!(place.linter().get(&path).status, 404, "{path}");
        assert_eq!(place.coder().get(&path).status, 200, "{path}");
    }
    let drafts = place.linter().get("/drafts").expect(200);
    assert_eq!(drafts["drafts"], json!([]));
    let drafts = place.coder().get("/drafts").expect(200);
    assert_eq!(drafts["drafts"].as_array().map(Vec::len), Some(1));
}
