//! A server that dies while something is tried, decided, applied or undone:
//! afterwards all of it is done or nothing, and the record says which.

use std::fs;
use std::io::Read;
use std::time::Duration;

use serde_json::{Value, json};

use super::Place;
use super::tree::Tree;
use crate::caller::Caller;
use crate::crash::{end, kill_at};
use crate::crew::text;
use crate::desk::races;
use crate::support::{eventually, is_alive};

/// Asks a server that dies meanwhile; whether it answered is not known.
fn ask_the_dying(caller: &Caller, path: &str, body: &Value, meanwhile: impl FnOnce()) {
    let address = format!("/agent/terminal{path}");
    let mut line = caller.open("POST", &address, body.to_string().as_bytes());
    meanwhile();
    let _ = line.read_to_end(&mut vec![]);
}

/// The yes to a question.
fn yes(place: &Place, run: &Value) -> (String, Value) {
    let card = place.card(run);
    let path = format!("/approvals/{}/decision", text(&card, "approval_id"));
    let body = json!({ "kind": "apply_effect", "fingerprint": card["fingerprint"] });
    (path, body)
}

/// Some moment, another each time.
fn spread(n: usize, below_micros: u64) -> Duration {
    Duration::from_micros(n as u64 * 7919 % below_micros)
}

#[test]
fn changes_of_a_run_that_outlives_the_server_are_asked_about() {
    let mut place = Place::new();
    place.write("file", "one\n");
    let wishes = json!({ "background": true, "timeout_ms": 60_000 });
    let run = place
        .ask("echo two >> file; echo x > x; sleep 3; echo z > z", wishes)
        .expect(202);
    place.kill();
    assert_eq!(place.read("file"), "one\n");
    place.restart();
    let run = place.until(&run, "waiting");
    assert_eq!(
        run["changes"]["paths"],
        json!(["M file", "A x", "A z"]),
        "{run}"
    );
    assert_eq!(place.read("file"), "one\n");
    place.apply(&run);
    assert_eq!(
        (place.read("file"), place.read("z")),
        ("one\ntwo\n".into(), "z\n".into())
    );
    place.home.assert_audit_verifies();
}

#[test]
fn changes_of_a_run_that_ends_without_a_server_are_asked_about() {
    let mut place = Place::new();
    let wishes = json!({ "background": true, "timeout_ms": 60_000 });
    let run = place
        .ask("echo x > x; sleep 1; echo y > y", wishes)
        .expect(202);
    let keeper = place.home.keeper(&text(&run, "command_id"));
    place.kill();
    eventually("its keeper is gone", || !is_alive(keeper));
    place.restart();
    let run = place.until(&run, "waiting");
    assert_eq!(run["changes"]["paths"], json!(["A x", "A y"]), "{run}");
    place.apply(&run);
    assert_eq!(place.read("y"), "y\n");
}

#[test]
fn what_waits_still_waits_after_a_restart() {
    let mut place = Place::new();
    place.write("file", "one\n");
    let first = place.held("echo two >> file", json!({ "session_id": "work" }));
    let second = place.held("echo three >> file", json!({ "session_id": "work" }));
    place.restart();
    let out = place.unasked("cat file", json!({ "session_id": "work" }));
    assert_eq!(out["stdout"], "one\ntwo\nthree\n", "{out}");
    place.apply(&first);
    place.restart();
    place.apply(&second);
    place.restart();
    assert_eq!(place.read("file"), "one\ntwo\nthree\n");
    for run in [second, first] {
        place.with_run(&run, "revert", &Value::Null).expect(200);
    }
    assert_eq!(place.read("file"), "one\n");
    place.home.assert_audit_verifies();
}

