//! What runs changed on a copy, and what became of it.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::approval::{self, Approval};
use crate::column::Column;
use crate::command::{self, Command};
use crate::database::Database;
use crate::entry::Entry;
use crate::error::Error;
use crate::pending;
use crate::sql::{all, readable};
use crate::writer::only_if;
use weighlock_api::ChangesState;
use weighlock_api::{ApprovalState, State};

/// The changes of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangesRow {
    /// The run.
    pub run: String,
    /// The session it belongs to.
    pub session: Option<String>,
    /// What became of them.
    pub state: ChangesState,
    /// Names exactly what would be, or was applied.
    pub hash: String,
    /// Runs whose held changes it saw, the newest first.
    pub below: Vec<String>,
    /// Bytes of before-images on disk.
    pub bytes: u64,
    /// Microseconds since 1970.
    pub updated_at: i64,
    /// The description of the changes, as JSON.
    pub body: serde_json::Value,
}

/// What became of asking about changes.
#[derive(Debug, Clone, PartialEq)]
pub enum Held {
    /// It is asked.
    Asked(Approval),
    /// The question that the run was tried for has ended meanwhile.
    Ended(Approval),
}

/// Changes that a person has to be asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct HoldChanges {
    /// In the state [`State::Waiting`].
    pub command: Command,
    /// To try it again from.
    pub request: String,
    /// The question.
    pub approval: Approval,
    /// In the state [`ChangesState::Held`].
    pub changes: ChangesRow,
}

/// What runs changed on a copy.
#[derive(Clone, Copy)]
pub struct ChangesTable<'a> {
    pub(crate) database: &'a Database,
}

impl ChangesTable<'_> {
    /// Lets a waiting command be tried; its question stays open meanwhile.
    pub async fn try_out(self, command: Command, entries: Vec<Entry>) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let stored = command::one(to, &command.id)?;
                let waits = stored.is_some_and(|stored| {
                    stored.state == State::Waiting && stored.approved_by.is_none()
                });
                if waits {
                    command::update(to, &command)?;
                }
                Ok(only_if(waits, entries))
            })
            .await
    }

    /// Asks about the changes of a command that has ended. The question that
    /// it was tried for becomes this one. `tell` is given the question.
    pub async fn hold(
        self,
        hold: HoldChanges,
        tell: impl FnOnce(&mut Command, &Approval) -> Vec<Entry> + Send + 'static,
    ) -> Result<Held, Error> {
        self.database
            .writer
            .write(move |to| {
                let before = match &hold.command.approval {
                    Some(id) => approval::one(to, id)?,
                    None => None,
                };
                let question = match before {
                    Some(before) if before.state != ApprovalState::Pending => {
                        return Ok((Held::Ended(before), vec![]));
                    }
                    Some(before) => renew(to, before, &hold.approval)?,
                    None => {
                        approval::insert(to, &hold.approval)?;
                        hold.approval
                    }
                };
                let mut command = Command {
                    approval: Some(question.id.clone()),
                    ..hold.command
                };
                let entries = tell(&mut command, &question);
                command::update(to, &command)?;
                to.prepare_cached(
                    "REPLACE INTO pending_requests (command_id, body) VALUES (?1, ?2)",
                )?
                .execute(params![command.id, hold.request])?;
                put(to, &hold.changes)?;
                Ok((Held::Asked(question), entries))
            })
            .await
    }

    /// Remembers what became of a command and of its changes; with `from`,
    /// only if it is still that. It waits for nothing any more.
    pub async fn settle(
        self,
        command: Command,
        from: Option<State>,
        changes: ChangesRow,
        entries: Vec<Entry>,
    ) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let stored = command::one(to, &command.id)?;
                let still =
                    stored.is_some_and(|stored| from.is_none_or(|from| stored.state == from));
                if still {
                    pending::end(to, &command)?;
                    put(to, &changes)?;
                }
                Ok(only_if(still, entries))
            })
            .await
    }

    /// Remembers what became of changes.
    pub async fn update(self, changes: Vec<ChangesRow>, entries: Vec<Entry>) -> Result<(), Error> {
        self.database
            .writer
            .write(move |to| {
                changes.iter().try_for_each(|row| put(to, row))?;
                Ok(((), entries))
            })
            .await
    }

    /// Recalls the changes of a run.
    pub fn of_run(self, run: &str) -> Result<Option<ChangesRow>, Error> {
        let reader = self.database.lock_reader();
        let sql = format!("SELECT {COLUMNS} FROM changes WHERE command_id = ?1");
        let mut query = reader.prepare_cached(&sql)?;
        Ok(query.query_row([run], read).optional()?)
    }

    /// Lists the held changes of a session, the newest run first; of all
    /// sessions if none is named.
    pub fn held(self, session: Option<&str>) -> Result<Vec<ChangesRow>, Error> {
        let which = match session {
            Some(_) => "session_id = ?1",
            None => "?1 IS NULL",
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM changes WHERE state = 'held' AND {which} \
             ORDER BY command_id DESC"
        );
        all(&self.database.lock_reader(), &sql, [session], read)
    }

    /// Lists those with before-images on disk, the oldest first.
    pub fn oldest_images(self, limit: i64) -> Result<Vec<ChangesRow>, Error> {
        let sql = format!(
            "SELECT {COLUMNS} FROM changes WHERE bytes > 0 ORDER BY updated_at, command_id LIMIT ?1"
        );
        readable(&self.database.lock_reader(), &sql, [limit], read)
    }

    /// Returns how many bytes of before-images there are.
    pub fn image_bytes(self) -> Result<u64, Error> {
        let sql = "SELECT coalesce(sum(bytes), 0) FROM changes WHERE bytes > 0";
        Ok(self
            .database
            .lock_reader()
            .query_row(sql, [], |row| row.get(0))?)
    }
}

