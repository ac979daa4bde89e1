//! Principals: the people and agents who ask, answer and own.

use rusqlite::{Params, Row, params};
use serde_json::Value;

use crate::column::Column;
use crate::database::Database;
use crate::entry::Entry;
use crate::error::Error;
use crate::sql::all;
use crate::writer::only_if;

/// A principal as it is remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct PrincipalRow {
    /// Its name, which stays.
    pub name: String,
    /// It is a program.
    pub agent: bool,
    /// What it may do, as a word.
    pub role: String,
    /// The account on this machine that is it.
    pub uid: Option<u32>,
    /// It may do anything at all.
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

const BODY: Column = Column {
    table: "principals",
    name: "body",
    index: 5,
};

/// The columns in the order that `read` expects.
const COLUMNS: &str = "principal_id, agent, role, uid, is_active, body, version, created_at, \
     updated_at";

/// People and agents.
#[derive(Clone, Copy)]
pub struct PrincipalTable<'a> {
    pub(crate) database: &'a Database,
}

impl PrincipalTable<'_> {
    /// Remembers a principal; false when the name or the uid is taken.
    pub async fn add(self, row: PrincipalRow, entries: Vec<Entry>) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let sql = format!(
                    "INSERT INTO principals ({COLUMNS}) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING"
                );
                let new = to.execute(
                    &sql,
                    params![
                        row.name,
                        row.agent,
                        row.role,
                        row.uid,
                        row.active,
                        row.body.to_string(),
                        row.version,
                        row.created_at,
                        row.updated_at,
                    ],
                )?;
                Ok(only_if(new == 1, entries))
            })
            .await
    }

    /// Changes a principal that is still as it was read; its version goes up
    /// by one. False when it was changed meanwhile, or the uid is taken.
    pub async fn change(self, row: PrincipalRow, entries: Vec<Entry>) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let changed = to.execute(
                    "UPDATE OR IGNORE principals SET agent = ?3, role = ?4, uid = ?5, \
                     is_active = ?6, body = ?7, updated_at = ?8, version = version + 1 \
                     WHERE principal_id = ?1 AND version = ?2",
                    params![
                        row.name,
                        row.version,
                        row.agent,
                        row.role,
                        row.uid,
                        row.active,
                        row.body.to_string(),
                        row.updated_at,
                    ],
                )?;
                Ok(only_if(changed == 1, entries))
            })
            .await
    }

    /// Recalls a principal by its name.
    pub fn named(self, name: &str) -> Result<Option<PrincipalRow>, Error> {
        Ok(self.select("WHERE principal_id = ?1", [name])?.pop())
    }

    /// Recalls the principal that an account is.
    pub fn of_uid(self, uid: u32) -> Result<Option<PrincipalRow>, Error> {
        Ok(self.select("WHERE uid = ?1", [uid])?.pop())
    }

    /// Lists all principals by name.
    pub fn all(self) -> Result<Vec<PrincipalRow>, Error> {
        self.select("ORDER BY principal_id", [])
    }

    fn select(self, which: &str, values: impl Params) -> Result<Vec<PrincipalRow>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM principals {which}");
        all(&self.database.lock_reader(), &sql, values, read)
    }
}

fn read(row: &Row<'_>) -> Result<PrincipalRow, rusqlite::Error> {
    Ok(PrincipalRow {
        name: row.get(0)?,
        agent: row.get(1)?,
        role: row.get(2)?,
        uid: row.get(3)?,
        active: row.get(4)?,
        body: BODY.json(row)?,
        version: row.get(6)?,
        created_at: row.get(7)?,
        updated_at: row.get(8)?,
    })
}
