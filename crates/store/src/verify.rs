//! Whether the audit is still what was written.

use std::io::{self, BufRead};

use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::audit::{Body, GENESIS, hash};
use crate::head::{HEAD, Link, read_head};
use crate::open::{Error, Store, all};

/// How many entries are read at a time.
const PAGE: i64 = 1000;

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Entries that are right, counted from the first.
    pub entries: u64,
    /// The hash of the last of them.
    pub head: String,
    /// What is wrong with the next one.
    pub fault: Option<Fault>,
}

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The number of the entry.
    pub seq: u64,
    /// What is wrong with it.
    pub what: String,
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

impl Store {
    /// Checks the whole chain, and its end against the head file.
    pub fn verify(&self) -> Result<Verified, Error> {
        // Read first: the chain may grow while it is checked, the head file
        // names an entry that must be there by then.
        let head = read_head(&self.writer.dir.join(HEAD))?;
        let mut check = Check::default();
        self.each_entry(|row| {
            check.entry(row.seq, &row.body, &row.hash);
            check.columns(row);
            check.fault.is_none()
        })?;
        if head.is_none() && check.entries > 0 {
            check.fail(
                check.entries + 1,
                "nobody knows: the file audit.head is missing",
            );
        }
        check.end(head.as_ref());
        Ok(check.into())
    }

    /// Writes the whole chain as JSON Lines.
    pub fn export(&self, to: &mut impl io::Write) -> Result<u64, Error> {
        let mut last = None;
        let mut written = Ok(());
        self.each_entry(
            |Row {
                 seq, body, hash, ..
             }| {
                written = writeln!(to, r#"{{"hash":"{hash}","entry":{body}}}"#);
                last = Some(Link {
                    seq: *seq,
                    hash: hash.clone(),
                });
                written.is_ok()
            },
        )?;
        let count = last.as_ref().map_or(0, |link| link.seq);
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

    /// Calls `each` with every entry until it returns false. On a connection
    /// of its own, and with nothing held meanwhile: whoever takes the entries
    /// may take all the time in the world.
    fn each_entry(&self, mut each: impl FnMut(&Row) -> bool) -> Result<(), Error> {
        let reader = self.another_reader()?;
        let mut after = 0;
        loop {
            let page = page(&reader, after)?;
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = last.seq;
            if !page.iter().all(&mut each) {
                return Ok(());
            }
        }
    }
}

/// An entry as it is stored.
struct Row {
    seq: u64,
    run: Option<String>,
    kind: String,
    body: String,
    hash: String,
    time: Option<i64>,
    actor: Option<String>,
    sandbox: Option<String>,
    owner: Option<String>,
}

impl Row {
    /// Returns whether the columns that help to find an entry say what it
    /// says.
    fn is_filed_as(&self, body: &Body) -> bool {
        self.kind == body.kind
            && self.run == body.run
            && self.time == body.micros()
            && self.actor.as_ref() == Some(&body.actor)
            && self.sandbox == body.sandbox
            && self.owner == body.owner
    }
}

fn page(reader: &Connection, after: u64) -> Result<Vec<Row>, Error> {
    let sql = "SELECT seq, run, kind, body, hash, time, actor, sandbox, owner FROM audit \
               WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    all(reader, sql, params![after, PAGE], |row| {
        Ok(Row {
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
    let mut check = Check::default();
    let mut head = None;
    for line in from.lines() {
        let line = line?;
        let next = check.entries + 1;
        if head.is_some() {
            check.fail(next, "there is something after the last line");
        } else if let Ok(line) = serde_json::from_str::<Exported>(&line) {
            check.entry(next, line.entry.get(), &line.hash);
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
struct Check {
    entries: u64,
    prev: String,
    /// The entries whose hash the end is compared with.
    links: Vec<Link>,
    fault: Option<Fault>,
}

impl Default for Check {
    fn default() -> Self {
        Self {
            entries: 0,
            prev: GENESIS.into(),
            links: vec![],
            fault: None,
        }
    }
}

impl Check {
    fn entry(&mut self, seq: u64, body: &str, stored: &str) {
        let next = self.entries + 1;
        let Ok(parsed) = serde_json::from_str::<Body>(body) else {
            return self.fail(next, "it is not an entry");
        };
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
        self.entries = next;
        stored.clone_into(&mut self.prev);
        // The head is at most a crash behind; the newest few are enough.
        self.links.push(Link {
            seq: next,
            hash: stored.to_owned(),
        });
        if self.links.len() > 2 * PAGE as usize {
            self.links.drain(..PAGE as usize);
        }
    }

    fn columns(&mut self, row: &Row) {
        if self.fault.is_some() {
            return;
        }
        let filed = serde_json::from_str(&row.body).is_ok_and(|body| row.is_filed_as(&body));
        if !filed {
            self.entries = row.seq - 1;
            self.fail(row.seq, "it is filed under what it does not say");
        }
    }

    fn end(&mut self, head: Option<&Link>) {
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

    fn fail(&mut self, seq: u64, what: &str) {
        self.fault.get_or_insert_with(|| Fault {
            seq,
            what: what.to_owned(),
        });
    }
}

impl From<Check> for Verified {
    fn from(check: Check) -> Self {
        Self {
            entries: check.entries,
            head: check.prev,
            fault: check.fault,
        }
    }
}
