//! Sessions: what one client does in one sandbox.

use std::cmp::Reverse;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use crate::column::Column;
use crate::cursor::{PageCursor, rows};
use crate::database::Database;
use crate::entry::Entry;
use crate::error::Error;
use crate::sql::all;
use crate::visible::{Lane, Visible};
use crate::writer::only_if;
use weighlock_api::RunStatus;

/// A session as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Sorts by time of creation.
    pub id: String,
    /// Whose it is.
    pub principal: String,
    /// The sandbox's id.
    pub sandbox: String,
    /// The client's name, may be empty.
    pub label: String,
    /// The coarse status of the command that changed last.
    pub status: RunStatus,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// See `created_at`.
    pub updated_at: i64,
    /// See `created_at`.
    pub closed_at: Option<i64>,
}

/// The name of the list, for its cursors.
const LIST: &str = "sessions";

const STATUS: Column = Column {
    table: "terminal_sessions",
    name: "status",
    index: 4,
};

/// The columns in the order that `read` expects.
const COLUMNS: &str = "session_id, principal_id, sandbox_id, label, status, created_at, \
     updated_at, closed_at";

/// Sessions.
#[derive(Clone, Copy)]
pub struct SessionTable<'a> {
    pub(crate) database: &'a Database,
}

impl SessionTable<'_> {
    /// Returns the open session of this principal, sandbox and label, or
    /// remembers this new one.
    pub async fn open(self, row: SessionRow, entries: Vec<Entry>) -> Result<SessionRow, Error> {
        self.database
            .writer
            .write(move |to| {
                if let Some(open) = called(to, &row.principal, &row.sandbox, &row.label)? {
                    return Ok((open, vec![]));
                }
                insert(to, &row)?;
                Ok((row, entries))
            })
            .await
    }

    /// Recalls a session.
    pub fn get(self, id: &str) -> Result<Option<SessionRow>, Error> {
        let reader = self.database.lock_reader();
        let sql = format!("SELECT {COLUMNS} FROM terminal_sessions WHERE session_id = ?1");
        let mut query = reader.prepare_cached(&sql)?;
        Ok(query.query_row([id], read).optional()?)
    }

    /// Recalls the open session that a principal calls so in a sandbox.
    pub fn called(
        self,
        principal: &str,
        sandbox: &str,
        label: &str,
    ) -> Result<Option<SessionRow>, Error> {
        called(&self.database.lock_reader(), principal, sandbox, label)
    }

    /// Lists sessions, newest first, with the cursor of the next page.
    pub fn list(
        self,
        visible: &Visible,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<SessionRow>, Option<String>), Error> {
        let after = cursor
            .map(|text| PageCursor::parse(text, LIST))
            .transpose()?;
        let reader = self.database.lock_reader();
        let mut found = vec![];
        for lane in visible.lanes(Lane::default()) {
            let (sql, values) = query(lane, after.as_ref(), limit);
            found.extend(all(&reader, &sql, params_from_iter(values), read)?);
        }
        found.sort_unstable_by_key(|row| Reverse(place(row)));
        found.dedup_by(|a, b| a.id == b.id);
        let more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().filter(|_| more);
        let next = last.map(|row| place(row).text(LIST));
        Ok((found, next))
    }

    /// Closes an open session.
    pub async fn close(self, id: String, at: i64, entries: Vec<Entry>) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let mut query = to.prepare_cached(
                    "UPDATE terminal_sessions SET closed_at = ?2, updated_at = ?2 \
                     WHERE session_id = ?1 AND closed_at IS NULL",
                )?;
                Ok(only_if(query.execute(params![id, at])? == 1, entries))
            })
            .await
    }
}

/// Lets a session say what its command that changed last does.
pub(crate) fn follow(to: &Connection, id: &str, status: RunStatus, at: i64) -> Result<(), Error> {
    to.prepare_cached(
        "UPDATE terminal_sessions SET status = ?2, updated_at = ?3 WHERE session_id = ?1",
    )?
    .execute(params![id, status.word(), at])?;
    Ok(())
}

fn called(
    from: &Connection,
    principal: &str,
    sandbox: &str,
    label: &str,
) -> Result<Option<SessionRow>, Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM terminal_sessions WHERE principal_id = ?1 AND sandbox_id = ?2 \
         AND label = ?3 AND closed_at IS NULL"
    );
    let mut query = from.prepare_cached(&sql)?;
    Ok(query
        .query_row([principal, sandbox, label], read)
        .optional()?)
}

fn insert(to: &Connection, row: &SessionRow) -> Result<(), Error> {
    to.prepare_cached(
        "INSERT INTO terminal_sessions (session_id, principal_id, sandbox_id, label, status, \
         created_at, updated_at, closed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        row.id,
        row.principal,
        row.sandbox,
        row.label,
        row.status.word(),
        row.created_at,
        row.updated_at,
        row.closed_at,
    ])?;
    Ok(())
}

/// One more than a page is read, to know whether another follows.
pub(crate) fn query(
    lane: Lane<'_>,
    after: Option<&PageCursor>,
    limit: usize,
) -> (String, Vec<Sql>) {
    let mut values: Vec<Sql> = vec![rows(limit.saturating_add(1)).into()];
    let (index, mine, name) = match (lane.who, lane.sandbox) {
        (Some(who), _) => ("principal", "AND principal_id = ?", Some(who)),
        (None, Some(id)) => ("sandbox", "AND sandbox_id = ?", Some(id)),
        (None, None) => ("time", "", None),
    };
    values.extend(name.map(|name| name.to_owned().into()));
    let mut seek = "";
    if let Some(after) = after {
        seek = "AND (created_at, session_id) < (?, ?)";
        values.extend([after.time.into(), after.id.clone().into()]);
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM terminal_sessions INDEXED BY terminal_sessions_{index} \
         WHERE ?1 > 0 {mine} {seek} ORDER BY created_at DESC, session_id DESC LIMIT ?1"
    );
    (sql, values)
}

fn place(row: &SessionRow) -> PageCursor {
    PageCursor {
        rank: 0,
        time: row.created_at,
        id: row.id.clone(),
    }
}

fn read(row: &Row<'_>) -> Result<SessionRow, rusqlite::Error> {
    Ok(SessionRow {
        id: row.get(0)?,
        principal: row.get(1)?,
        sandbox: row.get(2)?,
        label: row.get(3)?,
        status: STATUS.word(row, RunStatus::from_word)?,
        created_at: row.get(5)?,
        updated_at: row.get(6)?,
        closed_at: row.get(7)?,
    })
}
