//! Whether the audit is still what was written.

use std::io::{self, BufRead};

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::audit::AuditLog;
use crate::bound::{self, BoundRows};
use crate::chain::GENESIS;
use crate::chain::Link;
use crate::chain::{CHECKPOINT, Checkpoint, Fault};
use crate::entry::EntryBody;
use crate::entry::hash;
use crate::error::Error;
use crate::head::HEAD;
use crate::head::read_head;
use crate::schema::version;
use crate::sql::all;

/// How many entries are read at a time.
const PAGE: i64 = 1000;

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// The number of the last entry up to which all are right.
    pub entries: u64,
    /// The hash of the last of them.
    pub head: String,
    /// The oldest entries, where retention has removed them.
    pub removed: Option<Checkpoint>,
    /// What is wrong with the next one.
    pub fault: Option<Fault>,
}

/// One line of an export.
#[derive(Serialize, Deserialize)]
struct Exported {
    hash: String,
    entry: Box<RawValue>,
}

/// The last line of an export.
#[derive(Serialize, Deserialize)]
struct ExportedHead {
    head: Link,
}

impl AuditLog<'_> {
    /// Checks the whole chain, and its end against the head file.
    pub fn verify(self) -> Result<Verified, Error> {
        // Read first: the chain may grow while it is checked, the head file
        // names an entry that must be there by then.
        let head = read_head(&self.database.writer.dir.join(HEAD))?;
        let reader = self.database.another_reader()?;
        // One look at everything: a row that is written meanwhile must not
        // differ from an entry that was read before, nor may the beginning go.
        let reader = reader.unchecked_transaction()?;
        let mut check = ChainCheck::default();
        each_entry(&reader, |row| {
            check.row(row);
            check.fault.is_none()
        })?;
        if head.is_none() && check.entries > 0 {
            check.fail(
                check.entries + 1,
                "nobody knows: the file audit.head is missing",
            );
        }
        check.end(head.as_ref());
        check.rows(&reader)?;
        Ok(check.into())
    }

    /// Returns which of these commands differ from what the audit says of them.
    /// Entries about the command itself are looked at, and not the whole chain:
    /// that is what [`AuditLog::verify`] does.
    pub fn altered(self, commands: &[&str]) -> Result<Vec<String>, Error> {
        let reader = self.database.lock_reader();
        // One look at both: what is written in between is no difference.
        bound::altered(commands, &*reader.unchecked_transaction()?)
    }

    /// Writes the whole chain as JSON Lines.
    pub fn export(self, to: &mut impl io::Write) -> Result<u64, Error> {
        let (mut last, mut count) = (None, 0);
        let mut written = Ok(());
        // On a connection of its own, and with nothing held meanwhile: whoever
        // takes the entries may take long.
        each_entry(
            &self.database.another_reader()?,
            |StoredEntry {
                 seq, body, hash, ..
             }| {
                written = writeln!(to, r#"{{"hash":"{hash}","entry":{body}}}"#);
                count += 1;
                last = Some(Link {
                    seq: *seq,
                    hash: hash.clone(),
                });
                written.is_ok()
            },
        )?;
        if let Some(head) = last {
            let line = serde_json::to_string(&ExportedHead { head }).expect("always JSON");
            written = written.and_then(|()| writeln!(to, "{line}"));
        }
        written.map_err(|source| Error::File {
            path: "the export".into(),
            source,
        })?;
        Ok(count)
    }
}

/// Calls `each` with every entry until it returns false.
fn each_entry(
    reader: &Connection,
    mut each: impl FnMut(&StoredEntry) -> bool,
) -> Result<(), Error> {
    let mut after = 0;
    loop {
        let page = page(reader, after)?;
        let (Some(first), Some(last)) = (page.first(), page.last()) else {
            return Ok(());
        };
        if after > 0 && first.seq > after + 1 && first_seq(reader)? > after + 1 {
            return Err(Error::Removed);
        }
        after = last.seq;
        if !page.iter().all(&mut each) {
            return Ok(());
        }
    }
}

fn first_seq(reader: &Connection) -> Result<u64, Error> {
    let sql = "SELECT coalesce(min(seq), 0) FROM audit";
    Ok(reader.query_row(sql, [], |row| row.get(0))?)
}

