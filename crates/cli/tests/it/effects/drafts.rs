//! Changes of a session that wait: its later runs see them, they are applied in
//! order, and go together.

use std::io::Write;
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::{Place, sh};
use crate::crew::text;
use crate::support::{eventually, have};

/// Runs that were built on one another, in one session.
fn stacked(place: &Place) -> Vec<Value> {
    let session = json!({ "session_id": "work" });
    place.write("file", "one\n");
    let commands = [
        "echo two >> file; echo a > a",
        "echo three >> file; cat a > b",
        "rm a; mv file moved",
    ];
    commands
        .map(|command| place.held(command, session.clone()))
        .to_vec()
}

#[test]
fn later_runs_of_a_session_see_what_waits() {
    let place = Place::new();
    let runs = stacked(&place);
    let ask = |command: &str, session: Value| text(&place.unasked(command, session), "stdout");
    let own = json!({ "session_id": "work" });
    assert_eq!(
        ask("cat moved b; ls", own),
        "one\ntwo\nthree\na\nb\nmoved\n"
    );
    assert_eq!(ask("cat file; ls", Value::Null), "one\nfile\n");
    assert_eq!(
        runs[2]["changes"]["built_on"].as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn what_was_built_on_something_waits_for_it() {
    let place = Place::new();
    let runs = stacked(&place);
    let before = place.tree();
    let refused = place
        .decide(&place.card(&runs[1]), "apply_effect")
        .expect(409);
    assert_eq!(refused["code"], "earlier_first", "{refused}");
    let body = json!({ "changes": "commit" });
    let refused = place.with_run(&runs[2], "finalize", &body).expect(409);
    assert_eq!(refused["code"], "earlier_first", "{refused}");
    assert_eq!(place.tree(), before);
    for run in &runs {
        place.apply(run);
    }
    assert_eq!(place.read("moved"), "one\ntwo\nthree\n");
    assert_eq!(
        (place.read("a"), place.read("b")),
        ("(none)".into(), "a\n".into())
    );
    // And back, the latest first.
    for run in runs.iter().rev() {
        place.with_run(run, "revert", &Value::Null).expect(200);
    }
    assert_eq!(place.tree(), before);
    place.home.assert_audit_verifies();
}

#[test]
fn what_others_were_built_on_still_shows_what_was_before() {
    let place = Place::new();
    let runs = stacked(&place);
    place.apply(&runs[0]);
    let changes = place.changes(&runs[0]);
    let changes = changes["changes"].as_array().expect("a list");
    let file = { changes.iter() }.find(|change| change["path"] == "file");
    let file = file.expect("the file is among them");
    assert_eq!((&file["added"], &file["removed"]), (&json!(1), &json!(0)));
    let id = text(&runs[0], "command_id");
    let path = format!("/commands/{id}/changes/{}/diff", file["index"]);
    let diff = place.ana().get(&path).expect(200)["diff"].clone();
    let lines = diff["hunks"][0]["lines"].as_array().expect("lines");
    let lines: Vec<_> = { lines.iter() }
        .map(|line| (text(line, "side"), text(line, "text")))
        .collect();
    let expected = [("context", "one"), ("added", "two")];
    assert_eq!(
        lines,
        expected.map(|(side, line)| (side.to_owned(), line.to_owned())),
        "{diff}"
    );
}

#[test]
fn a_whole_draft_is_one_diff_and_is_applied_as_one() {
    let place = Place::new();
    let runs = stacked(&place);
    let session = text(&runs[0], "session_id");
    let path = format!("/sessions/{session}/draft");
    let draft = place.ana().get(&path).expect(200);
    let mut paths: Vec<(String, String)> = { draft["changes"].as_array().expect("a list") }
        .iter()
        .map(|change| (text(change, "kind"), text(change, "path")))
        .collect();
    paths.sort();
    let expected = [("created", "b"), ("created", "moved"), ("deleted", "file")];
    let expected = expected.map(|(kind, path)| (kind.to_owned(), path.to_owned()));
    assert_eq!(paths, expected, "{draft}");
    for change in draft["changes"].as_array().expect("a list") {
        let diff = place
            .ana()
            .get(&format!("{path}/{}/diff", change["index"]))
            .expect(200);
        let (has, has_not) = match change["path"].as_str() {
            Some("moved") => ("three", "nothing"),
            Some("b") => ("a", "three"),
            _ => ("one", "three"),
        };
        let diff = diff["diff"].to_string();
        assert!(diff.contains(has) && !diff.contains(has_not), "{diff}");
    }
    let drafts = place.ana().get("/drafts").expect(200);
    assert_eq!(
        drafts["drafts"][0]["runs"].as_array().map(Vec::len),
        Some(3),
        "{drafts}"
    );
    // Something else is not what was seen.
    let wrong = json!({ "changes": "commit", "hash": "0000" });
    assert_eq!(
        place.ana().post(&path, &wrong).expect(409)["code"],
        "payload_changed"
    );
    assert_eq!(place.read("file"), "one\n");
    let seen = json!({ "changes": "commit", "hash": draft["hash"] });
    place.ana().post(&path, &seen).expect(200);
    assert_eq!(place.read("moved"), "one\ntwo\nthree\n");
    assert_eq!(
        (place.read("file"), place.read("b")),
        ("(none)".into(), "a\n".into())
    );
    for run in &runs {
        assert_eq!(place.run(run)["state"], "succeeded");
    }
    assert_eq!(place.ana().get(&path).status, 404);
    assert_eq!(place.inbox(), Vec::<Value>::new());
}

#[test]
fn a_no_to_the_first_throws_away_the_rest_and_says_so() {
    let place = Place::new();
    let runs = stacked(&place);
    let before = place.tree();
    // It says so before.
    let needed_by = place.changes(&runs[0])["needed_by"].clone();
    assert_eq!(needed_by.as_array().map(Vec::len), Some(2), "{needed_by}");
    place.decide(&place.card(&runs[0]), "reject").expect(200);
    assert_eq!(place.tree(), before);
    for (n, run) in runs.iter().enumerate() {
        let run = place.run(run);
        assert_eq!(run["state"], "rejected", "{run}");
        assert_eq!(run["changes"]["state"], "discarded", "{run}");
        if n > 0 {
            let why = text(&run["reason"], "text");
            let of = text(&runs[0], "short_id");
            assert!(
                why.contains(&format!("built on the changes of {of}")),
                "{why}"
            );
        }
    }
    assert_eq!(place.inbox(), Vec::<Value>::new());
    let out = place.unasked("ls", json!({ "session_id": "work" }));
    assert_eq!(out["stdout"], "file\n", "{out}");
}

#[test]
fn a_run_that_goes_on_while_what_it_saw_is_thrown_away_applies_nothing_of_it() {
    let place = Place::guarded();
    place.write("file", "one\n");
    let own = json!({ "session_id": "work" });
    // Asked about under `guarded`: it deletes.
    let first = place.held("rm file; echo fresh > other", own.clone());
    let mut wishes = own.clone();
    wishes["background"] = true.into();
    wishes["stdin_open"] = true.into();
    let second = place
        .ask("echo more >> other; read x; echo $x > y", wishes)
        .expect(202);
    place.decide(&place.card(&first), "reject").expect(200);
    place.feed(&second, "go\n");
    eventually("it has ended", || place.run(&second)["state"] != "running");
    assert_eq!(
        (place.read("file"), place.read("other")),
        ("one\n".into(), "(none)".into())
    );
    let second = place.run(&second);
    assert_ne!(second["changes"]["state"], "applied", "{second}");
    place.home.assert_audit_verifies();
}

#[test]
fn an_expired_question_keeps_the_changes() {
    let place = Place::with("[approvals]\nexpire = \"1s\"\n");
    let run = place.held("echo x > x", Value::Null);
    let run = place.until(&run, "expired");
    assert_eq!(run["changes"]["state"], "held", "{run}");
    let drafts = place.ana().get("/drafts").expect(200);
    assert_eq!(
        drafts["drafts"][0]["runs"][0]["command"], "echo x > x",
        "{drafts}"
    );
    assert_eq!(place.read("x"), "(none)");
    let body = json!({ "changes": "commit", "hash": run["changes"]["hash"] });
    place.with_run(&run, "finalize", &body).expect(200);
    assert_eq!(place.read("x"), "x\n");
    assert_eq!(place.run(&run)["changes"]["state"], "applied");
    place.home.assert_audit_verifies();
}

#[test]
fn a_draft_is_a_patch_that_git_applies() {
    if !have(&["git"]) {
        return;
    }
    let place = Place::new();
    place.write("text", "one\ntwo\nthree\n");
    place.write("gone", "gone\n");
    place.write("old name", "a\nb\nc\nd\ne\n");
    let around = place.home.around();
    let copy = |name: &str| sh(&around, &around, &format!("cp -a base {name}"));
    copy("patched");
    let own = json!({ "session_id": "work" });
    let run = place.held(
        "sed -i s/two/2/ text; rm gone; printf 'no newline' > n",
        own.clone(),
    );
    place.held(
        "mv 'old name' new; chmod +x text; printf '\\0\\1' > binary; ln -s text l",
        own,
    );
    let session = text(&run, "session_id");
    let path = format!("/agent/terminal/sessions/{session}/draft/patch");
    let patch = place.ana().send("GET", &path, b"");
    assert_eq!(patch.status, 200);
    std::fs::write(around.join("p"), &patch.bytes).unwrap();
    let done = sh(
        &around.join("patched"),
        &around,
        "git init -q . && git apply ../p && rm -r .git",
    );
    assert!(
        done.status.success(),
        "{done:?}\n{}",
        String::from_utf8_lossy(&patch.bytes)
    );
    place
        .ana()
        .post(
            &format!("/sessions/{session}/draft"),
            &json!({ "changes": "commit" }),
        )
        .expect(200);
    let done = sh(
        &around,
        &around,
        "diff -r base patched && stat -c %a base/text patched/text",
    );
    assert!(done.status.success(), "{done:?}");
    let modes = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(modes, "755\n755\n");
}

#[test]
fn who_leaves_after_a_late_yes_has_it_applied_and_on_record() {
    let place = Place::with("[approvals]\nexpire = \"1s\"\n");
    let run = place.held("touch {1..2000}", json!({ "shell": "bash" }));
    let run = place.until(&run, "expired");
    let id = text(&run, "command_id");
    let journal = place.home.state().join("undo").join(&id).join("journal");
    let body = json!({ "changes": "commit" }).to_string();
    let mut line = UnixStream::connect(place.home.state().join("weighlock.sock")).unwrap();
    write!(
        line,
        "POST /agent/terminal/commands/{id}/finalize HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    eventually("it is being applied", || journal.exists());
    drop(line);
    eventually("it is on record", || {
        place.run(&run)["changes"]["state"] == "applied"
    });
    assert!(place.home.base().join("2000").exists());
    place.with_run(&run, "revert", &json!({})).expect(200);
    assert!(!place.home.base().join("2000").exists());
    place.home.assert_audit_verifies();
}
