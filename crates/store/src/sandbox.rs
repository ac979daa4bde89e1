//! Sandboxes: directories that someone owns, with how they are guarded.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use crate::column::Column;
use crate::database::Database;
use crate::entry::Entry;
use crate::error::Error;
use crate::sql::all;
use crate::writer::only_if;

/// A sandbox as it is remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct SandboxRow {
    /// Names it for ever.
    pub id: String,
    /// Who owns it.
    pub owner: String,
    /// What people call it.
    pub label: String,
    /// The directory.
    pub path: String,
    /// Commands may run there.
    pub active: bool,
    /// What has no column.
    pub body: Value,
    /// Counts the changes.
    pub version: i64,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// See `created_at`.
    pub updated_at: i64,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// It was made.
    Done,
    /// Somebody changed or deleted it meanwhile.
    Stale,
    /// Another one has the label.
    Taken,
}

const BODY: Column = Column {
    table: "terminal_sandboxes",
    name: "body",
    index: 5,
};

/// The columns in the order that `read` expects.
const COLUMNS: &str = "sandbox_id, owner_principal_id, label, path, is_active, body, version, \
     created_at, updated_at";

/// Sandboxes.
#[derive(Clone, Copy)]
pub struct SandboxTable<'a> {
    pub(crate) database: &'a Database,
}

impl SandboxTable<'_> {
    /// Remembers a sandbox; false when another one has the label.
    pub async fn add(self, row: SandboxRow, entries: Vec<Entry>) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let free = labelled(to, &row.label)?.is_none();
                if free {
                    insert(to, &row)?;
                }
                Ok(only_if(free, entries))
            })
            .await
    }

    /// Changes a sandbox that is still as it was read; its version goes up by
    /// one.
    pub async fn change(self, row: SandboxRow, entries: Vec<Entry>) -> Result<Changed, Error> {
        self.database
            .writer
            .write(move |to| {
                if labelled(to, &row.label)?.is_some_and(|id| id != row.id) {
                    return Ok((Changed::Taken, vec![]));
                }
                Ok(changed(update(to, &row)?, entries))
            })
            .await
    }

    /// Deletes a sandbox, if it is still as it was read when a version is
    /// given. What is known of it stays, for what ran there.
    pub async fn delete(
        self,
        id: String,
        version: Option<i64>,
        at: i64,
        entries: Vec<Entry>,
    ) -> Result<Changed, Error> {
        self.database
            .writer
            .write(move |to| {
                let gone = to.execute(
                    "UPDATE terminal_sandboxes \
                     SET deleted_at = ?3, updated_at = ?3, version = version + 1 \
                     WHERE sandbox_id = ?1 AND version = coalesce(?2, version) \
                     AND deleted_at IS NULL",
                    params![id, version, at],
                )?;
                Ok(changed(gone == 1, entries))
            })
            .await
    }

    /// Lists the sandboxes that were not deleted, by label.
    pub fn all(self) -> Result<Vec<SandboxRow>, Error> {
        let sql = format!(
            "SELECT {COLUMNS} FROM terminal_sandboxes WHERE deleted_at IS NULL ORDER BY label"
        );
        all(&self.database.lock_reader(), &sql, [], read)
    }
}

fn changed(done: bool, entries: Vec<Entry>) -> (Changed, Vec<Entry>) {
    if done {
        (Changed::Done, entries)
    } else {
        (Changed::Stale, vec![])
    }
}

fn labelled(from: &Connection, label: &str) -> Result<Option<String>, Error> {
    let sql = "SELECT sandbox_id FROM terminal_sandboxes WHERE label = ?1 AND deleted_at IS NULL";
    Ok(from.query_row(sql, [label], |row| row.get(0)).optional()?)
}

fn insert(to: &Connection, row: &SandboxRow) -> Result<(), Error> {
    let sql = format!(
        "INSERT INTO terminal_sandboxes ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
    );
    to.execute(
        &sql,
        params![
            row.id,
            row.owner,
            row.label,
            row.path,
            row.active,
            row.body.to_string(),
            row.version,
            row.created_at,
            row.updated_at,
        ],
    )?;
    Ok(())
}

fn update(to: &Connection, row: &SandboxRow) -> Result<bool, Error> {
    let changed = to.execute(
        "UPDATE terminal_sandboxes SET owner_principal_id = ?3, label = ?4, path = ?5, \
         is_active = ?6, body = ?7, updated_at = ?8, version = version + 1 \
         WHERE sandbox_id = ?1 AND version = ?2 AND deleted_at IS NULL",
        params![
            row.id,
            row.version,
            row.owner,
            row.label,
            row.path,
            row.active,
            row.body.to_string(),
            row.updated_at,
        ],
    )?;
    Ok(changed == 1)
}

fn read(row: &Row<'_>) -> Result<SandboxRow, rusqlite::Error> {
    Ok(SandboxRow {
        id: row.get(0)?,
        owner: row.get(1)?,
        label: row.get(2)?,
        path: row.get(3)?,
        active: row.get(4)?,
        // A damaged one is no sandbox that anything can run in, and keeps no other
        // from being used.
        body: BODY.json(row).unwrap_or_default(),
        version: row.get(6)?,
        created_at: row.get(7)?,
        updated_at: row.get(8)?,
    })
}
