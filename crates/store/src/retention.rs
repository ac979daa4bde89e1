//! Removing the oldest part of the record.
//!
//! The audit is cut at its beginning, never in the middle. The cut is itself an
//! entry of the chain, appended in the transaction that removes: it holds the
//! number and the hash of the last entry that went, so that what is left still
//! verifies.

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use crate::audit::AuditLog;
use crate::bound::{self, BoundRows};
use crate::chain::{CHECKPOINT, Checkpoint, Link};
use crate::entry::Entry;
use crate::entry::EntryBody;
use crate::error::Error;
use crate::sql::all;
use crate::verify::{ChainCheck, page};

/// What one removal did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// How many entries are gone.
    pub entries: u64,
    /// The commands that are gone.
    pub commands: Vec<String>,
}

/// What still needs a command: its keeper, its output, an answer that is
/// awaited, or changes that can be applied or undone.
const IN_USE: &str = "(c.open = 1 OR c.kept_bytes > 0 \
     OR EXISTS (SELECT 1 FROM pending_requests p WHERE p.command_id = c.command_id) \
     OR EXISTS (SELECT 1 FROM changes h WHERE h.command_id = c.command_id \
                AND (h.state = 'held' OR h.bytes > 0)))";

impl AuditLog<'_> {
    /// Removes the oldest entries from before a time, and the commands all of
    /// whose entries are gone then. Stops at the first entry about something
    /// that is still in use, and at a thousand entries. Removes nothing where
    /// they are not what was written: that is evidence.
    pub async fn forget(self, before: i64, now: i64) -> Result<Forgotten, Error> {
        self.database
            .writer
            .write(move |to| {
                let Some(cut) = cut(to, before)? else {
                    return Ok((Forgotten::default(), vec![]));
                };
                let commands = remove(to, cut.link.seq)?;
                bound::keep_tied(to, cut.tied)?;
                let detail = json!({
                    "removed_to": cut.link.seq,
                    "hash": cut.link.hash,
                    "newest": cut.newest,
                    "entries": cut.entries,
                    "commands": commands.len(),
                    "reason": "retention",
                });
                let entry = Entry {
                    time: now,
                    kind: CHECKPOINT,
                    actor: "weighlock".into(),
                    detail,
                    ..Entry::default()
                };
                let forgotten = Forgotten {
                    entries: cut.entries,
                    commands,
                };
                Ok((forgotten, vec![entry]))
            })
            .await
    }
}

/// Where the chain is cut.
struct ChainCut {
    /// The last entry that goes.
    link: Link,
    newest: String,
    entries: u64,
    /// The rows that the entries tie.
    tied: BoundRows,
}

/// Finds the last of the oldest entries that may go, and checks them all.
fn cut(from: &Connection, before: i64) -> Result<Option<ChainCut>, Error> {
    let asked: Option<i64> = from.query_row(
        "SELECT min(created_at) FROM approvals WHERE state = 'pending'",
        [],
        |row| row.get(0),
    )?;
    let before = asked.map_or(before, |asked| asked.min(before));
    let mut rows = page(from, 0)?;
    // The times of clocks that were set back do not matter: the first entry
    // that is too young ends it. One without a time was tampered with.
    let old = rows.iter().take_while(|row| row.is_before(before)).count();
    rows.truncate(old);
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return Ok(None);
    };
    let sql = format!(
        "SELECT min(seq) FROM audit WHERE seq <= ?1 AND EXISTS \
         (SELECT 1 FROM terminal_commands c WHERE c.command_id = audit.run AND {IN_USE})"
    );
    let in_use: Option<u64> = from.query_row(&sql, [last.seq], |row| row.get(0))?;
    let first = first.seq;
    rows.retain(|row| in_use.is_none_or(|in_use| row.seq < in_use));
    let mut check = ChainCheck::default();
    for row in &rows {
        check.row(row);
    }
    // A beginning that somebody else has removed stays a fault.
    if check.gone() != &last_removed(from)? {
        return Ok(None);
    }
    let newest = check.newest().to_owned();
    let tied = check.take_rows();
    Ok(check.into_link().map(|link| ChainCut {
        entries: link.seq + 1 - first,
        link,
        newest,
        tied,
    }))
}

/// Returns the last entry that an earlier removal took.
fn last_removed(from: &Connection) -> Result<Link, Error> {
    let sql = "SELECT body FROM audit WHERE seq = (SELECT seq FROM audit INDEXED BY audit_kind \
               WHERE kind = ?1 ORDER BY seq DESC LIMIT 1)";
    let body: Option<String> = from
        .query_row(sql, [CHECKPOINT], |row| row.get(0))
        .optional()?;
    let told = body.and_then(|body| serde_json::from_str::<EntryBody>(&body).ok());
    let told = told.and_then(|body| serde_json::from_value::<Checkpoint>(body.detail).ok());
    Ok(told.map_or_else(Link::none, |told| Link {
        seq: told.removed_to,
        hash: told.hash,
    }))
}

/// Removes the entries up to a number, and the commands that only they were
/// about, with what belongs to them.
fn remove(to: &Connection, last: u64) -> Result<Vec<String>, Error> {
    let sql = format!(
        "SELECT c.command_id FROM (SELECT DISTINCT run FROM audit WHERE seq <= ?1) AS gone \
         JOIN terminal_commands c ON c.command_id = gone.run WHERE NOT {IN_USE} \
         AND NOT EXISTS (SELECT 1 FROM audit a WHERE a.run = c.command_id AND a.seq > ?1)"
    );
    let commands = all(to, &sql, [last], |row| row.get::<_, String>(0))?;
    let mut approvals = vec![];
    for id in &commands {
        let sql = "SELECT approval_id FROM terminal_commands WHERE command_id = ?1";
        approvals.extend(to.query_row(sql, [id], |row| row.get::<_, Option<String>>(0))?);
        for table in ["idempotency", "changes", "terminal_commands"] {
            let sql = format!("DELETE FROM {table} WHERE command_id = ?1");
            to.prepare_cached(&sql)?.execute([id])?;
        }
    }
    approvals.sort_unstable();
    approvals.dedup();
    for id in &approvals {
        let unused = "approval_id = ?1 AND NOT EXISTS (SELECT 1 FROM terminal_commands c \
                      WHERE c.approval_id = ?1)";
        for table in ["answers", "approvals"] {
            let sql = format!("DELETE FROM {table} WHERE {unused}");
            to.prepare_cached(&sql)?.execute([id])?;
        }
    }
    to.execute("DELETE FROM audit WHERE seq <= ?1", params![last])?;
    Ok(commands)
}
