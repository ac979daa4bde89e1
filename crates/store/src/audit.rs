//! The record that shows when it was tampered with.
//!
//! Each entry carries the hash of the one before. The newest hash is also kept
//! in a file of its own, so that cutting off the end is noticed too.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::open::{Error, Store};

/// The name of the file with the newest hash.
const HEAD: &str = "audit.head";

/// What the first entry names as the one before.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// How many entries are read at a time.
const PAGE: i64 = 1000;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Microseconds since 1970.
    pub time: i64,
    /// What happened, as a stable word.
    pub kind: &'static str,
    /// Who did it.
    pub actor: String,
    /// The run it is about.
    pub run: Option<String>,
    /// Everything else.
    pub detail: serde_json::Value,
}

/// The hashed form of an entry. The order of the fields is part of the format.
#[derive(Serialize, Deserialize)]
struct Body {
    seq: u64,
    time: String,
    kind: String,
    actor: String,
    run: Option<String>,
    detail: serde_json::Value,
    prev: String,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Link {
    seq: u64,
    hash: String,
}

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

/// The end of the chain, to which the next entry is tied.
#[derive(Clone)]
pub(crate) struct Chain(Link);

impl Chain {
    pub(crate) fn append(&mut self, to: &Connection, entry: Entry) -> Result<(), Error> {
        let body = Body {
            seq: self.0.seq + 1,
            time: time(entry.time),
            kind: entry.kind.to_owned(),
            actor: entry.actor,
            run: entry.run,
            detail: entry.detail,
            prev: self.0.hash.clone(),
        };
        let text = serde_json::to_string(&body).expect("an entry is always JSON");
        let hash = hash(text.as_bytes());
        to.prepare_cached(
            "INSERT INTO audit (seq, run, kind, body, hash) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![body.seq, body.run, body.kind, text, hash])?;
        self.0 = Link {
            seq: body.seq,
            hash,
        };
        Ok(())
    }
}

/// The file beside the database that remembers the end of the chain.
pub(crate) struct Head {
    path: PathBuf,
    file: Option<File>,
    link: Link,
}

impl Head {
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(HEAD);
        let link = read_head(&path)?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|source| Error::File {
                path: path.clone(),
                source,
            })?;
        Ok(Self {
            path,
            file: Some(file),
            link: link.unwrap_or(Link {
                seq: 0,
                hash: GENESIS.into(),
            }),
        })
    }

    pub(crate) fn seq(&self) -> u64 {
        self.link.seq
    }

    pub(crate) fn chain(&self) -> Chain {
        Chain(self.link.clone())
    }

    /// Remembers a new end. The file may be behind the database after a crash,
    /// never ahead of it.
    pub(crate) fn advance(&mut self, chain: Chain) {
        self.link = chain.0;
        if let Some(file) = &self.file {
            // Fixed width, so that it is overwritten in place and a full disk
            // does not matter.
            let line = format!("{:020} {}\n", self.link.seq, self.link.hash);
            let _ = file.write_all_at(line.as_bytes(), 0);
        }
    }

    /// Checks that the database has the entry that the file names, and takes
    /// the database's end where the file is behind.
    pub(crate) fn agrees(mut self, with: &Connection, path: &Path) -> Result<Self, Error> {
        if self.link.seq > 0 && link_at(with, self.link.seq)?.as_ref() != Some(&self.link) {
            return Err(Error::Corrupt {
                path: path.to_owned(),
                what: format!(
                    "audit entry {} is not the one that {} names",
                    self.link.seq,
                    self.path.display()
                ),
            });
        }
        if let Some(last) = last_link(with)? {
            self.advance(Chain(last));
        }
        Ok(self)
    }

    pub(crate) fn set_aside(dir: &Path, stamp: &str) -> Result<(), Error> {
        let path = dir.join(HEAD);
        let to = dir.join(format!("{HEAD}.broken-{stamp}"));
        match std::fs::rename(&path, to) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(Error::File { path, source })
            }
            _ => Ok(()),
        }
    }
}

impl Store {
    /// Appends entries that stand for themselves.
    pub async fn record(&self, entries: Vec<Entry>) -> Result<(), Error> {
        self.writer.write(entries, |_| Ok(())).await
    }

    /// Checks the whole chain, and its end against the head file.
    pub fn verify(&self) -> Result<Verified, Error> {
        // Read first: the chain may grow while it is checked, the head file
        // names an entry that must be there by then.
        let head = read_head(&self.writer.dir.join(HEAD))?;
        let mut check = Check::default();
        self.each_entry(|row| {
            check.entry(row.seq, &row.body, &row.hash);
            check.columns(row.seq, row.run.as_deref(), &row.kind, &row.body);
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

    /// Returns the entries of one run, oldest first, as JSON.
    pub fn entries_of(&self, run: &str) -> Result<Vec<serde_json::Value>, Error> {
        let reader = self.lock_reader();
        let mut query =
            reader.prepare_cached("SELECT body FROM audit WHERE run = ?1 ORDER BY seq")?;
        let rows = query.query_map([run], |row| row.get::<_, String>(0))?;
        let mut found = vec![];
        for row in rows {
            found.extend(serde_json::from_str(&row?));
        }
        Ok(found)
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
}

fn page(reader: &Connection, after: u64) -> Result<Vec<Row>, Error> {
    let mut query = reader.prepare_cached(
        "SELECT seq, run, kind, body, hash FROM audit WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let rows = query.query_map(params![after, PAGE], |row| {
        Ok(Row {
            seq: row.get(0)?,
            run: row.get(1)?,
            kind: row.get(2)?,
            body: row.get(3)?,
            hash: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
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

    /// The columns that help to find an entry must say what it says.
    fn columns(&mut self, seq: u64, run: Option<&str>, kind: &str, body: &str) {
        if self.fault.is_some() {
            return;
        }
        let same = serde_json::from_str::<Body>(body)
            .is_ok_and(|body| body.run.as_deref() == run && body.kind == kind);
        if !same {
            self.entries = seq - 1;
            self.fail(seq, "it is filed under another run or kind");
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

fn last_link(from: &Connection) -> Result<Option<Link>, Error> {
    let seq: Option<u64> = from.query_row("SELECT max(seq) FROM audit", [], |row| row.get(0))?;
    seq.map_or(Ok(None), |seq| link_at(from, seq))
}

fn link_at(from: &Connection, seq: u64) -> Result<Option<Link>, Error> {
    let hash = from
        .query_row("SELECT hash FROM audit WHERE seq = ?1", [seq], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(hash.map(|hash| Link { seq, hash }))
}

fn read_head(path: &Path) -> Result<Option<Link>, Error> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|source| Error::File {
            path: path.to_owned(),
            source,
        })?,
    };
    let Some((seq, hash)) = text.trim_end().split_once(' ') else {
        return Ok(None);
    };
    Ok(seq.parse().ok().map(|seq| Link {
        seq,
        hash: hash.to_owned(),
    }))
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn time(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(micros)
        .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
        .to_string()
}
