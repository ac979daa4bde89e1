//! Logins of people in a browser: only the hashes of their cookies.

use rusqlite::{OptionalExtension, params};

use crate::database::Database;
use crate::entry::Entry;
use crate::error::Error;
use crate::writer::only_if;

/// A login as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRow {
    /// Of the cookie, which is nowhere.
    pub hash: String,
    /// Who is logged in.
    pub principal: String,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// See `created_at`.
    pub expires_at: i64,
}

/// Logins of people in a browser.
#[derive(Clone, Copy)]
pub struct LoginTable<'a> {
    pub(crate) database: &'a Database,
}

impl LoginTable<'_> {
    /// Remembers a login of a principal that is known.
    pub async fn add(self, row: LoginRow, entries: Vec<Entry>) -> Result<(), Error> {
        self.database
            .writer
            .write(move |to| {
                to.execute(
                    "INSERT INTO logins (hash, principal_id, created_at, expires_at) \
                     VALUES (?1, ?2, ?3, ?4)",
                    params![row.hash, row.principal, row.created_at, row.expires_at],
                )?;
                Ok(((), entries))
            })
            .await
    }

    /// Recalls the login whose cookie has this hash.
    pub fn by_hash(self, hash: &str) -> Result<Option<LoginRow>, Error> {
        let reader = self.database.lock_reader();
        let mut query = reader.prepare_cached(
            "SELECT hash, principal_id, created_at, expires_at FROM logins WHERE hash = ?1",
        )?;
        let login = query.query_row([hash], |row| {
            Ok(LoginRow {
                hash: row.get(0)?,
                principal: row.get(1)?,
                created_at: row.get(2)?,
                expires_at: row.get(3)?,
            })
        });
        Ok(login.optional()?)
    }

    /// Ends a login; false when there is none.
    pub async fn end(self, hash: String, entries: Vec<Entry>) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let gone = to.execute("DELETE FROM logins WHERE hash = ?1", [hash])?;
                Ok(only_if(gone == 1, entries))
            })
            .await
    }

    /// Ends all logins of a principal.
    pub async fn end_all_of(self, principal: String, entries: Vec<Entry>) -> Result<(), Error> {
        self.database
            .writer
            .write(move |to| {
                to.execute("DELETE FROM logins WHERE principal_id = ?1", [principal])?;
                Ok(((), entries))
            })
            .await
    }

    /// Forgets the logins that expired before a time.
    pub async fn forget(self, before: i64) -> Result<(), Error> {
        let sql = "DELETE FROM logins WHERE expires_at < ?1";
        self.database.writer.execute(sql, [before]).await
    }
}
