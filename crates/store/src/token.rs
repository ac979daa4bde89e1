//! Tokens for the TCP door: only their hashes.

use rusqlite::{OptionalExtension, params};

use crate::audit::Entry;
use crate::open::{Error, Store};

impl Store {
    /// Remembers a token by its hash.
    pub async fn add_token(
        &self,
        hash: String,
        prefix: String,
        principal: String,
        entry: Entry,
    ) -> Result<(), Error> {
        let time = entry.time;
        self.writer
            .write(vec![entry], move |to| {
                to.execute(
                    "INSERT INTO tokens (hash, prefix, principal, created_at) \
                     VALUES (?1, ?2, ?3, ?4)",
                    params![hash, prefix, principal, time],
                )?;
                Ok(())
            })
            .await
    }

    /// Returns whose token has this hash.
    pub fn token_owner(&self, hash: &str) -> Result<Option<String>, Error> {
        Ok(self
            .lock_reader()
            .query_row(
                "SELECT principal FROM tokens WHERE hash = ?1",
                [hash],
                |row| row.get(0),
            )
            .optional()?)
    }

    /// Returns whether there is any token.
    pub fn has_tokens(&self) -> Result<bool, Error> {
        Ok(self
            .lock_reader()
            .query_row("SELECT EXISTS (SELECT 1 FROM tokens)", [], |row| row.get(0))?)
    }
}
