//! Pauses: nobody's work begins, or one agent's does not.

use rusqlite::params;

use crate::database::Database;
use crate::entry::Entry;
use crate::error::Error;
use crate::writer::only_if;

/// A pause as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseRow {
    /// Whose work is paused; empty for everyone's.
    pub principal: String,
    /// Who did it.
    pub by: String,
    /// Microseconds since 1970.
    pub since: i64,
    /// Why, in that person's words.
    pub reason: Option<String>,
}

/// Pauses.
#[derive(Clone, Copy)]
pub struct PauseTable<'a> {
    pub(crate) database: &'a Database,
}

impl PauseTable<'_> {
    /// Begins a pause; false when there is one already.
    pub async fn begin(self, row: PauseRow, entries: Vec<Entry>) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let new = to.execute(
                    "INSERT INTO pauses (principal, by, since, reason) VALUES (?1, ?2, ?3, ?4) \
                     ON CONFLICT (principal) DO NOTHING",
                    params![row.principal, row.by, row.since, row.reason],
                )?;
                Ok(only_if(new == 1, entries))
            })
            .await
    }

    /// Ends a pause; false when there is none.
    pub async fn end(self, principal: String, entries: Vec<Entry>) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let gone = to.execute("DELETE FROM pauses WHERE principal = ?1", [principal])?;
                Ok(only_if(gone == 1, entries))
            })
            .await
    }

    /// Lists the pauses.
    pub fn all(self) -> Result<Vec<PauseRow>, Error> {
        let reader = self.database.lock_reader();
        let mut query = reader
            .prepare_cached("SELECT principal, by, since, reason FROM pauses ORDER BY principal")?;
        let rows = query.query_map([], |row| {
            Ok(PauseRow {
                principal: row.get(0)?,
                by: row.get(1)?,
                since: row.get(2)?,
                reason: row.get(3)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
