//! Whatever is wrong with the state directory is said, and costs nothing.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{Done, Home, PATIENCE, Server, Talk, eventually, not_as_this_user, skip};

#[test]
fn a_second_server_is_refused_and_the_first_stays_well() {
    let home = Home::new();
    let first = home.serve(&[]);
    assert_eq!(home.result(&[], "echo first")["stdout"], "first\n");
    for options in [&[][..], &["--recover"]] {
        let done = refusal(&home, options);
        assert!(done.err.contains("another server uses"), "{done:?}");
        assert!(done.err.contains("serve --replace"), "{done:?}");
        let (_, run) = home.ask("echo fine", Value::Null);
        assert_eq!(run["stdout"], "fine\n", "{options:?}: {run}");
        assert_eq!(kept_aside(&home), Vec::<PathBuf>::new());
        assert_eq!(home.server_pid(), first.child.id());
    }
    home.assert_audit_verifies();
    first.kill();
    let _next = home.serve(&[]);
    assert_eq!(home.ask("true", Value::Null).0, 200);
    assert_eq!(list(&home).len(), 4);
    home.assert_audit_verifies();
}

#[test]
fn a_damaged_database_is_refused_and_recovered_on_request() {
    let home = with_records();
    let file = fs::File::options().write(true).open(database(&home));
    let (file, size) = (file.unwrap(), fs::metadata(database(&home)).unwrap().len());
    let middle = size / 2 / 4096 * 4096;
    file.write_all_at(&[0xa5; 4096], middle).unwrap();
    check_recovery(&home, "is damaged");
}

#[test]
fn a_truncated_database_is_refused_and_recovered_on_request() {
    let home = with_records();
    let size = fs::metadata(database(&home)).unwrap().len();
    let file = fs::File::options().write(true).open(database(&home));
    file.unwrap().set_len(size / 2).unwrap();
    check_recovery(&home, "is damaged");
}

#[test]
fn a_database_with_a_truncated_log_is_refused_and_recovered_on_request() {
    let home = Home::new();
    let server = home.serve(&[]);
    for _ in 0..20 {
        home.ask("true", Value::Null);
    }
    server.kill();
    let log = home.state().join("weighlock.db-wal");
    let size = fs::metadata(&log).unwrap().len();
    let file = fs::File::options().write(true).open(log);
    file.unwrap().set_len(size / 2).unwrap();
    check_recovery(&home, "is not the one that");
}

#[test]
fn an_emptied_database_is_refused_and_recovered_on_request() {
    let home = with_records();
    fs::write(database(&home), "").unwrap();
    check_recovery(&home, "is gone, but the audit had");
}

#[test]
fn a_vanished_database_is_refused_and_recovered_on_request() {
    let home = with_records();
    fs::remove_file(database(&home)).unwrap();
    check_recovery(&home, "is gone, but the audit had");
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_left_as_it_is() {
    let home = with_records();
    let newer = open(&home);
    newer.pragma_update(None, "user_version", 99).unwrap();
    close(newer);
    let before = fs::read(database(&home)).unwrap();
    let done = refusal(&home, &[]);
    assert!(done.err.contains("newer version"), "{done:?}");
    assert!(fs::read(database(&home)).unwrap() == before);
}

#[test]
fn a_read_only_state_directory_is_refused() {
    for with_database in [false, true] {
        let home = if with_database {
            with_records()
        } else {
            Home::new()
        };
        let read_only = "mount --bind $WEIGHLOCK_STATE_DIR $WEIGHLOCK_STATE_DIR && mount -o remount,ro,bind $WEIGHLOCK_STATE_DIR";
        let Some(server) = inside(home.try_serve_after(read_only)) else {
            return;
        };
        let done = server.err().expect("a refusal");
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.err.contains("Read-only file system"), "{done:?}");
        assert!(done.err.contains("hint: "), "{done:?}");
    }
}

