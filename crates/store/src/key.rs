//! Keys with which a client may send the same request twice.

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Error;

/// What a client names a request with, so that it is done once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Whose key it is.
    pub principal: String,
    /// As the client gave it.
    pub key: String,
    /// Of the request.
    pub hash: String,
}

/// Whether something was new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inserted {
    /// It was, and is remembered.
    New,
    /// Its key has been used, and nothing was done.
    Before {
        /// The command that came with the key.
        command_id: String,
        /// It was the same request.
        same: bool,
    },
}

/// Returns what came with this key before, if anything did.
pub(crate) fn before(from: &Connection, key: Option<&Key>) -> Result<Option<Inserted>, Error> {
    let Some(key) = key else {
        return Ok(None);
    };
    let found = find(from, &key.principal, &key.key)?;
    Ok(found.map(|(hash, command_id)| Inserted::Before {
        command_id,
        same: hash == key.hash,
    }))
}

/// Remembers that a key came with a command that was made at a time.
pub(crate) fn keep(to: &Connection, key: Option<&Key>, id: &str, at: i64) -> Result<(), Error> {
    if let Some(key) = key {
        to.prepare_cached(
            "INSERT INTO idempotency (principal, key, hash, command_id, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![key.principal, key.key, key.hash, id, at,])?;
    }
    Ok(())
}

/// Returns the hash and the command that came with a key.
pub(crate) fn find(
    from: &Connection,
    principal: &str,
    key: &str,
) -> Result<Option<(String, String)>, Error> {
    Ok(from
        .prepare_cached(
            "SELECT hash, command_id FROM idempotency WHERE principal = ?1 AND key = ?2",
        )?
        .query_row([principal, key], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?)
}
