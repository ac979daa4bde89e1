//! Whoever changes the record is found out, and where.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::Home;

/// A record of eight runs, whole, with nobody writing to it.
struct Record {
    home: Home,
    entries: u64,
}

impl Record {
    fn new() -> Self {
        let home = Home::new();
        let server = home.serve(&[]);
        for n in 0..8 {
            home.ask(&format!("echo {n}"), Value::Null);
        }
        assert_eq!(server.terminate(), Some(0));
        let database = Connection::open(home.state().join("weighlock.db")).unwrap();
        let entries = database
            .query_row("SELECT max(seq) FROM audit", [], |row| row.get(0))
            .unwrap();
        home.assert_audit_verifies();
        Self { home, entries }
    }

    /// Changes a copy of the database and checks what is found.
    #[track_caller]
    fn check(&self, tampering: &str, first_bad: u64, what: &str) {
        let copy = tempfile::tempdir().unwrap();
        for file in fs::read_dir(self.home.state()).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
            }
        }
        let database = Connection::open(copy.path().join("weighlock.db")).unwrap();
        database.execute_batch(tampering).unwrap();
        drop(database);
        let mut command = self.home.weighlock(&["audit", "verify", "--json"]);
        command.env("WEIGHLOCK_STATE_DIR", copy.path());
        check(tampering, command, first_bad, what);
    }

    /// Changes the lines of an export and checks what is found.
    #[track_caller]
    fn check_export(&self, change: impl FnOnce(&mut Vec<String>), first_bad: u64, what: &str) {
        let path = self.export();
        let mut lines = read(&path);
        change(&mut lines);
        fs::write(&path, lines.concat()).unwrap();
        let mut command = self
            .home
            .weighlock(&["audit", "verify", "--json", "--file"]);
        command.arg(path);
        check("the export", command, first_bad, what);
    }

    fn export(&self) -> PathBuf {
        let path = self.home.base().join("audit.jsonl");
        let done = self
            .home
            .call(&["audit", "export", "-o", path.to_str().expect("plain")]);
        assert_eq!(done.code, Some(0), "{done:?}");
        path
    }
}

#[track_caller]
fn check(tampering: &str, mut verify: std::process::Command, first_bad: u64, what: &str) {
    let done = verify.output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{tampering}: {done:?}");
    let found: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        found["fault"]["seq"],
        json!(first_bad),
        "{tampering}: {found}"
    );
    assert_eq!(
        found["entries"],
        json!(first_bad - 1),
        "{tampering}: {found}"
    );
    let said = found["fault"]["what"].as_str().unwrap_or_default();
    assert!(said.contains(what), "{tampering}: {said}");
}

fn read(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    text.split_inclusive('\n').map(str::to_owned).collect()
}

#[test]
fn the_first_changed_entry_of_the_database_is_named() {
    let record = Record::new();
    let last = record.entries;
    record.check(
        "UPDATE audit SET body = replace(body, 'echo', 'exec') WHERE seq IN (7, 9)",
        7,
        "its content was changed",
    );
    record.check(
        "UPDATE audit SET body = 'x' WHERE seq = 3",
        3,
        "not an entry",
    );
    record.check("DELETE FROM audit WHERE seq = 5", 5, "it is missing");
    record.check("DELETE FROM audit WHERE seq = 1", 1, "it is missing");
    let swap = "UPDATE audit SET seq = -1 WHERE seq = 4; \
                UPDATE audit SET seq = 4 WHERE seq = 7; UPDATE audit SET seq = 7 WHERE seq = -1";
    record.check(swap, 4, "it is missing; entry 7 stands there");
    record.check(
        &format!("DELETE FROM audit WHERE seq > {}", last - 3),
        last - 2,
        "the end is cut off",
    );
    record.check("DELETE FROM audit", 1, "the end is cut off");
    record.check(
        "UPDATE audit SET hash = replace(hash, substr(hash, 1, 1), 'z') WHERE seq = 6",
        6,
        "its content was changed",
    );
    record.check(
        &format!("UPDATE audit SET hash = 'x' WHERE seq = {last}"),
        last,
        "its content was changed",
    );
    record.check(
        "UPDATE audit SET run = 'r_other' WHERE seq = 4",
        4,
        "filed under",
    );
    record.check(
        "UPDATE audit SET kind = 'run.blocked' WHERE seq = 4",
        4,
        "filed under",
    );
}

