//! What a person has allowed beforehand.

use rusqlite::params;

use crate::database::Database;
use crate::entry::Entry;
use crate::error::Error;

/// What people have allowed beforehand.
#[derive(Clone, Copy)]
pub struct GrantTable<'a> {
    pub(crate) database: &'a Database,
}

impl GrantTable<'_> {
    /// Remembers a grant, which comes as JSON.
    pub async fn add(self, id: String, body: String, entry: Entry) -> Result<(), Error> {
        self.database
            .writer
            .write(move |to| {
                to.execute(
                    "INSERT INTO grants (grant_id, body, created_at) VALUES (?1, ?2, ?3)",
                    params![id, body, entry.time],
                )?;
                Ok(((), vec![entry]))
            })
            .await
    }

    /// Takes a grant back.
    pub async fn remove(self, id: String, entry: Entry) -> Result<(), Error> {
        self.database
            .writer
            .write(move |to| {
                to.execute("DELETE FROM grants WHERE grant_id = ?1", [id])?;
                Ok(((), vec![entry]))
            })
            .await
    }

    /// Returns all grants as JSON, oldest first.
    pub fn all(self) -> Result<Vec<String>, Error> {
        let reader = self.database.lock_reader();
        let mut query = reader.prepare("SELECT body FROM grants ORDER BY created_at, grant_id")?;
        let bodies = query.query_map([], |row| row.get(0))?;
        Ok(bodies.collect::<Result<_, _>>()?)
    }
}
