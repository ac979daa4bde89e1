//! Commands that have not begun: they wait for a person, or for the end of a
//! pause. Each has its request stored, to be started from later.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::approval::{self, Approval};
use crate::command::{self, COLUMNS, Command};
use crate::database::Database;
use crate::entry::Entry;
use crate::error::Error;
use crate::key::{self, Inserted, Key};
use crate::sql::all;
use crate::writer::only_if;
use weighlock_api::State;

/// A command that cannot begin while work is paused.
#[derive(Debug, Clone, PartialEq)]
pub struct Hold {
    /// In the state [`State::Held`].
    pub command: Command,
    /// To start it from, once it may.
    pub request: String,
    /// See [`Key`].
    pub key: Option<Key>,
    /// How many commands of one requester may be pending.
    pub max_pending: u64,
}

/// What became of asking.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// It is a question of its own.
    New,
    /// The same was asked already; this is that question.
    Joined(Box<Approval>),
    /// Its key has been used, and nothing was done.
    Before {
        /// The command that came with the key.
        command_id: String,
        /// It was the same request.
        same: bool,
    },
    /// The requester has too much pending; nothing was done.
    TooMany,
    /// It was held, and has ended or gone on meanwhile; nothing was done.
    Over,
}

/// Commands that have not begun, with their requests.
#[derive(Clone, Copy)]
pub struct PendingTable<'a> {
    pub(crate) database: &'a Database,
}

impl PendingTable<'_> {
    /// Remembers a new command that is held, with the request to start it
    /// from, unless its key was used before or too much is pending.
    pub async fn hold(self, hold: Hold, entries: Vec<Entry>) -> Result<Asked, Error> {
        self.database
            .writer
            .write(move |to| {
                let key = hold.key.as_ref();
                if let Some(refusal) = refusal(to, &hold.command, key, hold.max_pending)? {
                    return Ok((refusal, vec![]));
                }
                insert(to, &hold.command, &hold.request)?;
                key::keep(to, key, &hold.command.id, hold.command.created_at)?;
                Ok((Asked::New, entries))
            })
            .await
    }

    /// Remembers the start of something that waited, only if it is still
    /// `from`; takes its stored request away.
    pub async fn begin(
        self,
        command: Command,
        from: State,
        entries: Vec<Entry>,
    ) -> Result<bool, Error> {
        self.leave(command, from, entries).await
    }

    /// Remembers the end of something that has not begun, only if it is still
    /// `from`; takes its stored request away.
    pub async fn end(
        self,
        command: Command,
        from: State,
        entries: Vec<Entry>,
    ) -> Result<bool, Error> {
        self.leave(command, from, entries).await
    }

    /// Lists those that could begin, oldest first, with their requests: held
    /// ones, and approved ones that never began.
    pub fn ready(self) -> Result<Vec<(Command, String)>, Error> {
        // The few requests lead, which are in the order of their ids.
        let sql = format!(
            "SELECT {COLUMNS}, body FROM pending_requests CROSS JOIN terminal_commands \
             USING (command_id) WHERE state = 'held' \
             OR state = 'waiting' AND approved_by IS NOT NULL \
             ORDER BY pending_requests.command_id"
        );
        all(&self.database.lock_reader(), &sql, [], read)
    }

    /// Lists all that may begin some day, oldest first: held ones, and those
    /// that wait for an answer.
    pub fn all(self) -> Result<Vec<Command>, Error> {
        let sql = format!(
            "SELECT {COLUMNS} FROM pending_requests CROSS JOIN terminal_commands \
             USING (command_id) WHERE state IN ('held', 'waiting') \
             ORDER BY pending_requests.command_id"
        );
        all(&self.database.lock_reader(), &sql, [], command::read)
    }

    /// Recalls the request that a command would be started from.
    pub fn request(self, command_id: &str) -> Result<Option<String>, Error> {
        let reader = self.database.lock_reader();
        let sql = "SELECT body FROM pending_requests WHERE command_id = ?1";
        let mut query = reader.prepare_cached(sql)?;
        Ok(query.query_row([command_id], |row| row.get(0)).optional()?)
    }

    async fn leave(
        self,
        command: Command,
        from: State,
        entries: Vec<Entry>,
    ) -> Result<bool, Error> {
        self.database
            .writer
            .write(move |to| {
                let stored = command::one(to, &command.id)?;
                let Some(stored) = stored.filter(|stored| stored.state == from) else {
                    return Ok(only_if(false, entries));
                };
                end(to, &command)?;
                approval::left(to, &stored, &command.requested_by, command.updated_at)?;
                Ok(only_if(true, entries))
            })
            .await
    }
}

/// Returns why a command cannot be one more that has not begun, if it cannot.
pub(crate) fn refusal(
    from: &Connection,
    command: &Command,
    key: Option<&Key>,
    max_pending: u64,
) -> Result<Option<Asked>, Error> {
    if let Some(Inserted::Before { command_id, same }) = key::before(from, key)? {
        return Ok(Some(Asked::Before { command_id, same }));
    }
    let on_record = command::one(from, &command.id)?;
    if { on_record.as_ref() }.is_some_and(|stored| stored.state != State::Held) {
        return Ok(Some(Asked::Over));
    }
    let pending: u64 = from
        .prepare_cached(
            "SELECT count(*) FROM terminal_commands INDEXED BY terminal_commands_pending \
             WHERE requested_by = ?1 AND status = 'pending'",
        )?
        .query_row([&command.requested_by], |row| row.get(0))?;
    // One that was held is among them, and is no more than before.
    let others = pending - u64::from(on_record.is_some());
    Ok((others >= max_pending).then_some(Asked::TooMany))
}

/// Remembers a command that does not begin yet; one that was held may have to
/// wait for an answer after that. One that has ended meanwhile is not revived:
/// its id is taken.
pub(crate) fn insert(to: &Connection, command: &Command, request: &str) -> Result<(), Error> {
    match command::one(to, &command.id)? {
        Some(stored) if stored.state == State::Held => command::update(to, command)?,
        _ => command::insert(to, command)?,
    }
    to.prepare_cached("REPLACE INTO pending_requests (command_id, body) VALUES (?1, ?2)")?
        .execute(params![command.id, request])?;
    Ok(())
}

/// Remembers that a command does not wait any more.
pub(crate) fn end(to: &Connection, command: &Command) -> Result<(), Error> {
    command::update(to, command)?;
    to.prepare_cached("DELETE FROM pending_requests WHERE command_id = ?1")?
        .execute([&command.id])?;
    Ok(())
}

/// Returns what waits on an approval, with the requests.
pub(crate) fn waiting(from: &Connection, approval: &str) -> Result<Vec<(Command, String)>, Error> {
    let sql = format!(
        "SELECT {COLUMNS}, body FROM terminal_commands JOIN pending_requests USING (command_id) \
         WHERE approval_id = ?1 AND state = 'waiting' ORDER BY command_id"
    );
    all(from, &sql, [approval], read)
}

fn read(row: &Row<'_>) -> Result<(Command, String), rusqlite::Error> {
    Ok((command::read(row)?, row.get("body")?))
}