#[test]
fn the_first_changed_entry_is_named_to_people_too() {
    let record = Record::new();
    let database = Connection::open(record.home.state().join("weighlock.db")).unwrap();
    database
        .execute_batch("UPDATE audit SET body = replace(body, 'echo', 'exec') WHERE seq = 7")
        .unwrap();
    drop(database);
    let done = record.home.call(&["audit", "verify"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.out.contains("entry 7 is wrong"), "{done:?}");
}

#[test]
fn the_first_changed_line_of_an_export_is_named() {
    let record = Record::new();
    let last = record.entries;
    let whole = record.export();
    let path = whole.to_str().expect("plain");
    let done = record.home.call(&["audit", "verify", "--file", path]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let edit = |lines: &mut Vec<String>| lines[6] = lines[6].replace("echo", "exec");
    record.check_export(edit, 7, "its content was changed");
    let forge =
        |lines: &mut Vec<String>| lines[5] = lines[5].replacen(r#""hash":""#, r#""hash":"0"#, 1);
    record.check_export(forge, 6, "its content was changed");
    record.check_export(|lines| drop(lines.remove(4)), 5, "it is missing");
    record.check_export(|lines| drop(lines.remove(0)), 1, "it is missing");
    record.check_export(|lines| lines.swap(3, 6), 4, "it is missing");
    let cut = |lines: &mut Vec<String>| drop(lines.drain(last as usize - 2..last as usize));
    record.check_export(cut, last - 1, "the end is cut off");
    // An export ends with a line that says where it ends.
    let cut = |lines: &mut Vec<String>| lines.truncate(last as usize - 2);
    record.check_export(cut, last - 1, "");
    record.check_export(|lines| lines.truncate(last as usize), last + 1, "");
    record.check_export(Vec::clear, 1, "");
    let tear = |lines: &mut Vec<String>| lines[2].truncate(20);
    record.check_export(tear, 3, "");
}

/// Settings with which a server removes all that is over as it starts.
const SHORT: &str = "[output]\nage = \"1ms\"\n[store]\nage = \"1ms\"\n";

#[test]
fn a_record_without_its_oldest_part_verifies_and_shows_tampering() {
    let mut record = Record::new();
    let before = record.entries;
    // One start removes the output, which is an entry about the last run, and maybe
    // less than a millisecond later what is a millisecond old of the record.
    assert_eq!(record.home.serve_with(SHORT).terminate(), Some(0));
    let server = record.home.serve_with(SHORT);
    assert_eq!(record.home.newest(), Value::Null, "the runs are gone");
    for n in 0..4 {
        record.home.ask(&format!("echo {n}"), Value::Null);
    }
    let said = record.home.call(&["doctor"]).out;
    assert!(said.contains("chain ok; entries 1 to "), "{said}");
    assert_eq!(server.terminate(), Some(0));

    let done = record.home.call(&["audit", "verify"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains(" by retention"), "{done:?}");
    let path = record.export();
    let path = path.to_str().expect("plain");
    let done = record
        .home
        .call(&["audit", "verify", "--json", "--file", path]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let found: Value = serde_json::from_str(&done.out).unwrap();
    let removed = found["removed"]["removed_to"].as_u64().unwrap();
    assert!(removed >= before, "{found}");

    let database = Connection::open(record.home.state().join("weighlock.db")).unwrap();
    let seq = |sql: &str| -> u64 { database.query_row(sql, [], |row| row.get(0)).unwrap() };
    record.entries = seq("SELECT max(seq) FROM audit");
    assert_eq!(seq("SELECT min(seq) FROM audit"), removed + 1);
    let told = seq("SELECT max(seq) FROM audit WHERE kind = 'audit.checkpoint'");
    let run = seq("SELECT min(seq) FROM audit WHERE kind = 'run.started'");
    assert!(told < run);
    drop(database);
    record.check(
        &format!("UPDATE audit SET body = replace(body, 'echo', 'exec') WHERE seq = {run}"),
        run,
        "its content was changed",
    );
    record.check(
        &format!("DELETE FROM audit WHERE seq <= {told}"),
        1,
        "it is missing",
    );
    let forged = format!(
        "UPDATE audit SET body = replace(body, '\"removed_to\":{removed}', '\"removed_to\":{told}') \
         WHERE seq = {told}"
    );
    record.check(&forged, told, "its content was changed");
}

/// Edits the database of a stopped server and returns what `audit verify` finds.
fn edited(home: &Home, sql: &str) -> Value {
    let database = Connection::open(home.state().join("weighlock.db")).unwrap();
    assert!(database.execute(sql, []).unwrap() > 0, "{sql}");
    drop(database);
    let done = home.call(&["audit", "verify", "--json"]);
    assert_eq!(done.code, Some(1), "{sql}: {done:?}");
    serde_json::from_str::<Value>(&done.out).unwrap()["fault"].clone()
}

#[test]
fn facts_that_were_forged_in_the_tables_are_named_and_marked() {
    let home = Home::untouched();
    let server = home.serve(&[]);
    home.put("base/notes", "old\n");
    let asked = home.run(&["--no-wait", "--json"], "echo new > notes");
    let run: Value = serde_json::from_str(&asked.out).unwrap();
    let id = run["short_id"].as_str().unwrap();
    let done = home.call(&["commit", id]);
    assert_eq!(done.code, Some(0), "{done:?}");
    home.run(&[], "echo read");
    assert_eq!(server.terminate(), Some(0));
    home.assert_audit_verifies();

    // All of it in one file, so that each is put right again before the next.
    let database = Connection::open(home.state().join("weighlock.db")).unwrap();
    database
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(database);
    let forged = [
        ("terminal_commands", "command", "'echo harmless'"),
        ("terminal_commands", "approved_by", "'ana'"),
        ("approvals", "decided_by", "'ana'"),
        ("answers", "reason", "'looked fine'"),
        ("changes", "hash", "'0'"),
    ];
    for (table, column, value) in forged {
        let before = fs::read(home.state().join("weighlock.db")).unwrap();
        let fault = edited(&home, &format!("UPDATE {table} SET {column} = {value}"));
        let row = fault["row"].as_str().unwrap_or_default();
        assert!(row.starts_with(table), "{table}.{column}: {fault}");
        fs::write(home.state().join("weighlock.db"), before).unwrap();
    }
    home.assert_audit_verifies();

    let fault = edited(
        &home,
        &format!(
            "UPDATE terminal_commands SET exit_code = 3 WHERE tail LIKE '{}%'",
            &id[2..]
        ),
    );
    assert_eq!(fault["what"], "it was changed since this entry recorded it");
    let said = home.call(&["audit", "verify"]).out;
    assert!(said.contains("row terminal_commands r_"), "{said}");
    let _server = home.serve(&[]);
    let shown = home.call(&["show", id]).out;
    assert!(
        shown.contains("somebody has edited the database"),
        "{shown}"
    );
    let listed = home.call(&["runs"]).out;
    let marked: Vec<_> = listed
        .lines()
        .filter(|line| line.contains("altered"))
        .collect();
    assert_eq!(marked.len(), 1, "{listed}");
    assert!(marked[0].contains(id), "{listed}");
}

#[test]
fn a_damaged_row_is_named_and_stops_nothing_else() {
    let record = Record::new();
    let database = Connection::open(record.home.state().join("weighlock.db")).unwrap();
    let sql = "SELECT command_id FROM terminal_commands WHERE command = 'echo 3'";
    let run: String = database.query_row(sql, [], |row| row.get(0)).unwrap();
    database
        .execute_batch(&format!(
            "UPDATE terminal_commands SET state = 'odd' WHERE command_id = '{run}'; \
             UPDATE audit SET body = 'x' WHERE seq = 5;"
        ))
        .unwrap();
    drop(database);
    let server = record.home.serve(&[]);
    let (status, problem) = record
        .home
        .api("GET", &format!("/commands/{run}"), &Value::Null);
    assert_eq!((status, &problem["code"]), (500, &json!("store_damaged")));
    let what = problem["detail"].as_str().unwrap_or_default();
    for named in ["terminal_commands", "state", &run] {
        assert!(what.contains(named), "{what}");
    }
    let (status, audit) = record.home.api("GET", "/audit?limit=10", &Value::Null);
    assert_eq!(status, 200, "{audit}");
    let (_, run) = record.home.ask("echo on", Value::Null);
    assert_eq!(run["state"], "succeeded", "{run}");
    assert_eq!(server.terminate(), Some(0));
}
