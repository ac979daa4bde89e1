//! Commands: what was asked, and what became of it.

use rusqlite::{Connection, Row, ToSql, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::audit::Entry;
use crate::open::{Error, Store};

/// The exact state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The policy said no.
    Blocked,
    /// A person said no.
    Rejected,
    /// It runs.
    Running,
    /// It ended with exit code 0.
    Succeeded,
    /// It ended with another exit code, or could not be started.
    Failed,
    /// A time limit ended it.
    TimedOut,
    /// A signal ended it.
    Killed,
    /// Nobody knows how it ended; `reason` says why.
    Lost,
}

/// One command as it is remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Sorts by time of creation.
    pub id: String,
    /// The session it belongs to.
    pub session: Option<String>,
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
    /// Bytes of its output that are on disk.
    pub kept_bytes: u64,
    /// What has no column, as JSON.
    pub detail: serde_json::Value,
}

/// Which commands to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those whose text contains this, whatever its case.
    pub text: Option<String>,
    /// Only those older than this id.
    pub before: Option<String>,
    /// Only those of this requester; all but `doctor` when not given.
    pub requested_by: Option<String>,
    /// Only those whose keeper may still be alive.
    pub open: bool,
    /// At most so many.
    pub limit: usize,
}

impl State {
    /// Returns the coarse status that follows from the state.
    pub fn status(self) -> &'static str {
        match self {
            Self::Running => "approved",
            Self::Blocked | Self::Rejected => "rejected",
            Self::Succeeded => "executed",
            Self::Failed | Self::TimedOut | Self::Killed | Self::Lost => "failed",
        }
    }

    /// Returns the state's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Rejected => "rejected",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Killed => "killed",
            Self::Lost => "lost",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        serde_json::from_value(word.into()).ok()
    }
}

/// Random characters at the end of an id; what comes before is its time.
const ID_TAIL: usize = 10;

/// The columns in the order that `read` expects.
const COLUMNS: &str = "command_id, session_id, command, cwd, state, exit_code, signal, \
     requested_by, approved_by, created_at, updated_at, started_at, ended_at, detail, open, kept_bytes";

impl Store {
    /// Remembers a new command together with its entries.
    pub async fn insert(&self, command: Command, entries: Vec<Entry>) -> Result<(), Error> {
        self.writer
            .write(entries, move |to| insert(to, &command))
            .await
    }

    /// Remembers what became of a command together with its entries.
    pub async fn update(&self, command: Command, entries: Vec<Entry>) -> Result<(), Error> {
        self.writer
            .write(entries, move |to| update(to, &command))
            .await
    }

