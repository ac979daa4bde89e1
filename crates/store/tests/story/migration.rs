//! A database from before is opened, and nothing in it is lost.

use std::path::Path;

use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use weighlock_store::{
    Command, Durability, Entry, EntryFilter, Error, Filter, State, Store, verify_export,
};

use crate::{ask, asked, assert_verifies, command, entry, id};

/// Makes a database as version 2 left it: three commands with an entry each,
/// a token and a grant.
fn old() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let database = Connection::open(dir.path().join("weighlock.db")).unwrap();
    for schema in [
        include_str!("../../src/schema/1.sql"),
        include_str!("../../src/schema/2.sql"),
    ] {
        database.execute_batch(schema).unwrap();
    }
    database.pragma_update(None, "user_version", 2).unwrap();
    database
        .execute_batch(
            "INSERT INTO tokens VALUES ('hash', 'wl_ab', 'uid:1', 1);
             INSERT INTO grants VALUES ('g_1', '{}', 1);",
        )
        .unwrap();
    let mut prev = "0".repeat(64);
    for number in 1..=3 {
        insert(&database, number);
        prev = append(&database, number, &prev);
    }
    let head = format!("{:020} {prev}\n", 3);
    std::fs::write(dir.path().join("audit.head"), head).unwrap();
    dir
}

fn insert(database: &Connection, number: u32) {
    database
        .execute(
            "INSERT INTO terminal_commands (command_id, tail, command, cwd, status, state, \
             requested_by, created_at, updated_at, open, kept_bytes, detail) \
             VALUES (?1, ?2, 'make', '/', 'executed', 'succeeded', 'uid:1', ?3, ?3, 0, 0, '{}')",
            params![id(number), &id(number)[12..], number],
        )
        .unwrap();
}

/// Appends an entry as it was written then, and returns its hash.
fn append(database: &Connection, number: u32, prev: &str) -> String {
    let time = ["00:00:01Z", "00:00:02.5Z", "00:00:03.000007Z"][number as usize - 1];
    let run = id(number);
    let body = format!(
        r#"{{"seq":{number},"time":"1970-01-01T{time}","kind":"run.ended","actor":"uid:1","run":"{run}","detail":{{"a":"\"é"}},"prev":"{prev}"}}"#
    );
    let hash: String = Sha256::digest(body.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    database
        .execute(
            "INSERT INTO audit (seq, run, kind, body, hash) VALUES (?1, ?2, 'run.ended', ?3, ?4)",
            params![number, run, body, hash],
        )
        .unwrap();
    hash
}

fn open(dir: &TempDir) -> Store {
    Store::open(dir.path(), Durability::Process).unwrap()
}

fn change(dir: &Path, sql: &str) {
    let database = Connection::open(dir.join("weighlock.db")).unwrap();
    assert_eq!(database.execute(sql, []).unwrap(), 1);
}

#[tokio::test]
async fn nothing_is_lost() {
    let dir = old();
    let store = open(&dir);
    let filter = Filter {
        limit: 10,
        ..Filter::default()
    };
    let newest = store.commands().list(&filter).unwrap().remove(0);
    let expected = Command {
        state: State::Succeeded,
        requested_by: "uid:1".into(),
        sandbox: None,
        started_at: None,
        open: false,
        detail: "{}".into(),
        ..command(3, "make")
    };
    assert_eq!(newest, expected);
    assert_eq!(store.commands().named("tail000001").unwrap().len(), 1);
    assert_eq!(store.grants().all().unwrap(), ["{}"]);
    let token = store.tokens().by_hash("hash").unwrap();
    assert_eq!(token, None, "they had no role");
    assert_verifies(&store);

    asked(&store, ask(4, "f")).await;
    let about = Entry {
        sandbox: Some("sb_1".into()),
        owner: Some("bot".into()),
        ..entry("run.ended", &id(4))
    };
    store.audit().record(vec![about]).await.unwrap();
    drop(store);
    let store = open(&dir);
    // Two entries tie the rows that were there: of commands, and of grants.
    assert_eq!(store.audit().newest_seq().unwrap(), 7);
    assert_verifies(&store);
    let mut export = vec![];
    store.audit().export(&mut export).unwrap();
    let verified = verify_export(export.as_slice()).unwrap();
    assert_eq!(verified, store.audit().verify().unwrap());
}

#[tokio::test]
async fn old_entries_are_found_by_time_and_actor() {
    let dir = old();
    let store = open(&dir);
    let found = |from, to| -> Vec<u64> {
        let filter = EntryFilter {
            actor: Some("uid:1".into()),
            from: Some(from),
            to: Some(to),
            limit: 10,
            ..EntryFilter::default()
        };
        let bodies = store.audit().entries(&filter).unwrap();
        bodies
            .iter()
            .flat_map(|body| body["seq"].as_u64())
            .collect()
    };
    assert_eq!(found(1_000_000, 3_000_007), [1, 2]);
    assert_eq!(found(2_500_000, 3_000_008), [2, 3]);
    let times: Vec<_> = store.audit().recorded_after(0, 10).unwrap();
    let old = times.iter().filter(|recorded| recorded.actor == "uid:1");
    let times: Vec<_> = old.map(|recorded| recorded.time).collect();
    assert_eq!(times, [1_000_000, 2_500_000, 3_000_007]);
}

#[tokio::test]
async fn an_entry_that_was_changed_before_is_still_found_out() {
    for tampered in ["not JSON", "{}", r#"{"time": 7, "actor": []}"#] {
        let dir = old();
        change(
            dir.path(),
            &format!("UPDATE audit SET body = '{tampered}' WHERE seq = 2"),
        );
        let verified = open(&dir).audit().verify().unwrap();
        assert_eq!(verified.fault.map(|fault| fault.seq), Some(2));
    }
}

#[tokio::test]
async fn an_entry_filed_under_what_it_does_not_say_is_found_out() {
    for column in [
        "time = 7",
        "actor = 'eve'",
        "sandbox = 'sb_1'",
        "owner = 'eve'",
    ] {
        let dir = old();
        drop(open(&dir));
        change(
            dir.path(),
            &format!("UPDATE audit SET {column} WHERE seq = 2"),
        );
        let verified = open(&dir).audit().verify().unwrap();
        assert_eq!(verified.fault.map(|fault| fault.seq), Some(2), "{column}");
    }
    for column in ["time", "actor", "sandbox", "owner"] {
        let dir = old();
        let store = open(&dir);
        let about = Entry {
            sandbox: Some("sb_1".into()),
            owner: Some("bot".into()),
            ..entry("run.ended", &id(4))
        };
        store.audit().record(vec![about]).await.unwrap();
        drop(store);
        let hide = format!("UPDATE audit SET {column} = NULL WHERE seq = 6");
        change(dir.path(), &hide);
        let verified = open(&dir).audit().verify().unwrap();
        assert_eq!(verified.fault.map(|fault| fault.seq), Some(6), "{column}");
    }
}

#[test]
fn a_reader_does_not_change_an_old_database() {
    let dir = old();
    let refused = Store::open_read_only(dir.path());
    assert!(matches!(refused, Err(Error::Older { .. })));
    drop(open(&dir));
    assert!(Store::open_read_only(dir.path()).is_ok());
}