/// An entry as it is stored.
pub(crate) struct StoredEntry {
    pub(crate) seq: u64,
    run: Option<String>,
    kind: String,
    body: String,
    hash: String,
    time: Option<i64>,
    actor: Option<String>,
    sandbox: Option<String>,
    owner: Option<String>,
}

impl StoredEntry {
    pub(crate) fn is_before(&self, time: i64) -> bool {
        self.time.is_some_and(|at| at < time)
    }

    /// Returns whether the columns that help to find an entry say what it
    /// says.
    fn is_filed_as(&self, body: &EntryBody) -> bool {
        self.kind == body.kind
            && self.run == body.run
            && self.time == body.micros()
            && self.actor.as_ref() == Some(&body.actor)
            && self.sandbox == body.sandbox
            && self.owner == body.owner
    }
}

pub(crate) fn page(reader: &Connection, after: u64) -> Result<Vec<StoredEntry>, Error> {
    let sql = "SELECT seq, run, kind, body, hash, time, actor, sandbox, owner FROM audit \
               WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    all(reader, sql, params![after, PAGE], |row| {
        Ok(StoredEntry {
            seq: row.get(0)?,
            run: row.get(1)?,
            kind: row.get(2)?,
            body: row.get(3)?,
            hash: row.get(4)?,
            time: row.get(5)?,
            actor: row.get(6)?,
            sandbox: row.get(7)?,
            owner: row.get(8)?,
        })
    })
}

/// Checks an export, without any database.
pub fn verify_export(from: impl BufRead) -> io::Result<Verified> {
    let mut check = ChainCheck::default();
    let mut head = None;
    for line in from.lines() {
        let line = line?;
        let next = check.entries + 1;
        // An export may begin after what was removed.
        let first =
            |entry: &RawValue| serde_json::from_str::<EntryBody>(entry.get()).map(|body| body.seq);
        if head.is_some() {
            check.fail(next, "there is something after the last line");
        } else if let Ok(line) = serde_json::from_str::<Exported>(&line) {
            let seq = match check.entries {
                0 => first(&line.entry).unwrap_or(next),
                _ => next,
            };
            check.entry(seq, line.entry.get(), &line.hash);
        } else if let Ok(line) = serde_json::from_str::<ExportedHead>(&line) {
            head = Some(line.head);
        } else {
            check.fail(next, "the line is not an entry");
        }
        if check.fault.is_some() {
            return Ok(check.into());
        }
    }
    match head {
        Some(head) => check.end(Some(&head)),
        // Also of an empty file: a store has at least its server's start.
        None => check.fail(
            check.entries + 1,
            "the export is cut off: its last line is missing",
        ),
    }
    Ok(check.into())
}

/// A verification on its way.
pub(crate) struct ChainCheck {
    entries: u64,
    prev: String,
    /// The last entry that is not there, before the first that is.
    gone: Link,
    /// The last removal that an entry tells of.
    removed: Option<Checkpoint>,
    /// When the last entry was recorded.
    newest: String,
    /// The entries whose hash the end is compared with.
    links: Vec<Link>,
    bound: BoundRows,
    fault: Option<Fault>,
}

impl Default for ChainCheck {
    fn default() -> Self {
        Self {
            entries: 0,
            prev: GENESIS.into(),
            gone: Link::none(),
            removed: None,
            newest: String::new(),
            links: vec![],
            bound: BoundRows::default(),
            fault: None,
        }
    }
}

impl ChainCheck {
    pub(crate) fn row(&mut self, row: &StoredEntry) {
        self.entry(row.seq, &row.body, &row.hash);
        self.columns(row);
    }

    /// Returns the last entry, if all are right and there is one.
    pub(crate) fn into_link(self) -> Option<Link> {
        let right = self.fault.is_none() && self.entries > self.gone.seq;
        right.then_some(Link {
            seq: self.entries,
            hash: self.prev,
        })
    }

    /// Returns the last entry that is not there, before the first that is.
    pub(crate) fn gone(&self) -> &Link {
        &self.gone
    }

    /// Returns what the entries so far say of rows.
    pub(crate) fn take_rows(&mut self) -> BoundRows {
        std::mem::take(&mut self.bound)
    }