    /// Recalls the commands that an id names: a whole one, or the beginning of
    /// its short form. At most two, which is one too many.
    pub fn named(&self, id: &str) -> Result<Vec<Command>, Error> {
        let short = id.strip_prefix("r_").unwrap_or(id);
        let (column, from) = if short.len() > ID_TAIL {
            ("command_id", format!("r_{short}"))
        } else {
            ("tail", short.to_owned())
        };
        // No id character sorts after `~`.
        let to = format!("{from}~");
        let reader = self.lock_reader();
        let sql = format!(
            "SELECT {COLUMNS} FROM terminal_commands \
             WHERE {column} >= ?1 AND {column} < ?2 ORDER BY command_id DESC LIMIT 2"
        );
        let mut query = reader.prepare_cached(&sql)?;
        let rows = query.query_map(params![from, to], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Lists commands, newest first.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Command>, Error> {
        // Only what is asked for stands in the query, so that the index that
        // fits is used: a page of a million commands must not read them all.
        let mut values: Vec<&dyn ToSql> = vec![];
        let mut sql = format!("SELECT {COLUMNS} FROM terminal_commands WHERE TRUE");
        let state = filter.state.map(State::word);
        let mut add = |condition: &str, value| {
            values.push(value);
            sql.push_str(&format!(" AND {condition} ?{}", values.len()));
        };
        if let Some(state) = &state {
            add("state =", state);
        }
        if let Some(before) = &filter.before {
            add("command_id <", before);
        }
        match &filter.requested_by {
            Some(who) => add("requested_by =", who),
            None => add("requested_by <>", &"doctor"),
        }
        // SQLite knows only the case of ASCII letters.
        let text = filter.text.as_ref().map(|text| text.to_ascii_lowercase());
        if let Some(text) = &text {
            add("0 < instr(lower(command),", text);
            sql.push(')');
        }
        if filter.open {
            sql.push_str(" AND open = 1");
        }
        sql.push_str(&format!(" ORDER BY command_id DESC LIMIT {}", filter.limit));
        let reader = self.lock_reader();
        let mut query = reader.prepare_cached(&sql)?;
        let rows = query.query_map(values.as_slice(), read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Lists the commands whose keepers may still be alive.
    pub fn open_commands(&self) -> Result<Vec<Command>, Error> {
        self.all("WHERE open = 1 ORDER BY command_id", i64::MAX)
    }

    /// Lists the oldest commands that have output on disk.
    pub fn oldest_kept(&self, limit: i64) -> Result<Vec<Command>, Error> {
        self.all(
            "WHERE kept_bytes > 0 AND open = 0 ORDER BY command_id",
            limit,
        )
    }

    /// Returns how much output is on disk, of all commands together.
    pub fn kept_bytes(&self) -> Result<u64, Error> {
        let sql = "SELECT coalesce(sum(kept_bytes), 0) FROM terminal_commands WHERE kept_bytes > 0";
        Ok(self.lock_reader().query_row(sql, [], |row| row.get(0))?)
    }

    fn all(&self, which: &str, limit: i64) -> Result<Vec<Command>, Error> {
        let reader = self.lock_reader();
        let sql = format!("SELECT {COLUMNS} FROM terminal_commands {which} LIMIT ?1");
        let mut query = reader.prepare_cached(&sql)?;
        let rows = query.query_map([limit], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn insert(to: &Connection, command: &Command) -> Result<(), rusqlite::Error> {
    to.prepare_cached(
        "INSERT INTO terminal_commands (command_id, session_id, command, cwd, state, \
         exit_code, signal, requested_by, approved_by, created_at, updated_at, started_at, \
         ended_at, detail, status, tail, open, kept_bytes) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
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
        command.detail.to_string(),
        command.state.status(),
        tail(&command.id),
        command.open,
        command.kept_bytes,
    ])?;
    Ok(())
}

fn update(to: &Connection, command: &Command) -> Result<(), rusqlite::Error> {
    to.prepare_cached(
        "UPDATE terminal_commands SET state = ?2, status = ?3, exit_code = ?4, signal = ?5, \
         updated_at = ?6, started_at = ?7, ended_at = ?8, detail = ?9, open = ?10, \
         kept_bytes = ?11 WHERE command_id = ?1",
    )?
    .execute(params![
        command.id,
        command.state.word(),
        command.state.status(),
        command.exit_code,
        command.signal,
        command.updated_at,
        command.started_at,
        command.ended_at,
        command.detail.to_string(),
        command.open,
        command.kept_bytes,
    ])?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<Command, rusqlite::Error> {
    let state: String = row.get(4)?;
    let detail: String = row.get(13)?;
    Ok(Command {
        id: row.get(0)?,
        session: row.get(1)?,
        command: row.get(2)?,
        cwd: row.get(3)?,
        state: State::from_word(&state).unwrap_or(State::Lost),
        exit_code: row.get(5)?,
        signal: row.get(6)?,
        requested_by: row.get(7)?,
        approved_by: row.get(8)?,
        created_at: row.get(9)?,
        updated_at: row.get(10)?,
        started_at: row.get(11)?,
        ended_at: row.get(12)?,
        detail: serde_json::from_str(&detail).unwrap_or_default(),
        open: row.get(14)?,
        kept_bytes: row.get(15)?,
    })
}

/// The part of an id that people type: its random end.
fn tail(id: &str) -> &str {
    &id[id.len().saturating_sub(ID_TAIL)..]
}