/// Once a server is back, what was answered is applied, or can be answered
/// again; never half. Returns whether it was applied.
#[track_caller]
fn check_all_or_nothing(place: &Place, run: &Value, trees: (&Tree, &Tree), when: &str) -> bool {
    let (before, after) = trees;
    // One that is applied right after the start is soon on record.
    let path = format!("/commands/{}?wait_ms=20000", text(run, "command_id"));
    let mut now = place.run(run);
    if now["state"] != "waiting" {
        now = place.owner().get(&path).expect(200);
    }
    eventually(when, || {
        let tree = place.tree();
        tree == *before || tree.alike(after)
    });
    let now = match now["state"] == "waiting" {
        true => place.run(run),
        false => now,
    };
    let applied = place.tree() != *before;
    match applied {
        true => {
            let now = place.until(&now, "succeeded");
            assert_eq!(now["changes"]["state"], "applied", "{when}: {now}");
            let told = place.told(run);
            assert_eq!(told, ["changes.applied", "changes.held"], "{when}");
        }
        false => {
            assert_eq!(now["changes"]["state"], "held", "{when}: {now}");
            assert_eq!(place.told(run), ["changes.held"], "{when}");
            place.apply(&now);
        }
    }
    assert!(place.tree().alike(after), "{when}");
    place.home.assert_audit_verifies();
    applied
}

#[test]
fn killed_at_any_moment_around_an_answer_applies_all_or_nothing() {
    let mut place = Place::new();
    place.write("file", "one\n");
    place.write("gone", "one\n");
    let before = place.tree();
    let (mut done, times) = (0, races(8));
    for n in 0..times {
        let run = place.held("echo two >> file; rm gone; echo x > new", Value::Null);
        let (path, body) = yes(&place, &run);
        let ana = place.ana();
        let moment = spread(n, 25_000);
        ask_the_dying(&ana, &path, &body, || {
            std::thread::sleep(moment);
            place.kill();
        });
        place.restart();
        let after = expected(&place, &run);
        let applied = check_all_or_nothing(&place, &run, (&before, &after), &format!("{moment:?}"));
        done += usize::from(applied);
        place.with_run(&run, "revert", &Value::Null).expect(200);
        assert_eq!(place.tree(), before);
    }
    println!("{done} of {times} applied before the end");
}

/// The tree as it is when the changes of a run are applied: whatever the try
/// left, told by a copy of our own.
fn expected(place: &Place, _run: &Value) -> Tree {
    let dir = place.home.around().join("expected");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("file"), "one\ntwo\n").unwrap();
    fs::write(dir.join("new"), "x\n").unwrap();
    Tree::of(&dir)
}

const MANY: usize = 500;

/// Changes, removes and makes files: 500 in all.
const CHANGE_MANY: &str = "\
for f in $(seq 1 250); do echo more >> many/$f; done
(cd many; rm $(seq 251 375))
mkdir new; for f in $(seq 1 125); do echo $f > new/$f; done";

fn write_many(place: &Place) {
    for n in 1..=MANY {
        place.write(&format!("many/{n}"), &format!("{n}\n"));
    }
}

#[test]
fn killed_while_applying_many_files_applies_all_or_nothing() {
    let mut place = Place::new();
    write_many(&place);
    let before = place.tree();
    let run = place.held(CHANGE_MANY, Value::Null);
    let began = std::time::Instant::now();
    place.apply(&run);
    let took = began.elapsed();
    let after = place.tree();
    let undo = place.with_run(&run, "revert", &Value::Null).expect(200);
    assert_eq!(place.tree(), before);
    drop(undo);
    let (mut done, times) = (0, races(8));
    for n in 0..times {
        let run = place.held(CHANGE_MANY, Value::Null);
        let (path, body) = yes(&place, &run);
        let ana = place.ana();
        // Spread over as long as it takes.
        let moment = took.mul_f64((n as f64 + 0.5) / times as f64);
        ask_the_dying(&ana, &path, &body, || {
            std::thread::sleep(moment);
            place.kill();
        });
        place.restart();
        let applied = check_all_or_nothing(&place, &run, (&before, &after), &format!("{moment:?}"));
        done += usize::from(applied);
        place.with_run(&run, "revert", &Value::Null).expect(200);
        assert_eq!(place.tree(), before, "{moment:?}");
    }
    println!("{done} of {times} applied before the end");
}

