//! Approvals: questions that people are asked, and what became of them.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use crate::command::{Command, State, tail};
use crate::open::Error;
pub use weighlock_api::{ApprovalState, Risk};

/// A question that people are asked, for all commands that wait for the same
/// answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// Sorts by time of creation.
    pub id: String,
    /// What became of it.
    pub state: ApprovalState,
    /// The hash of the question; an answer names it, so that it cannot be to
    /// another question.
    pub fingerprint: String,
    /// Who wants it.
    pub requested_by: String,
    /// The sandbox's id.
    pub sandbox: String,
    /// How dangerous it is.
    pub risk: Risk,
    /// Counts how often the question changed.
    pub version: i64,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// See `created_at`.
    pub expires_at: i64,
    /// See `created_at`.
    pub decided_at: Option<i64>,
    /// Whose answer or deed closed it.
    pub decided_by: Option<String>,
    /// Commands that share it and still wait, or did when it closed.
    pub count: u64,
    /// How many people must approve.
    pub needed: u32,
    /// What has no column.
    pub body: Value,
}

/// Returns what becomes of the commands that waited, unless they may run.
pub(crate) fn end_of(state: ApprovalState) -> Option<State> {
    match state {
        ApprovalState::Pending | ApprovalState::Approved => None,
        ApprovalState::Rejected => Some(State::Rejected),
        ApprovalState::Expired => Some(State::Expired),
        ApprovalState::Withdrawn => Some(State::Withdrawn),
        ApprovalState::Blocked => Some(State::Blocked),
    }
}

/// The columns in the order that `read` expects.
pub(crate) const COLUMNS: &str = "approval_id, state, fingerprint, requested_by, sandbox_id, \
     rank, version, created_at, expires_at, decided_at, decided_by, count, needed, body";

pub(crate) fn insert(to: &Connection, approval: &Approval) -> Result<(), Error> {
    let sql = format!(
        "INSERT INTO approvals ({COLUMNS}, tail) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
    );
    to.prepare_cached(&sql)?.execute(params![
        approval.id,
        approval.state.word(),
        approval.fingerprint,
        approval.requested_by,
        approval.sandbox,
        approval.risk.rank(),
        approval.version,
        approval.created_at,
        approval.expires_at,
        approval.decided_at,
        approval.decided_by,
        approval.count,
        approval.needed,
        approval.body.to_string(),
        tail(&approval.id),
    ])?;
    Ok(())
}

/// Writes what changes of a question that stays the same.
pub(crate) fn update(to: &Connection, approval: &Approval) -> Result<(), Error> {
    to.prepare_cached(
        "UPDATE approvals SET state = ?2, expires_at = ?3, decided_at = ?4, decided_by = ?5, \
         count = ?6 WHERE approval_id = ?1",
    )?
    .execute(params![
        approval.id,
        approval.state.word(),
        approval.expires_at,
        approval.decided_at,
        approval.decided_by,
        approval.count,
    ])?;
    Ok(())
}

/// Lets a command go that waits no longer. A question that nothing waits for
/// any more is closed, and returned.
pub(crate) fn left(
    to: &Connection,
    command: &Command,
    by: &str,
    at: i64,
) -> Result<Option<Approval>, Error> {
    let Some(mut approval) = command
        .approval
        .as_deref()
        .map_or(Ok(None), |id| pending(to, id))?
    else {
        return Ok(None);
    };
    let last = approval.count <= 1;
    if last {
        approval.close(ApprovalState::Withdrawn, by, at);
    } else {
        approval.count -= 1;
    }
    update(to, &approval)?;
    Ok(last.then_some(approval))
}

impl Approval {
    pub(crate) fn close(&mut self, state: ApprovalState, by: &str, at: i64) {
        self.state = state;
        self.decided_by = Some(by.to_owned());
        self.decided_at = Some(at);
    }
}

pub(crate) fn one(from: &Connection, id: &str) -> Result<Option<Approval>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM approvals WHERE approval_id = ?1");
    let mut query = from.prepare_cached(&sql)?;
    Ok(query.query_row([id], read).optional()?)
}

pub(crate) fn pending(from: &Connection, id: &str) -> Result<Option<Approval>, Error> {
    Ok(one(from, id)?.filter(|approval| approval.state == ApprovalState::Pending))
}

pub(crate) fn read(row: &Row<'_>) -> Result<Approval, rusqlite::Error> {
    let state: String = row.get(1)?;
    let body: String = row.get(13)?;
    Ok(Approval {
        id: row.get(0)?,
        // A word that is not known is nothing to say yes to.
        state: ApprovalState::from_word(&state).unwrap_or(ApprovalState::Blocked),
        fingerprint: row.get(2)?,
        requested_by: row.get(3)?,
        sandbox: row.get(4)?,
        risk: Risk::from_rank(row.get(5)?),
        version: row.get(6)?,
        created_at: row.get(7)?,
        expires_at: row.get(8)?,
        decided_at: row.get(9)?,
        decided_by: row.get(10)?,
        count: row.get(11)?,
        needed: row.get(12)?,
        body: serde_json::from_str(&body).unwrap_or_default(),
    })
}
