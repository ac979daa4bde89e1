//! Entries of the audit, and how they are written.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

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

/// A row as an entry ties it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BoundRow {
    pub(crate) table: String,
    /// The values of its key, one or two.
    pub(crate) key: Vec<String>,
    /// Absent once the row was deleted.
    pub(crate) hash: Option<String>,
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

pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns bytes as lower-case hexadecimal, as the audit writes its hashes.
pub fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
