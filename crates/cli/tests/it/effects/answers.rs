//! What a person says about changes counts for what they saw, and what somebody
//! did meanwhile is never overwritten.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::Place;
use crate::crew::text;
use crate::support::eventually;

/// Somebody changes something between the try and the answer: the answer is
/// refused, says where, and nothing is overwritten. Tried again, it applies.
#[track_caller]
fn check_overtaken(command: &str, path: &str, meanwhile: impl FnOnce(&Place)) {
    let place = Place::new();
    place.write("dir/file", "one\n");
    place.write("other", "other\n");
    let run = place.held(command, Value::Null);
    let card = place.card(&run);
    meanwhile(&place);
    let theirs = place.tree();
    let refused = place.decide(&card, "apply_effect").expect(409);
    let code = text(&refused, "code");
    assert!(
        ["conflict", "payload_changed"].contains(&code.as_str()),
        "{refused}"
    );
    assert_eq!(place.tree(), theirs, "{command}");
    // Both versions are there: theirs, and what the run would make of it.
    let changes = place.changes(&run);
    let conflicts = changes["conflicts"].as_array().expect("a list");
    assert!(
        conflicts
            .iter()
            .any(|conflict| text(conflict, "path").trim_end_matches('/') == path),
        "{command}: {changes}"
    );
    let index = changes["changes"][0]["index"].as_u64().expect("a number");
    place
        .of_run(&run, &format!("changes/{index}/diff"))
        .expect(200);
    assert_eq!(place.run(&run)["state"], "waiting");
    // The question says so, and cannot be answered as it is.
    let card = place.card(&run);
    assert_eq!(card["effect"]["state"], "stale", "{card}");
    let refused = place.decide(&card, "apply_effect").expect(409);
    assert_eq!(refused["code"], "conflict", "{refused}");
    assert_eq!(place.tree(), theirs, "{command}");
    // Tried again, it is about what is there now.
    let again = format!("/approvals/{}/preview", text(&run, "approval_id"));
    place.ana().post(&again, &Value::Null).expect(200);
    let run = place.until(&run, "waiting");
    assert_eq!(place.tree(), theirs, "{command}");
    let card = place.card(&run);
    assert_eq!(card["effect"]["state"], "ready", "{card}");
    place.apply(&run);
    place.home.assert_audit_verifies();
}

#[test]
fn a_file_that_somebody_edited_is_not_overwritten() {
    check_overtaken("echo two >> dir/file", "dir/file", |place| {
        place.write("dir/file", "theirs\n");
    });
}

#[test]
fn a_file_that_somebody_deleted_is_not_made_again() {
    check_overtaken("echo two >> dir/file", "dir/file", |place| {
        fs::remove_file(place.home.base().join("dir/file")).unwrap();
    });
}

#[test]
fn a_file_that_somebody_made_is_not_overwritten() {
    check_overtaken("echo two > dir/new", "dir/new", |place| {
        place.write("dir/new", "theirs\n");
    });
}

#[test]
fn what_somebody_put_into_a_deleted_directory_is_not_lost() {
    check_overtaken("rm -r dir; echo x > other", "dir/new", |place| {
        place.write("dir/new", "theirs\n");
    });
}

#[test]
fn a_file_that_somebody_edited_is_not_deleted() {
    check_overtaken("rm dir/file; echo x > other", "dir/file", |place| {
        place.write("dir/file", "theirs\n");
    });
}

#[test]
fn nothing_is_written_through_a_link_that_took_a_directorys_place() {
    let place = Place::new();
    place.write("dir/file", "one\n");
    let outside = place.home.put("outside/file", "outside\n");
    let run = place.held("echo two >> dir/file; echo x > dir/new", Value::Null);
    let card = place.card(&run);
    let base = place.home.base();
    fs::rename(base.join("dir"), base.join("was")).unwrap();
    symlink(outside.parent().unwrap(), base.join("dir")).unwrap();
    let refused = place.decide(&card, "apply_effect").expect(409);
    let code = text(&refused, "code");
    assert!(
        ["conflict", "payload_changed"].contains(&code.as_str()),
        "{refused}"
    );
    let card = place.card(&run);
    place.decide(&card, "apply_effect").expect(409);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "outside\n");
    assert!(!outside.with_file_name("new").exists());
    assert_eq!(place.read("was/file"), "one\n");
    // Where it was, it can be applied.
    fs::remove_file(base.join("dir")).unwrap();
    fs::rename(base.join("was"), base.join("dir")).unwrap();
    place.apply(&run);
    assert_eq!(place.read("dir/file"), "one\ntwo\n");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "outside\n");
}

