//! Commands: what was asked, and what became of it.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::column::Column;
use crate::database::Database;
use crate::entry::Entry;
use crate::error::Error;
use crate::key::{self, Inserted, Key};
use crate::session;
use crate::sql::{all, readable};
use weighlock_api::State;

/// One command as it is remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Sorts by time of creation.
    pub id: String,
    /// The session it belongs to.
    pub session: Option<String>,
    /// The sandbox it runs in.
    pub sandbox: Option<String>,
    /// The approval it waits or waited for.
    pub approval: Option<String>,
    /// The text.
    pub command: String,
    /// The directory it runs in, resolved.
    pub cwd: String,
    /// Where it is in its life.
    pub state: State,
    /// The exit code, if it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal, if one ended it.
    pub signal: Option<i32>,
    /// Who asked.
    pub requested_by: String,
    /// Who allowed it, if a person was asked.
    pub approved_by: Option<String>,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// See `created_at`.
    pub updated_at: i64,
    /// See `created_at`.
    pub started_at: Option<i64>,
    /// See `created_at`.
    pub ended_at: Option<i64>,
    /// A keeper may still be alive.
    pub open: bool,
    /// It runs elsewhere; here it is only judged and remembered.
    pub external: bool,
    /// Bytes of its output that are on disk.
    pub kept_bytes: u64,
    /// What has no column: JSON, which the store does not look into.
    pub detail: String,
}

pub(crate) const STATE: Column = Column {
    table: "terminal_commands",
    name: "state",
    index: 4,
};

/// Random characters at the end of an id; what comes before is its time.
pub(crate) const ID_TAIL: usize = 10;

/// The columns in the order that `read` expects.
pub(crate) const COLUMNS: &str = "command_id, session_id, command, cwd, state, exit_code, \
     signal, requested_by, approved_by, created_at, updated_at, started_at, ended_at, detail, \
     open, kept_bytes, sandbox_id, approval_id, external";

/// Commands, and the keys that they came with.
#[derive(Clone, Copy)]
pub struct CommandTable<'a> {
    pub(crate) database: &'a Database,
}

impl CommandTable<'_> {
    /// Remembers a new command together with its entries, unless its key was
    /// used before.
    pub async fn insert(
        self,
        command: Command,
        key: Option<Key>,
        entries: Vec<Entry>,
    ) -> Result<Inserted, Error> {
        self.database
            .writer
            .write(move |to| {
                if let Some(before) = key::before(to, key.as_ref())? {
                    return Ok((before, vec![]));
                }
                insert(to, &command)?;
                key::keep(to, key.as_ref(), &command.id, command.created_at)?;
                Ok((Inserted::New, entries))
            })
            .await
    }

    /// Remembers what became of a command together with its entries.
    pub async fn update(self, command: Command, entries: Vec<Entry>) -> Result<(), Error> {
        self.database
            .writer
            .write(move |to| Ok((update(to, &command)?, entries)))
            .await
    }

    /// Changes a command as it is by then, and not as it was when somebody
    /// looked; together with entries. Returns what `change` gives beside them,
    /// or nothing when there is no such command.
    pub async fn amend<T: Send + 'static>(
        self,
        id: &str,
        change: impl FnOnce(&mut Command) -> (T, Vec<Entry>) + Send + 'static,
    ) -> Result<Option<T>, Error> {
        let id = id.to_owned();
        self.database
            .writer
            .write(move |to| {
                let Some(mut command) = one(to, &id)? else {
                    return Ok((None, vec![]));
                };
                let (value, entries) = change(&mut command);
                update(to, &command)?;
                Ok((Some(value), entries))
            })
            .await
    }

    /// Recalls the commands that an id names: a whole one, or the beginning of
    /// its short form. At most two, which is one too many.
    pub fn named(self, id: &str) -> Result<Vec<Command>, Error> {
        let short = id.strip_prefix("r_").unwrap_or(id);
        let (column, from) = if short.len() > ID_TAIL {
            ("command_id", format!("r_{short}"))
        } else {
            ("tail", short.to_owned())
        };
        // No id character sorts after `~`.
        let to = format!("{from}~");
        let sql = format!(
            "SELECT {COLUMNS} FROM terminal_commands \
             WHERE {column} >= ?1 AND {column} < ?2 ORDER BY {column} LIMIT 2"
        );
        all(&self.database.lock_reader(), &sql, params![from, to], read)
    }

    /// Lists the commands whose keepers may still be alive. One whose state cannot
    /// be read is lost, but its keeper is not forgotten.
    pub fn open(self) -> Result<Vec<Command>, Error> {
        let sql =
            format!("SELECT {COLUMNS} FROM terminal_commands WHERE open = 1 ORDER BY command_id");
        all(&self.database.lock_reader(), &sql, [], |row| {
            read_as(
                row,
                STATE.word(row, State::from_word).unwrap_or(State::Lost),
            )
        })
    }

    /// Returns the id of the newest command.
    pub fn newest_id(self) -> Result<Option<String>, Error> {
        let sql = "SELECT command_id FROM terminal_commands ORDER BY command_id DESC LIMIT 1";
        let reader = self.database.lock_reader();
        Ok(reader.query_row(sql, [], |row| row.get(0)).optional()?)
    }

    /// Lists the oldest commands that have output on disk.
    pub fn oldest_kept(self, limit: i64) -> Result<Vec<Command>, Error> {
        let sql = format!(
            "SELECT {COLUMNS} FROM terminal_commands WHERE kept_bytes > 0 AND open = 0 \
             ORDER BY command_id LIMIT ?1"
        );
        readable(&self.database.lock_reader(), &sql, [limit], read)
    }

    /// Lists when each command was made whose output is on disk, and how much of
    /// it there is; oldest first.
    pub fn kept_sizes(self) -> Result<Vec<(i64, u64)>, Error> {
        let sql = "SELECT created_at, kept_bytes FROM terminal_commands \
                   WHERE kept_bytes > 0 AND open = 0 ORDER BY command_id";
        all(&self.database.another_reader()?, sql, [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    }

    /// Returns how much output is on disk, of all commands together of which
    /// nothing runs any more.
    pub fn kept_bytes(self) -> Result<u64, Error> {
        let sql = "SELECT coalesce(sum(kept_bytes), 0) FROM terminal_commands \
                   WHERE kept_bytes > 0 AND open = 0";
        Ok(self
            .database
            .lock_reader()
            .query_row(sql, [], |row| row.get(0))?)
    }

    /// Returns the hash and the command that came with a key.
    pub fn keyed(self, principal: &str, key: &str) -> Result<Option<(String, String)>, Error> {
        key::find(&self.database.lock_reader(), principal, key)
    }

    /// Forgets the keys from before a time.
    pub async fn forget_keys(self, before: i64) -> Result<(), Error> {
        let sql = "DELETE FROM idempotency WHERE created_at < ?1";
        self.database.writer.execute(sql, [before]).await
    }
}

pub(crate) fn insert(to: &Connection, command: &Command) -> Result<(), Error> {
    to.prepare_cached(
        "INSERT INTO terminal_commands (command_id, session_id, command, cwd, state, \
         exit_code, signal, requested_by, approved_by, created_at, updated_at, started_at, \
         ended_at, detail, status, tail, open, kept_bytes, sandbox_id, approval_id, external) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
         ?18, ?19, ?20, ?21)",
    )?
    .execute(params![
        command.id,
        command.session,
        command.command,
        command.cwd,
        command.state.word(),
        command.exit_code,
        command.signal,
        command.requested_by,
        command.approved_by,
        command.created_at,
        command.updated_at,
        command.started_at,
        command.ended_at,
        command.detail,
        command.state.status().word(),
        tail(&command.id),
        command.open,
        command.kept_bytes,
        command.sandbox,
        command.approval,
        command.external,
    ])?;
    follow(to, command)
}