#[test]
fn a_full_disk_stops_new_runs_only_and_is_left_behind_without_a_restart() {
    let home = Home::new();
    let small = "mount -t tmpfs -o size=8m small $WEIGHLOCK_STATE_DIR";
    let Some(server) = inside(home.try_serve_after(small)) else {
        return;
    };
    let mut server = server.unwrap_or_else(|done| panic!("no server: {done:?}"));
    let printing = home.start(
        "echo before; until [ -e full ]; do sleep 0.02; done; seq 1 200000; \
         until [ -e free ]; do sleep 0.02; done; echo after; exit 3",
        Value::Null,
    );
    let ending = home.start(
        "until [ -e full ]; do sleep 0.02; done; echo unheard; exit 4",
        Value::Null,
    );
    eventually("it prints", || !home.output(&printing).is_empty());
    let filler = fill(&home);
    fs::write(home.base().join("full"), "").unwrap();
    for n in 0..10 {
        let began = Instant::now();
        let (status, problem) = home.ask("echo ran >> ran", Value::Null);
        assert_eq!(problem["code"], "storage_full", "{n}: {problem}");
        assert_eq!(status, 507, "{n}: {problem}");
        assert!(began.elapsed() < PATIENCE, "{n}");
    }
    // What was under way ends, although that cannot be recorded yet.
    let run = home.ended(&ending);
    assert_eq!(
        (&run["state"], &run["exit_code"]),
        (&json!("failed"), &json!(4)),
        "{run}"
    );
    eventually("all was said", || {
        home.get(&printing)["output"]["bytes"] == json!("before\n".len() + 1_288_895)
    });
    assert_eq!(
        server.child.try_wait().unwrap(),
        None,
        "the server stays up"
    );
    fs::remove_file(filler).unwrap();
    eventually("the end is recorded", || {
        recorded(&home, &ending) == ("failed".into(), Some(4))
    });
    let (status, run) = home.ask("echo again >> ran; echo heard", Value::Null);
    assert_eq!((status, &run["stdout"]), (200, &json!("heard\n")), "{run}");
    fs::write(home.base().join("free"), "").unwrap();
    let run = home.ended(&printing);
    assert_eq!(
        (&run["state"], &run["exit_code"]),
        (&json!("failed"), &json!(3)),
        "{run}"
    );
    check_losses(&home, &run);
    assert_eq!(home.lines("ran"), ["again"], "nothing ran that was refused");
    home.assert_audit_verifies();
}

#[test]
fn a_full_disk_is_said_also_where_the_record_has_room_left() {
    let home = Home::new();
    let small = "mount -t tmpfs -o size=16m small $WEIGHLOCK_STATE_DIR";
    let Some(server) = inside(home.try_serve_after(small)) else {
        return;
    };
    let _server = server.unwrap_or_else(|done| panic!("no server: {done:?}"));
    let mut talk = Talk::open(&home);
    // Once the database's log has been written back, it is filled anew from
    // its beginning, and needs no room for that.
    let log = home.state().join("weighlock.db-wal");
    let size = || fs::metadata(&log).map_or(0, |file| file.len());
    let (mut before, mut same) = (0, 0);
    while same < 5 {
        let body = home.wish(&format!("true {}", "x".repeat(30_000)), Value::Null);
        assert_eq!(talk.ask("POST", "/commands", &body).status, 200);
        same = if size() == before { same + 1 } else { 0 };
        before = size();
    }
    // What the last ones leave is removed after their answer, and some of it is
    // open for a moment longer.
    let mut filler = home.state().join("filler");
    eventually("it is full", || {
        filler = fill(&home);
        (0..3).all(|_| home.ask("true", Value::Null).1["code"] == "storage_full")
    });
    for n in 0..10 {
        let began = Instant::now();
        let (status, problem) = home.ask("echo ran >> ran", Value::Null);
        assert_eq!(problem["code"], "storage_full", "{n}: {problem}");
        assert_eq!(status, 507, "{n}: {problem}");
        assert!(began.elapsed() < PATIENCE, "{n}");
    }
    fs::remove_file(filler).unwrap();
    eventually("no run is left open", || {
        list(&home).iter().all(|run| run["open"] == false)
    });
    assert_eq!(home.ask("true", Value::Null).0, 200);
    assert_eq!(home.lines("ran"), Vec::<String>::new());
    eventually("no directory is left", || home.run_dirs() == 0);
    home.assert_audit_verifies();
}