#[test]
fn killed_while_undoing_many_files_undoes_all_or_nothing() {
    let mut place = Place::new();
    write_many(&place);
    let before = place.tree();
    let mut run = place.apply(&place.held(CHANGE_MANY, Value::Null));
    let mut after = place.tree();
    let began = std::time::Instant::now();
    place.with_run(&run, "revert", &Value::Null).expect(200);
    let took = began.elapsed();
    run = place.apply(&place.held(CHANGE_MANY, Value::Null));
    let (mut done, times) = (0, races(10));
    for n in 0..times {
        if place.tree() == before {
            run = place.apply(&place.held(CHANGE_MANY, Value::Null));
        }
        after = match n {
            0 => place.tree(),
            _ if place.tree().alike(&after) => place.tree(),
            _ => panic!("neither before nor after"),
        };
        let path = format!("/commands/{}/revert", text(&run, "command_id"));
        let ana = place.ana();
        let moment = took.mul_f64((n as f64 + 0.5) / times as f64);
        ask_the_dying(&ana, &path, &Value::Null, || {
            std::thread::sleep(moment);
            place.kill();
        });
        place.restart();
        let undone = place.tree() == before;
        done += usize::from(undone);
        assert!(undone || place.tree() == after, "{moment:?}: neither");
        let state = if undone { "undone" } else { "applied" };
        assert_eq!(place.run(&run)["changes"]["state"], state, "{moment:?}");
        let told = place.told(&run);
        assert_eq!(
            told.contains(&"changes.undone".into()),
            undone,
            "{moment:?}: {told:?}"
        );
        place.home.assert_audit_verifies();
    }
    println!("{done} of {times} undone before the end");
}

#[test]
fn nobody_is_told_that_an_undo_changed_nothing_where_that_is_not_known() {
    let mut place = Place::new();
    place.write("file", "one\n");
    let run = place.apply(&place.held("echo two >> file", Value::Null));
    let undone = place.with_run(&run, "revert", &Value::Null).expect(200);
    let id = text(&undone, "command_id");
    assert_eq!(place.read("file"), "one\n");

    // As a server leaves it that ends between the files and the record.
    place.kill();
    let state = place.home.state();
    let database = rusqlite::Connection::open(state.join("weighlock.db")).unwrap();
    let sql = "UPDATE terminal_commands SET state = 'running', open = 1, ended_at = NULL \
               WHERE command_id = ?1";
    assert_eq!(database.execute(sql, [&id]), Ok(1));
    drop(database);
    fs::write(state.join("undo").join(&id).join("applied"), "{").unwrap();
    place.restart();

    eventually("it is settled", || place.run(&undone)["state"] != "running");
    let settled = place.run(&undone);
    assert_eq!(settled["state"], "lost", "{settled}");
    let reason = text(&settled["reason"], "text");
    assert!(reason.contains("it is not known how far"), "{reason}");
    assert!(!reason.contains("Nothing was changed"), "{reason}");
}

#[test]
fn killed_at_any_write_while_applying_applies_all_or_nothing() {
    let mut place = Place::new();
    place.write("file", "one\n");
    place.write("gone", "one\n");
    let before = place.tree();
    let mut hit = 0;
    let points = [
        ("pwrite64", &[1, 2, 4, 8][..]),
        ("renameat2", &[1, 2, 3, 4]),
        ("renameat", &[1, 2]),
        ("mkdirat", &[1, 2]),
        ("unlinkat", &[1, 2, 3]),
        ("openat", &[10, 20, 40]),
        ("utimensat", &[1, 2, 3]),
    ];
    for (call, nths) in points {
        for &nth in nths {
            let run = place.held("echo two >> file; rm gone; echo x > new", Value::Null);
            let (path, body) = yes(&place, &run);
            let Some(strace) = kill_at(place.server(), call, nth) else {
                return;
            };
            ask_the_dying(&place.ana(), &path, &body, || ());
            hit += usize::from(!is_alive(place.server().child.id()));
            place.kill();
            end(strace);
            place.restart();
            let after = expected(&place, &run);
            check_all_or_nothing(&place, &run, (&before, &after), &format!("{call} {nth}"));
            place.with_run(&run, "revert", &Value::Null).expect(200);
            assert_eq!(place.tree(), before, "{call} {nth}");
        }
    }
    println!("{hit} killed by strace");
    assert!(hit > 0, "strace never killed it");
}
