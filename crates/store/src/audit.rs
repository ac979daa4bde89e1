//! The record that shows when it was tampered with.
//!
//! Each entry carries the hash of the one before. The newest hash is also kept
//! in a file of its own, so that cutting off the end is noticed too.

use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::broadcast;

use crate::bound::BoundRow;
use crate::head::Link;
use crate::open::{Error, Store};

/// What the first entry names as the one before.
pub(crate) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Something that happened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// Microseconds since 1970.
    pub time: i64,
    /// What happened, as a stable word.
    pub kind: &'static str,
    /// Who did it.
    pub actor: String,
    /// The run it is about.
    pub run: Option<String>,
    /// The sandbox it is about.
    pub sandbox: Option<String>,
    /// Whose run or thing it is about, which decides who may see it.
    pub owner: Option<String>,
    /// Everything else.
    pub detail: Value,
}

/// An entry as it was appended.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its number in the chain, from one.
    pub seq: u64,
    /// See [`Entry`].
    pub time: i64,
    /// See [`Entry`].
    pub kind: String,
    /// See [`Entry`].
    pub actor: String,
    /// See [`Entry`].
    pub run: Option<String>,
    /// See [`Entry`].
    pub sandbox: Option<String>,
    /// See [`Entry`].
    pub owner: Option<String>,
    /// See [`Entry`].
    pub detail: Value,
}

/// The hashed form of an entry. The order of the fields is part of the format,
/// and what came later is left out when empty: old bodies stay as they are.
#[derive(Serialize, Deserialize)]
pub(crate) struct EntryBody {
    pub(crate) seq: u64,
    pub(crate) time: String,
    pub(crate) kind: String,
    pub(crate) actor: String,
    pub(crate) run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    pub(crate) detail: Value,
    /// The rows that were written with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) rows: Vec<BoundRow>,
    pub(crate) prev: String,
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

impl EntryBody {
    /// Returns the time as the columns have it.
    pub(crate) fn micros(&self) -> Option<i64> {
        Some(self.time.parse::<Timestamp>().ok()?.as_microsecond())
    }
}

impl From<EntryBody> for Recorded {
    fn from(body: EntryBody) -> Self {
        Self {
            seq: body.seq,
            time: body.micros().unwrap_or_default(),
            kind: body.kind,
            actor: body.actor,
            run: body.run,
            sandbox: body.sandbox,
            owner: body.owner,
            detail: body.detail,
        }
    }
}

impl Store {
    /// Appends entries that stand for themselves.
    pub async fn record(&self, entries: Vec<Entry>) -> Result<(), Error> {
        self.writer.write(|_| Ok(((), entries))).await
    }

    /// Subscribes to every entry from now on, in order, once it is committed. A
    /// receiver that is more than a thousand entries behind gets
    /// [`Lagged`](broadcast::error::RecvError::Lagged), and reads the rest with
    /// [`Store::recorded_after`].
    pub fn events(&self) -> broadcast::Receiver<Arc<Recorded>> {
        self.writer.events.subscribe()
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns bytes as lower-case hexadecimal, as the audit writes its hashes.
pub fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