/// The beginning and the end are there, and what is missing was counted.
fn check_losses(home: &Home, run: &Value) {
    let output = &run["output"];
    let lost = output["lost_bytes"].as_u64().unwrap_or_default();
    assert!(lost > 0, "{run}");
    let because = output["lost_because"].as_str().unwrap_or_default();
    assert!(because.contains("No space left"), "{run}");
    let kept = home.output(run["command_id"].as_str().unwrap_or_default());
    assert!(kept.starts_with(b"before\n"), "{}", kept.len());
    assert!(kept.ends_with(b"after\n"), "{}", kept.len());
    assert_eq!(output["bytes"], json!(kept.len() as u64 + lost), "{run}");
    assert_eq!(output["kept_bytes"], json!(kept.len()), "{run}");
}

#[test]
fn a_flood_onto_a_full_disk_leaves_no_heap_of_files() {
    let home = Home::new();
    let small = "mount -t tmpfs -o size=8m small $WEIGHLOCK_STATE_DIR";
    let Some(server) = inside(home.try_serve_after(small)) else {
        return;
    };
    let _server = server.unwrap_or_else(|done| panic!("no server: {done:?}"));
    let flood = home.start(
        "until [ -e full ]; do sleep 0.02; done; head -c 300000000 /dev/zero; exit 2",
        Value::Null,
    );
    eventually("it runs", || home.status_file(&flood).is_some());
    let filler = fill(&home);
    fs::write(home.base().join("full"), "").unwrap();
    let run = home.ended(&flood);
    assert_eq!(run["output"]["bytes"], 300_000_000, "{run}");
    let files = home.files_of(&flood);
    assert!(files < 40, "{files} files");
    fs::remove_file(filler).unwrap();
}

#[test]
fn what_ends_in_a_terminal_while_the_disk_is_full_is_recorded_later() {
    let home = Home::new();
    let small = "mount -t tmpfs -o size=8m small $WEIGHLOCK_STATE_DIR";
    let Some(server) = inside(home.try_serve_after(small)) else {
        return;
    };
    let _server = server.unwrap_or_else(|done| panic!("no server: {done:?}"));
    let open = json!({ "name": "shell", "description": "for a test", "command": "bash" });
    let (status, opened) = home.api("POST", "/terminals", &open);
    assert!(status < 300, "{opened}");
    let command = "until [ -e full ]; do sleep 0.02; done; touch over; sh -c 'exit 6'";
    let body = json!({ "command": command, "wait_ms": 0 });
    let (_, run) = home.api("POST", "/terminals/shell/exec", &body);
    let id = run["command_id"].as_str().expect("an id");
    // Once it is typed, nothing has to be recorded before its end.
    eventually("it runs", || home.get(id)["started_at"].is_string());
    let filler = fill(&home);
    fs::write(home.base().join("full"), "").unwrap();
    eventually("it is over", || home.base().join("over").exists());
    assert_eq!(home.ask("true", Value::Null).0, 507);
    // Nothing tells that its end could not be recorded.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(home.get(id)["state"], "running");
    fs::remove_file(filler).unwrap();
    eventually("its end is recorded", || {
        recorded(&home, id) == ("failed".into(), Some(6))
    });
    // Its keeper would look for another server on a disk that is there for none.
    let (status, _) = home.api("DELETE", "/terminals/shell", &Value::Null);
    assert!(status < 300);
    home.assert_audit_verifies();
}