/// An approver and an approval, once there, stay: the store puts them there,
/// and a caller's copy may be from before.
pub(crate) fn update(to: &Connection, command: &Command) -> Result<(), Error> {
    to.prepare_cached(
        "UPDATE terminal_commands SET state = ?2, status = ?3, exit_code = ?4, signal = ?5, \
         updated_at = ?6, started_at = ?7, ended_at = ?8, detail = ?9, open = ?10, \
         kept_bytes = ?11, command = ?12, approved_by = coalesce(?13, approved_by), \
         approval_id = coalesce(?14, approval_id) WHERE command_id = ?1",
    )?
    .execute(params![
        command.id,
        command.state.word(),
        command.state.status().word(),
        command.exit_code,
        command.signal,
        command.updated_at,
        command.started_at,
        command.ended_at,
        command.detail,
        command.open,
        command.kept_bytes,
        command.command,
        command.approved_by,
        command.approval,
    ])?;
    follow(to, command)
}

/// Lets a command's session, where there is one, say what the command does.
fn follow(to: &Connection, command: &Command) -> Result<(), Error> {
    match &command.session {
        Some(session) => session::follow(to, session, command.state.status(), command.updated_at),
        None => Ok(()),
    }
}

pub(crate) fn one(from: &Connection, id: &str) -> Result<Option<Command>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM terminal_commands WHERE command_id = ?1");
    let mut query = from.prepare_cached(&sql)?;
    Ok(query.query_row([id], read).optional()?)
}

pub(crate) fn read(row: &Row<'_>) -> Result<Command, rusqlite::Error> {
    read_as(row, STATE.word(row, State::from_word)?)
}

fn read_as(row: &Row<'_>, state: State) -> Result<Command, rusqlite::Error> {
    Ok(Command {
        id: row.get(0)?,
        session: row.get(1)?,
        command: row.get(2)?,
        cwd: row.get(3)?,
        state,
        exit_code: row.get(5)?,
        signal: row.get(6)?,
        requested_by: row.get(7)?,
        approved_by: row.get(8)?,
        created_at: row.get(9)?,
        updated_at: row.get(10)?,
        started_at: row.get(11)?,
        ended_at: row.get(12)?,
        detail: row.get(13)?,
        open: row.get(14)?,
        kept_bytes: row.get(15)?,
        sandbox: row.get(16)?,
        approval: row.get(17)?,
        external: row.get(18)?,
    })
}

/// The part of an id that people type: its random end.
pub(crate) fn tail(id: &str) -> &str {
    id.get(id.len().saturating_sub(ID_TAIL)..).unwrap_or(id)
}
