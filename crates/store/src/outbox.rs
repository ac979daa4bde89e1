//! Notices of webhooks, until they are delivered or dropped.
//!
//! Every notice follows from an entry of the audit. Notices are stored in one
//! transaction with the position up to which entries were read, so that a
//! crash neither loses nor repeats any.

use rusqlite::{Connection, Params, Row, params};
use serde_json::Value;

use crate::column::Column;
use crate::database::Database;
use crate::error::Error;
use crate::sql::all;

/// Something that a webhook is to be notified of.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// The id of the webhook.
    pub webhook: String,
    /// Identifies the notice, so that there is one per event.
    pub event: String,
    /// What happened, as a stable word.
    pub kind: String,
    /// The approval or run it is about; may be empty.
    pub subject: String,
    /// Notices about one agent share a message; may be empty.
    pub agent: String,
    /// The id of its message, once an attempt was made.
    pub message: Option<String>,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// The earliest time of delivery.
    pub due_at: i64,
    /// When the last attempt was.
    pub tried_at: Option<i64>,
    /// Text and data of the message.
    pub body: Value,
}

/// An approval that no longer waits.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedApproval {
    /// Identifies the notice of it.
    pub event: String,
    /// The approval.
    pub approval: String,
    /// When. Microseconds since 1970.
    pub at: i64,
    /// Text and data of the message.
    pub body: Value,
}

/// The kind of a notice that a question waits.
pub const WAITING: &str = "approval.waiting";
/// The kind of a notice that a question no longer waits.
pub const CLOSED: &str = "approval.closed";

/// How a notice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeOutcome {
    /// The receiver accepted it.
    Sent,
    /// It became obsolete.
    Dropped,
    /// Its attempts failed until it was too old.
    Failed,
}

/// Where a notice is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeState {
    /// It waits for its delivery.
    Due,
    /// It has ended.
    Ended(NoticeOutcome),
}

const BODY: Column = column("body", 9);
/// Read beside the others.
const STATE: Column = column("state", 10);

const fn column(name: &'static str, index: usize) -> Column {
    Column {
        table: "outbox",
        name,
        index,
    }
}

const COLUMNS: &str =
    "webhook_id, event, kind, subject, agent, message, created_at, due_at, tried_at, body";

/// Notices of webhooks that are delivered, dropped or due.
#[derive(Clone, Copy)]
pub struct Outbox<'a> {
    pub(crate) database: &'a Database,
}

impl Outbox<'_> {
    /// Puts what follows from the entries up to `seen` into the outbox. A
    /// question that closes before anybody was told of it is not told at all.
    pub async fn put(
        self,
        notices: Vec<Notice>,
        closings: Vec<ClosedApproval>,
        seen: u64,
    ) -> Result<(), Error> {
        self.database
            .writer
            .write(move |to| {
                for notice in &notices {
                    put(to, notice)?;
                }
                for closing in &closings {
                    close(to, closing)?;
                }
                to.execute(
                    "UPDATE webhooks SET since = ?1 WHERE is_active AND since < ?1",
                    [seen],
                )?;
                Ok(((), vec![]))
            })
            .await
    }

    /// Lists a webhook's notices that are due now, the longest due first. What was
    /// made in a time that has not come yet was made by a clock that has been
    /// set back, and must not wait for it.
    pub fn due(self, webhook: &str, now: i64, most: usize) -> Result<Vec<Notice>, Error> {
        self.select(
            "INDEXED BY outbox_due WHERE webhook_id = ?1 AND state = 'due' \
             AND (due_at <= ?2 OR created_at > ?2) ORDER BY due_at, event LIMIT ?3",
            params![webhook, now, crate::cursor::rows(most)],
        )
    }

    /// Lists the notices of one kind about one agent that wait to be told to a
    /// webhook.
    pub fn like(self, one: &Notice) -> Result<Vec<Notice>, Error> {
        self.select(
            "WHERE webhook_id = ?1 AND kind = ?2 AND agent = ?3 AND state = 'due' \
             ORDER BY due_at, event",
            params![one.webhook, one.kind, one.agent],
        )
    }

    /// Lists a webhook's newest notices.
    pub fn newest_of(
        self,
        webhook: &str,
        most: usize,
    ) -> Result<Vec<(Notice, NoticeState)>, Error> {
        let sql = format!(
            "SELECT {COLUMNS}, state FROM outbox WHERE webhook_id = ?1 \
             ORDER BY created_at DESC, event DESC LIMIT ?2"
        );
        let values = params![webhook, crate::cursor::rows(most)];
        all(&self.database.lock_reader(), &sql, values, |row| {
            Ok((read(row)?, STATE.word(row, NoticeState::from_word)?))
        })
    }

    /// Returns when something of this kind about this agent was last tried.
    pub fn last_tried(self, one: &Notice) -> Result<Option<i64>, Error> {
        let sql = "SELECT max(tried_at) FROM outbox INDEXED BY outbox_tried \
             WHERE webhook_id = ?1 AND kind = ?2 AND agent = ?3";
        let of = [&one.webhook, &one.kind, &one.agent];
        Ok(self
            .database
            .lock_reader()
            .query_row(sql, of, |row| row.get(0))?)
    }

    /// Returns when the next notice is due, and when the next webhook may be
    /// tried again.
    pub fn next_due(self, after: i64) -> Result<Option<i64>, Error> {
        let sql = "SELECT min(max(due_at, retry_at)) FROM outbox INDEXED BY outbox_due \
             JOIN webhooks USING (webhook_id) WHERE state = 'due' AND is_active \
             AND max(due_at, retry_at) > ?1";
        Ok(self
            .database
            .lock_reader()
            .query_row(sql, [after], |row| row.get(0))?)
    }

    /// Notes that notices are about to be told in one message. What is not due
    /// any more is left out; returns what is left.
    pub async fn mark_tried(
        self,
        notices: Vec<Notice>,
        message: String,
        now: i64,
    ) -> Result<Vec<Notice>, Error> {
        self.database
            .writer
            .write(move |to| {
                let mut left = vec![];
                for mut notice in notices {
                    let tried = to
                        .prepare_cached(
                            "UPDATE outbox SET message = ?3, tried_at = ?4 \
                         WHERE webhook_id = ?1 AND event = ?2 AND state = 'due'",
                        )?
                        .execute(params![notice.webhook, notice.event, message, now])?;
                    if tried == 1 {
                        notice.message = Some(message.clone());
                        left.push(notice);
                    }
                }
                Ok((left, vec![]))
            })
            .await
    }

    /// Settles notices; those that were dropped meanwhile stay so.
    pub async fn settle(self, notices: Vec<Notice>, outcome: NoticeOutcome) -> Result<(), Error> {
        self.database
            .writer
            .write(move |to| {
                for notice in &notices {
                    to.prepare_cached(
                        "UPDATE outbox SET state = ?3 \
                         WHERE webhook_id = ?1 AND event = ?2 AND state = 'due'",
                    )?
                    .execute(params![
                        notice.webhook,
                        notice.event,
                        outcome.word()
                    ])?;
                }
                Ok(((), vec![]))
            })
            .await
    }

    /// Puts notices off.
    pub async fn put_off(self, notices: Vec<Notice>, until: i64) -> Result<(), Error> {
        self.database
            .writer
            .write(move |to| {
                for notice in &notices {
                    to.prepare_cached(
                        "UPDATE outbox SET due_at = ?3 \
                         WHERE webhook_id = ?1 AND event = ?2 AND state = 'due'",
                    )?
                    .execute(params![notice.webhook, notice.event, until])?;
                }
                Ok(((), vec![]))
            })
            .await
    }

    /// Forgets what was settled before a time.
    pub async fn forget(self, before: i64) -> Result<(), Error> {
        let sql = "DELETE FROM outbox WHERE state <> 'due' AND created_at < ?1";
        self.database.writer.execute(sql, [before]).await
    }

    fn select(self, which: &str, values: impl Params) -> Result<Vec<Notice>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM outbox {which}");
        all(&self.database.lock_reader(), &sql, values, read)
    }
}

