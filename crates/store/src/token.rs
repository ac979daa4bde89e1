//! Tokens, with which a principal shows who it is: only their hashes.

use rusqlite::{Params, Row, params};

use crate::database::Database;
use crate::entry::Entry;
use crate::error::Error;
use crate::sql::all;
use crate::writer::only_if;

/// A token as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// Names it, and is no secret.
    pub id: String,
    /// Of the secret, which is nowhere.
    pub hash: String,
    /// The secret's beginning, to recognise it by.
    pub prefix: String,
    /// What its owner calls it.
    pub label: String,
    /// Whose it is.
    pub principal: String,
    /// Who made it.
    pub created_by: String,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// See `created_at`.
    pub expires_at: Option<i64>,
    /// See `created_at`.
    pub last_used_at: Option<i64>,
    /// See `created_at`.
    pub revoked_at: Option<i64>,
}

/// The columns in the order that `read` expects.
const COLUMNS: &str = "token_id, hash, prefix, label, principal_id, created_by, created_at, \
     expires_at, last_used_at, revoked_at";

/// Tokens.
#[derive(Clone, Copy)]
pub struct TokenTable<'a> {
    pub(crate) database: &'a Database,
}

impl TokenTable<'_> {
    /// Remembers a token of a principal that is known.
    pub async fn add(self, row: TokenRow, entries: Vec<Entry>) -> Result<(), Error> {
        self.database
            .writer
            .write(move |to| {
                let sql = format!(
                    "INSERT INTO tokens ({COLUMNS}) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
                );
                to.execute(
                    &sql,
                    params![
                        row.id,
                        row.hash,
                        row.prefix,
                        row.label,
                        row.principal,
                        row.created_by,
                        row.created_at,
                        row.expires_at,
                        row.last_used_at,
                        row.revoked_at,
                    ],
                )?;
                Ok(((), entries))
            })
            .await
    }

    /// Lists a principal's tokens, newest first.
    pub fn of(self, principal: &str) -> Result<Vec<TokenRow>, Error> {
        let which = "WHERE principal_id = ?1 ORDER BY created_at DESC, token_id DESC";
        self.select(which, [principal])
    }

    /// Recalls the token whose secret has this hash.
    pub fn by_hash(self, hash: &str) -> Result<Option<TokenRow>, Error> {
        Ok(self.select("WHERE hash = ?1", [hash])?.pop())
    }

    /// Recalls a token.
    pub fn get(self, id: &str) -> Result<Option<TokenRow>, Error> {
        Ok(self.select("WHERE token_id = ?1", [id])?.pop())
    }

    /// Lets a token end at a time, or when it would have anyway; false when
    /// there is none that could.
    pub async fn expire(self, id: String, at: i64, entries: Vec<Entry>) -> Result<bool, Error> {
        let sql = "UPDATE tokens SET expires_at = min(coalesce(expires_at, ?2), ?2) \
                   WHERE token_id = ?1 AND revoked_at IS NULL";
        self.change(sql, id, at, entries).await
    }

    /// Revokes a token; false when there is none, or none any more.
    pub async fn revoke(self, id: String, at: i64, entries: Vec<Entry>) -> Result<bool, Error> {
        let sql = "UPDATE tokens SET revoked_at = ?2 WHERE token_id = ?1 AND revoked_at IS NULL";
        self.change(sql, id, at, entries).await
    }

    /// Remembers when a token was used last.
    pub async fn used(self, id: String, at: i64) -> Result<(), Error> {
        let sql = "UPDATE tokens SET last_used_at = max(coalesce(last_used_at, ?2), ?2) \
                   WHERE token_id = ?1";
        self.database.writer.execute(sql, (id, at)).await
    }

    async fn change(
        self,
        sql: &'static str,
        id: String,
        at: i64,
        entries: Vec<Entry>,
    ) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let changed = to.execute(sql, params![id, at])?;
                Ok(only_if(changed == 1, entries))
            })
            .await
    }

    fn select(self, which: &str, values: impl Params) -> Result<Vec<TokenRow>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM tokens {which}");
        all(&self.database.lock_reader(), &sql, values, read)
    }
}

fn read(row: &Row<'_>) -> Result<TokenRow, rusqlite::Error> {
    Ok(TokenRow {
        id: row.get(0)?,
        hash: row.get(1)?,
        prefix: row.get(2)?,
        label: row.get(3)?,
        principal: row.get(4)?,
        created_by: row.get(5)?,
        created_at: row.get(6)?,
        expires_at: row.get(7)?,
        last_used_at: row.get(8)?,
        revoked_at: row.get(9)?,
    })
}
