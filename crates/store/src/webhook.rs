//! Webhooks: URLs at which people want to be notified.

use rusqlite::{Connection, Params, Row, params};
use serde_json::Value;

use crate::column::Column;
use crate::database::Database;
use crate::entry::Entry;
use crate::error::Error;
use crate::sql::{all, readable};
use crate::writer::only_if;

/// A webhook as it is remembered.
#[derive(Clone, PartialEq)]
pub struct WebhookRow {
    /// Sorts by time of creation.
    pub id: String,
    /// The owner; empty for the server's own.
    pub owner: String,
    /// The whole URL, which may contain a secret.
    pub url: String,
    /// Signs messages, or authenticates to the receiver.
    pub secret: String,
    /// Whether it gets messages.
    pub active: bool,
    /// The settings, as JSON.
    pub body: Value,
    /// Counts the changes.
    pub version: i64,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// See `created_at`.
    pub updated_at: i64,
    /// The last audit entry that was collected for it.
    pub since: u64,
    /// The state of its deliveries.
    pub status: DeliveryStatus,
}

/// The state of deliveries to a webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeliveryStatus {
    /// Failed attempts since the last success.
    pub failures: u32,
    /// No attempt before this time. Microseconds since 1970.
    pub retry_at: i64,
    /// When the receiver last accepted a message.
    pub told_at: Option<i64>,
    /// Why the last attempt failed.
    pub trouble: Option<String>,
}

/// Prints neither URL nor secret.
impl std::fmt::Debug for WebhookRow {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("WebhookRow")
            .field("id", &self.id)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

const BODY: Column = Column {
    table: "webhooks",
    name: "body",
    index: 5,
};

const COLUMNS: &str = "webhook_id, owner, url, secret, is_active, body, version, created_at, \
     updated_at, since, failures, retry_at, told_at, trouble";

/// Webhooks.
#[derive(Clone, Copy)]
pub struct WebhookTable<'a> {
    pub(crate) database: &'a Database,
}

impl WebhookTable<'_> {
    /// Adds a webhook, which gets notices of entries from now on. Returns false
    /// if its owner has `most` already.
    pub async fn add(
        self,
        row: WebhookRow,
        most: usize,
        entries: Vec<Entry>,
    ) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let count = "SELECT count(*) FROM webhooks WHERE owner = ?1";
                let there: usize = to.query_row(count, [&row.owner], |row| row.get(0))?;
                if there >= most {
                    return Ok((false, vec![]));
                }
                to.execute(
                    "INSERT INTO webhooks (webhook_id, owner, url, secret, is_active, body, \
                     version, created_at, updated_at, since) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                    params![
                        row.id,
                        row.owner,
                        row.url,
                        row.secret,
                        row.active,
                        row.body.to_string(),
                        row.version,
                        row.created_at,
                        row.updated_at,
                        newest(to)?,
                    ],
                )?;
                Ok((true, entries))
            })
            .await
    }

    /// Changes a webhook; returns false if its version is no longer the one that
    /// was read. One that becomes active again gets notices of entries from now
    /// on, and its failures are cleared.
    pub async fn change(self, row: WebhookRow, entries: Vec<Entry>) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let newest = newest(to)?;
                let changed = to.execute(
                    "UPDATE webhooks SET url = ?3, secret = ?4, \
                     since = CASE WHEN is_active THEN since ELSE ?8 END, \
                     is_active = ?5, body = ?6, updated_at = ?7, version = version + 1, \
                     failures = 0, retry_at = 0, trouble = NULL \
                     WHERE webhook_id = ?1 AND version = ?2",
                    params![
                        row.id,
                        row.version,
                        row.url,
                        row.secret,
                        row.active,
                        row.body.to_string(),
                        row.updated_at,
                        newest,
                    ],
                )?;
                if changed == 1 && !row.active {
                    drop_all(to, &row.id)?;
                }
                Ok(only_if(changed == 1, entries))
            })
            .await
    }

    /// Records the result of an attempt.
    pub async fn set_delivery_status(
        self,
        id: String,
        status: DeliveryStatus,
    ) -> Result<(), Error> {
        self.database
            .writer
            .write(move |to| {
                to.execute(
                    "UPDATE webhooks SET failures = ?2, retry_at = ?3, \
                     told_at = coalesce(?4, told_at), trouble = ?5 WHERE webhook_id = ?1",
                    params![
                        id,
                        status.failures,
                        status.retry_at,
                        status.told_at,
                        status.trouble
                    ],
                )?;
                Ok(((), vec![]))
            })
            .await
    }

    /// Deactivates a webhook whose receiver is gone; returns false if it was
    /// inactive.
    pub async fn switch_off(
        self,
        id: String,
        why: String,
        entries: Vec<Entry>,
    ) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let off = to.execute(
                    "UPDATE webhooks SET is_active = 0, version = version + 1, trouble = ?2 \
                     WHERE webhook_id = ?1 AND is_active",
                    params![id, why],
                )?;
                drop_all(to, &id)?;
                Ok(only_if(off == 1, entries))
            })
            .await
    }

    /// Deletes a webhook and its notices.
    pub async fn remove(self, id: String, entries: Vec<Entry>) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let gone = to.execute("DELETE FROM webhooks WHERE webhook_id = ?1", [id])?;
                Ok(only_if(gone == 1, entries))
            })
            .await
    }

    /// Returns a webhook.
    pub fn get(self, id: &str) -> Result<Option<WebhookRow>, Error> {
        Ok(self.select("WHERE webhook_id = ?1", [id])?.pop())
    }

    /// Lists all webhooks that can be read, oldest first.
    pub fn all(self) -> Result<Vec<WebhookRow>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM webhooks ORDER BY webhook_id");
        readable(&self.database.lock_reader(), &sql, [], read)
    }

    fn select(self, which: &str, values: impl Params) -> Result<Vec<WebhookRow>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM webhooks {which}");
        all(&self.database.lock_reader(), &sql, values, read)
    }
}

/// The number of the newest entry, as the writer sees it.
fn newest(from: &Connection) -> Result<i64, Error> {
    let sql = "SELECT coalesce(max(seq), 0) FROM audit";
    Ok(from.query_row(sql, [], |row| row.get(0))?)
}

fn drop_all(to: &Connection, id: &str) -> Result<(), Error> {
    to.execute(
        "UPDATE outbox SET state = 'dropped' WHERE webhook_id = ?1 AND state = 'due'",
        [id],
    )?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<WebhookRow, rusqlite::Error> {
    Ok(WebhookRow {
        id: row.get(0)?,
        owner: row.get(1)?,
        url: row.get(2)?,
        secret: row.get(3)?,
        active: row.get(4)?,
        body: BODY.json(row)?,
        version: row.get(6)?,
        created_at: row.get(7)?,
        updated_at: row.get(8)?,
        since: row.get(9)?,
        status: DeliveryStatus {
            failures: row.get(10)?,
            retry_at: row.get(11)?,
            told_at: row.get(12)?,
            trouble: row.get(13)?,
        },
    })
}