#[test]
fn a_locked_database_is_waited_for_and_then_said() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let other = open(&home);
    let ending = home.start("until [ -e go ]; do sleep 0.02; done; exit 5", Value::Null);

    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let mut talk = Talk::open(&home);
    talk.send(
        "POST",
        "/commands",
        &home.wish("echo waited >> ran", Value::Null),
    );
    // Nothing tells that a request waits, except that nothing happens.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(home.lines("ran"), Vec::<String>::new());
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(talk.receive().status, 200);

    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    fs::write(home.base().join("go"), "").unwrap();
    let began = Instant::now();
    let body = home.wish("echo refused >> ran", Value::Null);
    let answer = talk.ask("POST", "/commands", &body);
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert_eq!(answer.body["code"], "store_busy", "{}", answer.body);
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(detail.contains("nothing was run"), "{detail}");
    assert!(answer.head.contains("\r\nretry-after: "), "{}", answer.head);
    other.execute_batch("ROLLBACK").unwrap();

    eventually("the end is recorded", || {
        recorded(&home, &ending) == ("failed".into(), Some(5))
    });
    assert_eq!(
        talk.ask("POST", "/commands", &home.wish("true", Value::Null))
            .status,
        200
    );
    assert_eq!(home.lines("ran"), ["waited"]);
    home.assert_audit_verifies();
}

#[test]
fn a_server_takes_the_place_of_another_and_its_runs_go_on() {
    let home = Home::new();
    let first = home.serve(&[]);
    let id = home.start(
        "while [ ! -e go ]; do sleep 0.02; done; echo done",
        json!({}),
    );
    let _second = home.serve(&["--replace"]);
    drop(first);
    fs::write(home.base().join("go"), "").unwrap();
    let followed = home.call(&["output", &id, "--follow"]);
    assert_eq!(followed.out, "done\n");
    let stopped = home.call(&["serve", "--stop"]);
    assert_eq!((stopped.code, stopped.err.as_str()), (Some(0), "stopped\n"));
    let again = home.call(&["serve", "--stop"]);
    assert_eq!(
        (again.code, again.err.as_str()),
        (Some(0), "no server runs\n")
    );
}

#[test]
fn the_state_of_another_user_is_left_alone() {
    let home = Home::new();
    fs::create_dir(home.state()).unwrap();
    if !rustix::process::geteuid().is_root() {
        return not_as_this_user("only root can give a directory away");
    }
    std::os::unix::fs::chown(home.state(), Some(12345), None).unwrap();
    let done = refusal(&home, &[]);
    assert!(done.err.contains("belongs to another user"), "{done:?}");
}

#[test]
fn runs_that_only_a_damaged_database_knew_are_ended_by_its_recovery() {
    let home = Home::new();
    let server = home.serve(&[]);
    let (_, run) = home.ask("sleep 99", json!({ "background": true }));
    assert_eq!(run["state"], "running");
    server.kill();
    fs::write(database(&home), "broken").unwrap();
    // All of it is still in the log, which would mend it.
    fs::remove_file(home.state().join("weighlock.db-wal")).unwrap();
    let _server = home.serve(&["--recover"]);
    home.assert_gone();
}

/// A home with thirty runs in a database that no server holds, all of it in
/// one file.
fn with_records() -> Home {
    let home = Home::new();
    let server = home.serve(&[]);
    let mut talk = Talk::open(&home);
    for n in 0..30 {
        let body = home.wish(&format!("echo {n}"), Value::Null);
        assert_eq!(talk.ask("POST", "/commands", &body).status, 200);
    }
    drop(talk);
    assert_eq!(server.terminate(), Some(0));
    close(open(&home));
    home
}