#[test]
fn an_undo_does_not_overwrite_what_somebody_did_since() {
    let place = Place::new();
    place.write("file", "one\n");
    let run = place.held("echo two >> file; echo x > new", Value::Null);
    let applied = place.apply(&run);
    place.write("file", "theirs\n");
    let theirs = place.tree();
    let refused = place.with_run(&applied, "revert", &Value::Null).expect(409);
    assert_eq!(refused["code"], "conflict", "{refused}");
    assert_eq!(place.tree(), theirs);
}

#[test]
fn a_no_leaves_everything_as_it_was() {
    let place = Place::new();
    place.write("dir/file", "one\n");
    let before = place.tree();
    for how in ["reject", "finalize"] {
        let run = place.held("rm -r dir; echo x > y; mkdir z", Value::Null);
        match how {
            "reject" => place.decide(&place.card(&run), "reject"),
            _ => place.with_run(&run, "finalize", &json!({ "changes": "discard" })),
        }
        .expect(200);
        let run = place.run(&run);
        assert_eq!(run["state"], "rejected", "{run}");
        assert_eq!(run["changes"]["state"], "discarded", "{run}");
        assert_eq!(place.tree(), before);
        assert_eq!(place.told(&run), ["changes.discarded", "changes.held"]);
    }
    assert_eq!(place.inbox(), Vec::<Value>::new());
    // Nothing of it is left on disk either.
    let layers = place.home.state().join("layers");
    eventually("no copies", || fs::read_dir(&layers).unwrap().count() == 0);
}

#[test]
fn what_changes_nothing_is_not_asked_about() {
    let place = Place::new();
    place.write("file", "one\n");
    let before = place.tree();
    for (command, code) in [
        ("touch /tmp/x && mkdir /tmp/y", 0),
        ("echo x > x; rm x", 0),
        ("no-such-program --at all", 127),
        ("perl -e 'exit 3'", 3),
        ("cp nothing anywhere", 1),
        ("cp -a file copy; mv copy file", 0),
    ] {
        let run = place.unasked(command, Value::Null);
        assert_eq!(run["exit_code"], code, "{command}: {run}");
        assert_eq!(run["changes"]["state"], "none", "{command}: {run}");
        assert_eq!(place.tree(), before, "{command}");
    }
    assert_eq!(place.inbox(), Vec::<Value>::new());
    let layers = place.home.state().join("layers");
    eventually("no copies", || fs::read_dir(&layers).unwrap().count() == 0);
}

#[test]
fn what_fails_with_changes_is_asked_about_and_says_how_it_ended() {
    let place = Place::new();
    let run = place.held("echo x > half; exit 7", Value::Null);
    assert_eq!(run["exit_code"], 7);
    let card = place.card(&run);
    let header = text(&card["effect"], "header");
    assert!(header.starts_with("✗ tried in a copy: exit 7"), "{header}");
    assert_eq!(card["effect"]["exit_code"], 7, "{card}");
    let run = place.apply(&run);
    assert_eq!(run["state"], "failed", "{run}");
    assert_eq!(place.read("half"), "x\n");
}

#[test]
fn what_runs_out_of_time_is_asked_about() {
    let place = Place::new();
    let run = place.held("echo x > half; sleep 100", json!({ "timeout_ms": 300 }));
    assert_eq!(place.read("half"), "(none)");
    let run = place.apply(&run);
    assert_eq!(run["state"], "timed_out", "{run}");
    assert_eq!(place.read("half"), "x\n");
}

