//! Copies the database, so that the copy can replace a lost one.

use std::fs::File;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};
use serde_json::Value;

use crate::chain::last_link;
use crate::chain::link_at;
use crate::database::FILE;
use crate::entry::Entry;
use crate::error::Error;
use crate::head::HEAD;
use crate::head::read_head;
use crate::head::write_head;
use crate::open::Store;
use crate::schema::MIGRATIONS;
use crate::schema::version;
use crate::sql::connect;
use crate::sql::read_only;
use crate::verify::Verified;
use weighlock_api::State;

/// The oldest schema that copies were made of.
const FIRST: usize = 6;

/// What a copy of the database holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Entries of the audit.
    pub entries: u64,
    /// The hash of the last of them.
    pub head: String,
    /// Runs that have output, or are under way, oldest first.
    pub runs: Vec<CopiedRun>,
    /// Runs whose changes can be undone.
    pub undo: Vec<String>,
    /// Runs whose changes nobody has decided about.
    pub held: u64,
}

/// A run of which there are files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedRun {
    /// Its id.
    pub id: String,
    /// It is under way.
    pub open: bool,
    /// It was tried, and may begin anew: then its files are thrown away.
    pub waiting: bool,
}

/// Work that was unfinished when a copy was made; a restored copy settles it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Runs that were under way.
    pub running: u64,
    /// Runs that waited, for an answer or for work to go on.
    pub waiting: u64,
    /// Changes that nobody had decided about.
    pub held: u64,
}

impl Store {
    /// Copies the database as it is now into a directory, with the head of its
    /// audit. Writers are not blocked meanwhile.
    pub fn copy_to(&self, dir: &Path) -> Result<Copied, Error> {
        // Read first: the copy must have the entry that it names.
        let head = read_head(&self.database.writer.dir.join(HEAD))?;
        let to = dir.join(FILE);
        let reader = self.database.another_reader()?;
        // One read transaction; what was deleted does not come along.
        reader.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
        let copy = connect(&to, OpenFlags::default())?;
        let last = last_link(&copy)?;
        if let Some(head) = head.filter(|head| head.seq > 0)
            && link_at(&copy, head.seq)?.as_ref() != Some(&head)
        {
            return Err(Error::Corrupt {
                path: self.database.path.clone(),
                what: format!("audit entry {} is not the one that {HEAD} names", head.seq),
            });
        }
        let last = last.ok_or_else(|| Error::Missing {
            path: self.database.path.clone(),
        })?;
        write_head(&dir.join(HEAD), &last)?;
        let copied = Copied {
            entries: last.seq,
            head: last.hash,
            runs: runs(&copy)?,
            undo: names(&copy, "SELECT command_id FROM changes WHERE bytes > 0")?,
            held: count(&copy, "SELECT count(*) FROM changes WHERE state = 'held'")?,
        };
        copy.close().map_err(|(_, error)| Error::from(error))?;
        let synced = File::open(&to).and_then(|file| file.sync_all());
        synced.map_err(|source| Error::File { path: to, source })?;
        Ok(copied)
    }

    /// Checks a copy that nobody uses: the whole database, and its audit from
    /// the first entry to the one that its head names.
    pub fn check_copy(dir: &Path) -> Result<Verified, Error> {
        let path = dir.join(FILE);
        if !path.exists() {
            return Err(Error::Missing { path });
        }
        let reader = connect(&path, read_only())?;
        let corrupt = |what: String| Error::Corrupt {
            path: path.clone(),
            what,
        };
        match version(&reader).map_err(|error| error.at(&path))? {
            found if found > MIGRATIONS.len() => return Err(Error::Newer { path }),
            found if found < FIRST => return Err(corrupt("it has no tables of ours".into())),
            _ => {}
        }
        let answer = reader.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
        let answer: String = answer.map_err(|error| Error::from(error).at(&path))?;
        if answer != "ok" {
            return Err(corrupt(answer));
        }
        Self::of_reader(dir, reader).audit().verify()
    }

    /// Settles what a copy has unfinished, now that it takes the place of the
    /// original. Nobody knows here what has become of it since: nothing is run
    /// again, nothing is asked again, and nobody stays signed in. `because` is
    /// told with each run.
    pub async fn settle_copy(
        &self,
        now: i64,
        because: Value,
        tell: impl FnOnce(Unfinished) -> Entry + Send + 'static,
    ) -> Result<Unfinished, Error> {
        self.database
            .writer
            .write(move |to| {
                let unfinished = Unfinished {
                    running: end(to, State::Lost, RUNNING, now, &because)?,
                    waiting: end(to, State::Withdrawn, WAITING, now, &because)?,
                    held: discard(to, now)?,
                };
                to.execute(
                    "UPDATE approvals SET state = 'withdrawn', decided_at = ?1, \
                     decided_by = 'weighlock', version = version + 1 WHERE state = 'pending'",
                    [now],
                )?;
                to.execute_batch(
                    "DELETE FROM pending_requests; DELETE FROM logins; \
                     UPDATE outbox SET state = 'dropped' WHERE state = 'due';",
                )?;
                Ok((unfinished, vec![tell(unfinished)]))
            })
            .await
    }
}

const RUNNING: &str = "open = 1 OR state = 'running'";
const WAITING: &str = "state IN ('waiting', 'held')";

fn end(
    to: &Connection,
    state: State,
    which: &str,
    now: i64,
    because: &Value,
) -> Result<u64, Error> {
    let sql = format!(
        "UPDATE terminal_commands SET state = ?1, status = ?2, open = 0, updated_at = ?3, \
         ended_at = coalesce(ended_at, ?3), \
         detail = json_set(detail, '$.reason', json(?4)) WHERE {which}"
    );
    let ended = to.execute(
        &sql,
        params![
            state.word(),
            state.status().word(),
            now,
            because.to_string()
        ],
    )?;
    Ok(ended as u64)
}

/// The copies that held changes are on stay behind.
fn discard(to: &Connection, now: i64) -> Result<u64, Error> {
    to.execute(
        "UPDATE terminal_commands SET \
         detail = json_set(detail, '$.changes.state', 'discarded') \
         WHERE command_id IN (SELECT command_id FROM changes WHERE state = 'held')",
        [],
    )?;
    let discarded = to.execute(
        "UPDATE changes SET state = 'discarded', updated_at = ?1, \
         body = json_set(body, '$.state', 'discarded') WHERE state = 'held'",
        [now],
    )?;
    Ok(discarded as u64)
}

fn runs(from: &Connection) -> Result<Vec<CopiedRun>, Error> {
    let mut query = from.prepare(
        "SELECT command_id, open, state = 'waiting' FROM terminal_commands \
         WHERE kept_bytes > 0 OR open = 1 ORDER BY command_id",
    )?;
    let rows = query.query_map([], |row| {
        Ok(CopiedRun {
            id: row.get(0)?,
            open: row.get(1)?,
            waiting: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn names(from: &Connection, sql: &str) -> Result<Vec<String>, Error> {
    let mut query = from.prepare(sql)?;
    let rows = query.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn count(from: &Connection, sql: &str) -> Result<u64, Error> {
    Ok(from.query_row(sql, [], |row| row.get(0))?)
}
