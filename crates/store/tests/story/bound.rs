//! A row that somebody edits is noticed, in every table and column.

use rusqlite::Connection;
use tempfile::TempDir;
use weighlock_store::{Durability, Entry, Error, Fault, Store};

use crate::{answered, ask, asked, command, entry, id, yes};

/// A record with a command that ran, and one that was asked about and approved.
async fn record() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Durability::Process).unwrap();
    let entries = vec![entry("run.started", &id(1))];
    let inserted = store
        .commands()
        .insert(command(1, "true"), None, entries)
        .await;
    inserted.unwrap();
    asked(&store, ask(2, "f")).await;
    answered(&store, 2, "f", yes("ana")).await;
    assert_eq!(store.audit().verify().unwrap().fault, None);
    store.close();
    dir
}

fn edit(dir: &TempDir, sql: &str) {
    let database = Connection::open(dir.path().join("weighlock.db")).unwrap();
    database.pragma_update(None, "foreign_keys", false).unwrap();
    database.execute_batch(sql).unwrap();
}

fn fault(dir: &TempDir) -> Option<Fault> {
    let store = Store::open_read_only(dir.path()).unwrap();
    store.audit().verify().unwrap().fault
}

#[tokio::test]
async fn every_column_of_a_row_is_tied() {
    for table in ["terminal_commands", "approvals", "answers"] {
        let dir = record().await;
        let database = Connection::open(dir.path().join("weighlock.db")).unwrap();
        let mut names = database
            .prepare("SELECT name FROM pragma_table_info(?1)")
            .unwrap();
        let names = names.query_map([table], |row| row.get(0)).unwrap();
        let names: Vec<String> = names.map(Result::unwrap).collect();
        for name in &names {
            let copy = tempfile::tempdir().unwrap();
            for file in ["weighlock.db", "audit.head"] {
                std::fs::copy(dir.path().join(file), copy.path().join(file)).unwrap();
            }
            // A value of its own kind that it did not have, within what the table checks.
            let value = match name.as_str() {
                "status" => "'failed'".to_owned(),
                "state" => "'withdrawn'".to_owned(),
                "detail" => "json_set(detail, '$.forged', 1)".to_owned(),
                "rank" => "1 - rank".to_owned(),
                _ => format!(
                    "iif(typeof({name}) = 'integer', {name} + 1, coalesce({name}, '') || '7')"
                ),
            };
            let one = format!("rowid = (SELECT min(rowid) FROM {table})");
            let which = if table == "answers" { "true" } else { &one };
            edit(
                &copy,
                &format!("UPDATE {table} SET {name} = {value} WHERE {which}"),
            );
            let fault = fault(&copy);
            let row = fault.and_then(|fault| fault.row).unwrap_or_default();
            assert!(row.starts_with(table), "{table}.{name}: {row}");
        }
    }
}

#[tokio::test]
async fn a_row_that_is_added_or_removed_is_noticed() {
    let dir = record().await;
    edit(&dir, "DELETE FROM answers");
    let found = fault(&dir).unwrap();
    assert_eq!(found.what, "it was removed since this entry recorded it");
    assert_eq!(
        found.row.unwrap(),
        format!("answers {} ana", crate::approval_id(2))
    );

    let dir = record().await;
    edit(&dir, "INSERT INTO grants VALUES ('g_forged', '{}', 1)");
    let found = fault(&dir).unwrap();
    assert_eq!(found.what, "no entry has recorded it");
    assert_eq!(found.row.as_deref(), Some("grants g_forged"));
}

#[tokio::test]
async fn a_command_that_was_edited_is_told_from_the_others() {
    let dir = record().await;
    edit(
        &dir,
        "UPDATE terminal_commands SET exit_code = 7 WHERE command = 'true'",
    );
    let store = Store::open(dir.path(), Durability::Process).unwrap();
    let (one, two) = (id(1), id(2));
    assert_eq!(store.audit().altered(&[&one, &two]).unwrap(), [one]);
}

#[tokio::test]
async fn an_edited_row_is_not_taken_over_by_an_upgrade_that_is_made_up() {
    let dir = record().await;
    edit(
        &dir,
        "UPDATE terminal_commands SET exit_code = 7; PRAGMA user_version = 6;",
    );
    let refused = Store::open_read_only(dir.path());
    assert!(matches!(refused, Err(Error::Older { .. })));
    Store::open(dir.path(), Durability::Process)
        .unwrap()
        .close();
    let found = fault(&dir).unwrap();
    assert!(
        found.what.starts_with("it ties rows that were tied"),
        "{found:?}"
    );
}

#[tokio::test]
async fn what_is_written_after_a_row_was_edited_does_not_hide_it() {
    let dir = record().await;
    edit(&dir, "UPDATE answers SET by = 'ben'");
    let store = Store::open(dir.path(), Durability::Process).unwrap();
    let entries = vec![entry("run.ended", &id(1))];
    store
        .commands()
        .update(command(1, "true"), entries)
        .await
        .unwrap();
    let found = store.audit().verify().unwrap().fault.unwrap();
    assert!(found.row.unwrap().starts_with("answers"));
}

#[tokio::test]
async fn rows_that_outlive_their_entries_stay_tied() {
    for forged in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Durability::Process).unwrap();
        let granted = Entry {
            time: 1,
            run: None,
            ..entry("grant.added", "")
        };
        let added = store.grants().add("g_1".into(), "{}".into(), granted);
        added.await.unwrap();
        if forged {
            edit(&dir, "UPDATE grants SET body = '[]'");
        }
        assert_eq!(store.audit().forget(2, 99).await.unwrap().entries, 1);
        let found = fault(&dir);
        assert_eq!(found.is_some(), forged, "{found:?}");
        store.close();
        edit(&dir, "UPDATE grants SET body = '[1]'");
        let row = fault(&dir).and_then(|fault| fault.row);
        assert_eq!(row.as_deref(), Some("grants g_1"));
    }
}