#[test]
fn a_run_in_the_background_is_asked_about_when_it_has_ended() {
    let place = Place::new();
    let wishes = json!({ "background": true, "stdin_open": true });
    let run = place.ask("echo x > begun; cat > rest", wishes).expect(202);
    assert_eq!(run["state"], "running", "{run}");
    assert_eq!(place.inbox(), Vec::<Value>::new());
    place.feed(&run, "from outside\n");
    let run = place.until(&run, "waiting");
    assert_eq!(run["changes"]["paths"], json!(["A begun", "A rest"]));
    assert_eq!(place.read("begun"), "(none)");
    place.apply(&run);
    assert_eq!(place.read("rest"), "from outside\n");
}

#[test]
fn what_a_kept_run_leaves_running_writes_to_the_copy_too() {
    let place = Place::new();
    let command = "echo now > now; (sleep 1; echo later > later) & exit 0";
    let run = place.ask(command, json!({ "keep": true })).json();
    assert_eq!(place.read("now"), "(none)");
    let run = place.until(&run, "waiting");
    assert_eq!(
        run["changes"]["paths"],
        json!(["A later", "A now"]),
        "{run}"
    );
    assert_eq!(place.read("later"), "(none)");
    place.apply(&run);
    assert_eq!(place.read("later"), "later\n");
}

#[test]
fn only_what_was_seen_is_applied() {
    let place = Place::new();
    let run = place.held("echo x > x", Value::Null);
    let body = json!({ "changes": "commit", "hash": "0000" });
    let refused = place.with_run(&run, "finalize", &body).expect(409);
    assert_eq!(refused["code"], "payload_changed", "{refused}");
    let wrong = json!({ "approval_id": run["approval_id"], "fingerprint": "0000" });
    let refused = place.decide(&wrong, "apply_effect").expect(409);
    assert_eq!(refused["code"], "payload_changed", "{refused}");
    assert_eq!(place.read("x"), "(none)");
    let body = json!({ "changes": "commit", "hash": run["changes"]["hash"] });
    place.with_run(&run, "finalize", &body).expect(200);
    assert_eq!(place.read("x"), "x\n");
    // Once is enough.
    let again = place.with_run(&run, "finalize", &body);
    assert_ne!(again.status, 200, "{:?}", again.json());
}

#[test]
fn an_undo_is_a_run_that_can_be_undone() {
    let place = Place::new();
    place.write("file", "one\n");
    let before = place.tree();
    let run = place.apply(&place.held("echo two >> file; echo x > new", Value::Null));
    let after = place.tree();
    let undo = place.with_run(&run, "revert", &Value::Null).expect(200);
    assert_eq!(place.tree(), before);
    assert_eq!(place.run(&run)["changes"]["state"], "undone");
    let again = place.with_run(&run, "revert", &Value::Null);
    assert_eq!(again.status, 409, "{:?}", again.json());
    place.with_run(&undo, "revert", &Value::Null).expect(200);
    assert_eq!(place.tree(), after);
    place.home.assert_audit_verifies();
}

#[test]
fn what_a_person_edits_while_a_command_runs_is_not_overwritten_unasked() {
    let place = Place::guarded();
    place.write("file", "one\n");
    let wishes = json!({ "background": true, "stdin_open": true });
    let run = place
        .ask("echo two >> file; echo ready; read x", wishes)
        .expect(202);
    eventually("the copy has it", || place.run(&run)["stdout"] == "ready\n");
    place.write("file", "a person's\n");
    place.feed(&run, "go\n");
    let run = place.until(&run, "waiting");
    assert_eq!(place.read("file"), "a person's\n");
    let card = place.card(&run);
    assert_eq!(card["effect"]["state"], "stale", "{card}");
    let said = place.decide(&card, "apply_effect");
    assert_eq!(said.outcome(), (409, "conflict".into()));
    assert_eq!(place.read("file"), "a person's\n");
}

#[test]
fn what_a_reader_of_the_command_can_tell_is_said_of_its_changes_too() {
    let place = Place::new();
    let claim = json!({ "description": "List the pictures" });
    let run = place.held("touch a\u{200b}b", claim);
    let card = place.card(&run);
    let reasons = card["reasons"].as_array().expect("a list");
    let codes: Vec<String> = reasons.iter().map(|reason| text(reason, "code")).collect();
    assert_eq!(
        codes[codes.len() - 2..],
        ["hidden_characters", "misdescribed"],
        "{card}"
    );
}