    /// Returns when the last entry was recorded.
    pub(crate) fn newest(&self) -> &str {
        &self.newest
    }

    fn entry(&mut self, seq: u64, body: &str, stored: &str) {
        let Ok(parsed) = serde_json::from_str::<EntryBody>(body) else {
            return self.fail(self.entries + 1, "it is not an entry");
        };
        if self.entries == 0 && seq == parsed.seq && seq > 1 {
            // Whether retention has removed the ones before, a checkpoint must
            // say.
            self.gone = Link {
                seq: seq - 1,
                hash: parsed.prev.clone(),
            };
            (self.entries, self.prev) = (seq - 1, parsed.prev.clone());
        }
        let next = self.entries + 1;
        if seq != next || parsed.seq != next {
            return self.fail(
                next,
                &format!("it is missing; entry {} stands there", parsed.seq),
            );
        }
        if parsed.prev != self.prev {
            return self.fail(next, "it does not follow on the entry before");
        }
        if hash(body.as_bytes()) != stored {
            return self.fail(next, "its content was changed");
        }
        if let Some(what) = self.bound.add(next, &parsed.kind, parsed.rows) {
            return self.fail(next, &what);
        }
        self.entries = next;
        stored.clone_into(&mut self.prev);
        if parsed.kind == CHECKPOINT {
            let told = serde_json::from_value::<Checkpoint>(parsed.detail).ok();
            self.removed = told.map(|told| Checkpoint {
                time: parsed.time.clone(),
                ..told
            });
        }
        self.newest = parsed.time;
        // The head is at most a crash behind; the newest few are enough.
        self.links.push(Link {
            seq: next,
            hash: stored.to_owned(),
        });
        if self.links.len() > 2 * PAGE as usize {
            self.links.drain(..PAGE as usize);
        }
    }

    fn columns(&mut self, row: &StoredEntry) {
        if self.fault.is_some() {
            return;
        }
        let filed = serde_json::from_str(&row.body).is_ok_and(|body| row.is_filed_as(&body));
        if !filed {
            self.entries = row.seq - 1;
            self.fail(row.seq, "it is filed under what it does not say");
        }
    }

    /// What is missing at the beginning must be what the last checkpoint tells.
    fn beginning(&mut self) {
        let told = self
            .removed
            .as_ref()
            .map(|told| (told.removed_to, &told.hash));
        let gone = Some((self.gone.seq, &self.gone.hash)).filter(|_| self.gone.seq > 0);
        if self.fault.is_none() && told != gone {
            let what = match told {
                None => format!("it is missing; entry {} stands there", self.gone.seq + 1),
                Some((last, _)) => format!(
                    "the record begins with entry {}, and not after entry {last} as its \
                     checkpoint says",
                    self.gone.seq + 1
                ),
            };
            self.entries = 0;
            self.fail(1, &what);
        }
    }

    fn end(&mut self, head: Option<&Link>) {
        self.beginning();
        let Some(head) = head.filter(|head| head.seq > 0) else {
            return;
        };
        if self.fault.is_some() {
            return;
        }
        if head.seq > self.entries {
            let what = format!("the end is cut off: there were {} entries", head.seq);
            self.fail(self.entries + 1, &what);
        } else if self
            .links
            .iter()
            .any(|link| link.seq == head.seq && link.hash != head.hash)
        {
            self.fail(head.seq, "it is not the one that was written");
        }
    }

    /// Compares the rows of the tables with what the entries say of them.
    fn rows(&mut self, reader: &Connection) -> Result<(), Error> {
        let bound = self.take_rows();
        // A copy of an older database has rows that no entry knows.
        let tied = version(reader)? >= bound::SINCE || !bound.is_empty();
        if self.fault.is_none() && tied {
            self.fault = bound.compare(reader, self.entries)?;
        }
        Ok(())
    }

    fn fail(&mut self, seq: u64, what: &str) {
        self.fault.get_or_insert_with(|| Fault {
            seq,
            what: what.to_owned(),
            row: None,
        });
    }
}

impl From<ChainCheck> for Verified {
    fn from(check: ChainCheck) -> Self {
        Self {
            entries: check.entries,
            head: check.prev,
            removed: check.removed.filter(|_| check.fault.is_none()),
            fault: check.fault,
        }
    }
}