impl NoticeState {
    /// Returns the state's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Ended(outcome) => outcome.word(),
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [
            Self::Due,
            Self::Ended(NoticeOutcome::Sent),
            Self::Ended(NoticeOutcome::Dropped),
            Self::Ended(NoticeOutcome::Failed),
        ]
        .into_iter()
        .find(|state| state.word() == word)
    }
}

impl NoticeOutcome {
    fn word(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Dropped => "dropped",
            Self::Failed => "failed",
        }
    }
}

/// Puts a notice, unless there is one of the same event, or its webhook is gone.
fn put(to: &Connection, notice: &Notice) -> Result<(), Error> {
    to.prepare_cached(
        "INSERT INTO outbox (webhook_id, event, kind, subject, agent, state, created_at, due_at, \
         body) SELECT ?1, ?2, ?3, ?4, ?5, 'due', ?6, ?7, ?8 \
         WHERE EXISTS (SELECT 1 FROM webhooks WHERE webhook_id = ?1 AND is_active) \
         ON CONFLICT DO NOTHING",
    )?
    .execute(params![
        notice.webhook,
        notice.event,
        notice.kind,
        notice.subject,
        notice.agent,
        notice.created_at,
        notice.due_at,
        notice.body.to_string(),
    ])?;
    Ok(())
}

/// Queues a notice that a question is closed, for every webhook that may have
/// got the notice that it waits.
fn close(to: &Connection, closing: &ClosedApproval) -> Result<(), Error> {
    to.prepare_cached(
        "INSERT INTO outbox (webhook_id, event, kind, subject, agent, state, created_at, due_at, \
         body) SELECT webhook_id, ?1, ?2, subject, agent, 'due', ?3, ?3, ?4 FROM outbox \
         INDEXED BY outbox_subject WHERE subject = ?5 AND kind = ?6 AND tried_at IS NOT NULL \
         AND state IN ('due', 'sent') ON CONFLICT DO NOTHING",
    )?
    .execute(params![
        closing.event,
        CLOSED,
        closing.at,
        closing.body.to_string(),
        closing.approval,
        WAITING
    ])?;
    to.prepare_cached(
        "UPDATE outbox SET state = 'dropped' WHERE subject = ?1 AND kind = ?2 AND state = 'due'",
    )?
    .execute(params![closing.approval, WAITING])?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<Notice, rusqlite::Error> {
    Ok(Notice {
        webhook: row.get(0)?,
        event: row.get(1)?,
        kind: row.get(2)?,
        subject: row.get(3)?,
        agent: row.get(4)?,
        message: row.get(5)?,
        created_at: row.get(6)?,
        due_at: row.get(7)?,
        tried_at: row.get(8)?,
        body: BODY.json(row)?,
    })
}
