//! The chain of entries: each carries the hash of the one before.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use crate::entry::{BoundRow, Entry, EntryBody, Recorded, hash};
use crate::error::Error;

/// What the first entry names as the one before.
pub(crate) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// An entry's number and hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) seq: u64,
    pub(crate) hash: String,
}

impl Link {
    /// What comes before the first entry.
    pub(crate) fn none() -> Self {
        Self {
            seq: 0,
            hash: GENESIS.into(),
        }
    }
}

/// The end of the chain, to which the next entry is tied.
#[derive(Clone)]
pub(crate) struct Chain(pub(crate) Link);

impl Chain {
    pub(crate) fn append(
        &mut self,
        to: &Connection,
        entry: Entry,
        rows: Vec<BoundRow>,
    ) -> Result<Recorded, Error> {
        let time = Timestamp::from_microsecond(entry.time).unwrap_or(Timestamp::UNIX_EPOCH);
        let body = EntryBody {
            seq: self.0.seq + 1,
            time: time.to_string(),
            kind: entry.kind.to_owned(),
            actor: entry.actor,
            run: entry.run,
            sandbox: entry.sandbox,
            owner: entry.owner,
            detail: entry.detail,
            rows,
            prev: self.0.hash.clone(),
        };
        let text = serde_json::to_string(&body).expect("an entry is always JSON");
        let hash = hash(text.as_bytes());
        to.prepare_cached(
            "INSERT INTO audit (seq, run, kind, body, hash, time, actor, sandbox, owner) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            body.seq,
            body.run,
            body.kind,
            text,
            hash,
            time.as_microsecond(),
            body.actor,
            body.sandbox,
            body.owner,
        ])?;
        self.0 = Link {
            seq: body.seq,
            hash,
        };
        Ok(body.into())
    }
}

pub(crate) fn last_link(from: &Connection) -> Result<Option<Link>, Error> {
    let seq: Option<u64> = from.query_row("SELECT max(seq) FROM audit", [], |row| row.get(0))?;
    seq.map_or(Ok(None), |seq| link_at(from, seq))
}

pub(crate) fn link_at(from: &Connection, seq: u64) -> Result<Option<Link>, Error> {
    let hash = from
        .query_row("SELECT hash FROM audit WHERE seq = ?1", [seq], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(hash.map(|hash| Link { seq, hash }))
}

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The number of the entry.
    pub seq: u64,
    /// What is wrong with it, or with the row.
    pub what: String,
    /// The entries are right, and this row is not what they say: its table and
    /// its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
}

/// The kind of the entry that tells of a removal.
pub(crate) const CHECKPOINT: &str = "audit.checkpoint";

/// The oldest part of the record, which was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The entries up to this one are gone.
    pub removed_to: u64,
    /// The hash of that entry, which the next one names as the one before.
    pub hash: String,
    /// When it was recorded.
    pub newest: String,
    /// How many entries were removed with this checkpoint.
    pub entries: u64,
    /// How many commands went with them.
    pub commands: u64,
    /// Why.
    pub reason: String,
    /// When they were removed.
    #[serde(default)]
    pub time: String,
}

impl Checkpoint {
    /// Says what is not there any more.
    pub fn told(&self) -> String {
        let day = self.time.split('T').next().unwrap_or_default();
        let (last, why) = (self.removed_to, &self.reason);
        format!("entries 1 to {last} were removed on {day} by {why}")
    }
}