#[test]
fn what_is_allowed_from_now_on_is_begun_by_the_yes_and_not_by_the_rule() {
    let place = Place::new();
    // All there is: by a rule alone it would be asked about once more.
    place.write("tmp/x", "");
    let asked = place.ask("rm -rf ./tmp", json!({ "review": "before" }));
    let run = asked.expect(202);
    let card = place.card(&run);
    let rule = json!({ "pattern": "rm -rf ./tmp", "agent": "coder", "sandbox": "default" });
    let answer = json!({ "kind": "approve_always", "fingerprint": card["fingerprint"],
                         "rules": [rule] });
    let path = format!("/approvals/{}/decision", text(&card, "approval_id"));
    place.ana().post(&path, &answer).expect(200);
    let run = place.until(&run, "succeeded");
    assert_eq!(run["approved_by"], "ana", "{run}");
    assert!(!place.home.base().join("tmp").exists(), "{run}");
}

#[test]
fn another_text_runs_for_real_and_what_was_tried_is_thrown_away() {
    let place = Place::new();
    place.write("a", "one\n");
    let run = place.held("sed -i s/one/two/ a", Value::Null);
    let card = place.card(&run);
    let path = format!("/approvals/{}/decision", text(&card, "approval_id"));
    let edited = json!({ "kind": "approve_edited", "command": "sed -i s/one/three/ a",
                         "fingerprint": card["fingerprint"] });
    place.ana().post(&path, &edited).expect(200);
    let ended = place.until(&run, "succeeded");
    assert_eq!(place.read("a"), "three\n");
    assert_eq!(ended["original"], "sed -i s/one/two/ a");
    assert_eq!(place.told(&run), ["changes.discarded", "changes.held"]);
    place.home.assert_audit_verifies();
}

#[test]
fn what_was_tried_can_run_for_real_and_what_was_built_on_it_goes() {
    let place = Place::new();
    place.write("a", "one\n");
    let together = || json!({ "session_id": "together" });
    let first = place.held("echo two >> a", together());
    let second = place.held("echo three >> a", together());
    // In their order only: the second has seen what the first did.
    let card = place.card(&second);
    place.decide(&card, "run_for_real").expect(409);
    let card = place.card(&first);
    place.decide(&card, "run_for_real").expect(200);
    let ended = place.until(&first, "succeeded");
    assert_eq!(ended["original"], Value::Null);
    assert_eq!(place.read("a"), "one\ntwo\n");
    let gone = place.until(&second, "rejected");
    assert!(
        text(&gone["reason"], "text").contains("did not apply"),
        "{gone}"
    );
    // What was never tried runs for real anyway.
    let before = place
        .ask("touch b", json!({ "review": "before" }))
        .expect(202);
    let card = place.card(&before);
    assert_eq!(
        place.decide(&card, "run_for_real").expect(400)["code"],
        "not_tried"
    );
    place.home.assert_audit_verifies();
}

#[test]
fn an_answer_to_run_for_real_counts_after_a_crash() {
    let mut place = Place::new();
    place.write("a", "one\n");
    let run = place.held("echo two >> a", Value::Null);
    let card = place.card(&run);
    place.decide(&card, "run_for_real").expect(200);
    place.restart();
    place.until(&run, "succeeded");
    assert_eq!(place.read("a"), "one\ntwo\n");
}

#[test]
fn where_a_try_wanted_to_go_is_said_in_the_question() {
    let place = Place::new();
    let said = "echo 'curl: (6) Could not resolve host: evil.example.com' >&2; touch made";
    let run = place.held(said, Value::Null);
    let card = place.card(&run);
    assert_eq!(
        card["effect"]["stopped"],
        json!(["evil.example.com"]),
        "{card}"
    );
    assert!(text(&card["effect"], "header").contains("tried to reach evil.example.com"));
}