/// The start is refused, then granted with `--recover`, and nothing is lost.
fn check_recovery(home: &Home, why: &str) {
    let before = fs::read(database(home)).ok();
    let done = refusal(home, &[]);
    assert!(done.err.contains(why), "{done:?}");
    assert!(done.err.contains("--recover"), "{done:?}");
    let untouched = fs::read(database(home)).ok() == before;
    assert!(untouched, "a refused start changed the database");
    let server = home.serve(&["--recover"]);
    let said = match before {
        Some(_) => "the damaged database is at",
        None => "the database was gone",
    };
    assert!(server.said.contains(said), "{}", server.said);
    let aside = kept_aside(home);
    let is = |path: &&PathBuf, name: &str| {
        let path = path.file_name().unwrap_or_default().to_string_lossy();
        path.starts_with(name) && !path.contains("-wal") && !path.contains("-shm")
    };
    let old = aside.iter().find(|path| is(path, "weighlock.db.broken-"));
    assert!(
        old.and_then(|path| fs::read(path).ok()) == before,
        "{aside:?}"
    );
    assert!(aside.iter().any(|path| is(&path, "audit.head.broken-")));
    let (_, run) = home.ask("echo anew", Value::Null);
    assert_eq!(run["stdout"], "anew\n", "{run}");
    assert_eq!(list(home).len(), 1);
    home.assert_audit_verifies();
    drop(server);
    // Without the damage it begins as ever, whatever it is told.
    for options in [&[][..], &["--recover"]] {
        let server = home.serve(options);
        assert_eq!(list(home).len(), 1);
        assert_eq!(server.terminate(), Some(0));
    }
}

#[track_caller]
fn refusal(home: &Home, options: &[&str]) -> Done {
    let done = home.try_serve(options).err().expect("a refusal");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("error: "), "{done:?}");
    assert!(done.err.contains("hint: "), "{done:?}");
    done
}

/// Says so when this machine gives no mounts to anyone.
fn inside(server: Result<Server, Done>) -> Option<Result<Server, Done>> {
    match server {
        Err(done) if done.err.contains("unshare:") || done.err.contains("mount:") => {
            skip(&format!("no mount namespace here: {}", done.err));
            None
        }
        other => Some(other),
    }
}

/// Fills the state directory's disk to the last byte.
fn fill(home: &Home) -> PathBuf {
    let path = home.state().join("filler");
    let file = fs::OpenOptions::new().append(true).create(true).open(&path);
    let mut file = file.unwrap();
    for size in [64 * 1024, 4096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    path
}

fn database(home: &Home) -> PathBuf {
    home.state().join("weighlock.db")
}

fn open(home: &Home) -> Connection {
    Connection::open(database(home)).unwrap()
}

/// Leaves everything in the one file.
fn close(database: Connection) {
    let _: i64 = database
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .unwrap();
    database.close().expect("no statement is open");
}

/// What the record says about a run.
fn recorded(home: &Home, id: &str) -> (String, Option<i64>) {
    let run = home.get(id);
    let state = run["state"].as_str().unwrap_or_default().to_owned();
    (state, run["exit_code"].as_i64())
}

fn kept_aside(home: &Home) -> Vec<PathBuf> {
    let broken = |path: &Path| path.to_string_lossy().contains(".broken-");
    let files = fs::read_dir(home.state()).unwrap();
    let files = files.map(|file| file.unwrap().path());
    files.filter(|path| broken(path)).collect()
}

fn list(home: &Home) -> Vec<Value> {
    let (_, list) = home.api("GET", "/commands", &Value::Null);
    list["commands"].as_array().expect("a list").clone()
}

#[test]
fn a_log_that_cannot_be_written_ends_no_request() {
    let mut home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    std::os::unix::fs::symlink("/dev/full", home.state().join("server.log")).unwrap();
    // Something is said with each request.
    home.set("WEIGHLOCK_LOG", "trace");
    // Nobody has started a server, so that this does.
    let done = home.run(&["-q"], "echo fine");
    assert_eq!((done.code, &*done.out), (Some(0), "fine\n"), "{done:?}");
    home.call(&["serve", "--stop"]);
}