const COLUMNS: &str = "command_id, session_id, state, hash, below, bytes, updated_at, body";

fn column(name: &'static str, index: usize) -> Column {
    Column {
        table: "changes",
        name,
        index,
    }
}

fn put(to: &Connection, row: &ChangesRow) -> Result<(), Error> {
    let sql = format!("REPLACE INTO changes ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)");
    to.prepare_cached(&sql)?.execute(params![
        row.run,
        row.session,
        row.state.word(),
        row.hash,
        serde_json::to_string(&row.below).expect("names are always JSON"),
        row.bytes,
        row.updated_at,
        row.body.to_string(),
    ])?;
    Ok(())
}

/// Replaces a question by the one that is asked now.
fn renew(to: &Connection, was: Approval, now: &Approval) -> Result<Approval, Error> {
    let renewed = Approval {
        id: was.id,
        version: was.version + 1,
        created_at: was.created_at,
        count: was.count,
        ..now.clone()
    };
    to.prepare_cached("DELETE FROM answers WHERE approval_id = ?1")?
        .execute([&renewed.id])?;
    to.prepare_cached(
        "UPDATE approvals SET fingerprint = ?2, rank = ?3, expires_at = ?4, needed = ?5, \
         body = ?6, version = ?7 WHERE approval_id = ?1",
    )?
    .execute(params![
        renewed.id,
        renewed.fingerprint,
        renewed.risk.rank(),
        renewed.expires_at,
        renewed.needed,
        renewed.body.to_string(),
        renewed.version,
    ])?;
    Ok(renewed)
}

fn read(row: &Row<'_>) -> Result<ChangesRow, rusqlite::Error> {
    Ok(ChangesRow {
        run: row.get(0)?,
        session: row.get(1)?,
        state: column("state", 2).word(row, ChangesState::from_word)?,
        hash: row.get(3)?,
        below: column("below", 4).json(row)?,
        bytes: row.get(5)?,
        updated_at: row.get(6)?,
        body: column("body", 7).json(row)?,
    })
}
