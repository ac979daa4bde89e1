//! Ties rows to the audit's chain, so that a row that was edited is noticed.
//!
//! Whatever a write does to a row of these tables, the same transaction appends
//! the hash of the row to the chain. Triggers of the writing connection find the
//! rows, so that no caller can forget one. They are temporary: an edit through
//! another program fires none, and leaves a row that differs from its hash.

use std::collections::HashMap;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};
use sha2::{Digest, Sha256};

use crate::chain::Chain;
use crate::chain::Fault;
use crate::entry::BoundRow;
use crate::entry::Entry;
use crate::entry::EntryBody;
use crate::entry::Recorded;
use crate::entry::hex;
use crate::error::Error;
use crate::sql::all;

/// A table whose rows are tied to the chain.
struct BoundTable {
    name: &'static str,
    /// What names a row: one column or two.
    key: &'static [&'static str],
    /// All columns that are hashed. A column that is empty adds nothing, so that
    /// one that a later schema adds leaves the hashes of older rows as they are.
    columns: &'static [&'static str],
}

/// Everything that says what was asked, run, changed and decided, and who may
/// decide. Only bookkeeping that changes without an event is left out.
const TABLES: &[BoundTable] = &[
    BoundTable {
        name: "terminal_commands",
        key: &["command_id"],
        columns: &[
            "command_id",
            "tail",
            "session_id",
            "command",
            "cwd",
            "status",
            "state",
            "exit_code",
            "signal",
            "requested_by",
            "approved_by",
            "created_at",
            "updated_at",
            "started_at",
            "ended_at",
            "open",
            "kept_bytes",
            "detail",
            "sandbox_id",
            "approval_id",
            "external",
        ],
    },
    BoundTable {
        name: "approvals",
        key: &["approval_id"],
        columns: &[
            "approval_id",
            "tail",
            "state",
            "fingerprint",
            "requested_by",
            "sandbox_id",
            "rank",
            "version",
            "created_at",
            "expires_at",
            "decided_at",
            "decided_by",
            "count",
            "needed",
            "body",
        ],
    },
    BoundTable {
        name: "answers",
        key: &["approval_id", "by"],
        columns: &[
            "approval_id",
            "by",
            "approve",
            "how",
            "origin",
            "reason",
            "edited",
            "at",
        ],
    },
    BoundTable {
        name: "changes",
        key: &["command_id"],
        columns: &[
            "command_id",
            "session_id",
            "state",
            "hash",
            "below",
            "bytes",
            "updated_at",
            "body",
        ],
    },
    BoundTable {
        name: "grants",
        key: &["grant_id"],
        columns: &["grant_id", "body", "created_at"],
    },
    BoundTable {
        name: "principals",
        key: &["principal_id"],
        columns: &[
            "principal_id",
            "agent",
            "role",
            "uid",
            "is_active",
            "body",
            "version",
            "created_at",
            "updated_at",
        ],
    },
    BoundTable {
        name: "tokens",
        key: &["token_id"],
        // Not `last_used_at`, which changes without an event.
        columns: &[
            "token_id",
            "hash",
            "prefix",
            "label",
            "principal_id",
            "created_by",
            "created_at",
            "expires_at",
            "revoked_at",
        ],
    },
    BoundTable {
        name: "terminal_sandboxes",
        key: &["sandbox_id"],
        columns: &[
            "sandbox_id",
            "owner_principal_id",
            "label",
            "path",
            "is_active",
            "body",
            "version",
            "created_at",
            "updated_at",
            "deleted_at",
        ],
    },
    BoundTable {
        name: "rules_versions",
        key: &["policy_id", "version"],
        columns: &[
            "policy_id",
            "version",
            "author",
            "note",
            "text",
            "created_at",
        ],
    },
];

/// The first schema whose rows are tied to the chain.
pub(crate) const SINCE: usize = 7;

/// The kind of the entries that tie the rows of an older database.
pub(crate) const ADOPTED: &str = "record.adopted";

/// How many rows of an older database one entry ties.
const ADOPTED_AT_ONCE: usize = 500;

impl BoundTable {
    /// The SQL of the two parts of a row's key in a trigger.
    fn key_of(&self, row: &str) -> String {
        let part = |index: usize| match self.key.get(index) {
            Some(column) => format!("{row}.{column}"),
            None => "''".to_owned(),
        };
        format!("{}, {}", part(0), part(1))
    }

    fn select(&self, which: &str) -> String {
        // As text, whatever they are.
        let key: Vec<_> = { self.key.iter() }
            .map(|key| format!("{key} || ''"))
            .collect();
        let (key, columns) = (key.join(", "), self.columns.join(", "));
        format!("SELECT {key}, {columns} FROM {} {which}", self.name)
    }

    /// Reads a row that [`BoundTable::select`] found.
    fn read(&self, row: &Row<'_>) -> Result<BoundRow, rusqlite::Error> {
        let mut hasher = Sha256::new();
        for (index, column) in self.columns.iter().enumerate() {
            let (kind, bytes) = match row.get_ref(self.key.len() + index)? {
                ValueRef::Null => continue,
                ValueRef::Integer(number) => (b'i', &number.to_le_bytes()[..]),
                ValueRef::Real(number) => (b'r', &number.to_le_bytes()[..]),
                ValueRef::Text(text) => (b't', text),
                ValueRef::Blob(bytes) => (b'b', bytes),
            };
            hasher.update(column.as_bytes());
            hasher.update([0, kind]);
            // With the length, so that no text can look like two columns.
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        }
        let key = (0..self.key.len()).map(|index| row.get(index));
        Ok(BoundRow {
            table: self.name.to_owned(),
            key: key.collect::<Result<_, _>>()?,
            hash: Some(hex(&hasher.finalize())),
        })
    }

    /// Looks at a row, which may be gone.
    fn row(&self, mut key: Vec<String>, from: &Connection) -> Result<BoundRow, Error> {
        key.truncate(self.key.len());
        let terms = { self.key.iter().zip(1..) }.map(|(column, n)| format!("{column} = ?{n}"));
        let terms: Vec<_> = terms.collect();
        let sql = self.select(&format!("WHERE {}", terms.join(" AND ")));
        let found = from
            .prepare_cached(&sql)?
            .query_row(params_from_iter(&key), |row| self.read(row))
            .optional()?;
        Ok(found.unwrap_or(BoundRow {
            table: self.name.to_owned(),
            key,
            hash: None,
        }))
    }
}

/// Has this connection remember which rows its writes touch.
pub(crate) fn watch(connection: &Connection) -> Result<(), Error> {
    let mut sql = String::from(
        "CREATE TEMP TABLE touched (name TEXT, key TEXT, more TEXT, \
         PRIMARY KEY (name, key, more)) WITHOUT ROWID;",
    );
    for table in TABLES {
        let name = table.name;
        let events = [
            ("insert", "INSERT".to_owned(), "NEW"),
            (
                "update",
                format!("UPDATE OF {}", table.columns.join(", ")),
                "NEW",
            ),
            ("delete", "DELETE".to_owned(), "OLD"),
        ];
        for (word, event, row) in events {
            let key = table.key_of(row);
            sql.push_str(&format!(
                "CREATE TEMP TRIGGER {name}_{word} AFTER {event} ON main.{name} BEGIN \
                 INSERT OR IGNORE INTO touched VALUES ('{name}', {key}); END;"
            ));
        }
    }
    Ok(connection.execute_batch(&sql)?)
}

/// Returns the rows that were touched since the last call, as they are now.
pub(crate) fn touched(from: &Connection) -> Result<Vec<BoundRow>, Error> {
    let sql = "SELECT name, key, more FROM temp.touched";
    let touched: Vec<(String, Vec<String>)> = all(from, sql, [], |row| {
        Ok((row.get(0)?, vec![row.get(1)?, row.get(2)?]))
    })?;
    if touched.is_empty() {
        return Ok(vec![]);
    }
    from.prepare_cached("DELETE FROM temp.touched")?
        .execute([])?;
    let rows = { touched.into_iter() }.filter_map(|(name, key)| Some(table(&name)?.row(key, from)));
    rows.collect()
}

/// Ties rows once more whose entries are about to be removed. Those that differ
/// from what these say are left out: either a later entry ties them, or nobody
/// has recorded them as they are.
pub(crate) fn keep_tied(to: &Connection, tied: BoundRows) -> Result<(), Error> {
    for ((name, key), (_, hash)) in tied.rows {
        let Some(table) = table(&name).filter(|_| hash.is_some()) else {
            continue;
        };
        if table.row(key.clone(), to)?.hash == hash {
            let more = key.get(1).map_or("", String::as_str);
            to.prepare_cached("INSERT OR IGNORE INTO temp.touched VALUES (?1, ?2, ?3)")?
                .execute([name.as_str(), &key[0], more])?;
        }
    }
    Ok(())
}

fn table(name: &str) -> Option<&'static BoundTable> {
    TABLES.iter().find(|table| table.name == name)
}

/// Appends entries together with the rows that were written with them. A row
/// goes with the entry about its run, so that it can be found from there.
pub(crate) fn append(
    to: &Connection,
    chain: &mut Chain,
    mut entries: Vec<Entry>,
    rows: Vec<BoundRow>,
) -> Result<Vec<Recorded>, Error> {
    if entries.is_empty() && !rows.is_empty() {
        entries.push(by_itself("record.updated"));
    }
    let mut with: Vec<Vec<BoundRow>> = entries.iter().map(|_| vec![]).collect();
    for row in rows {
        let about = |entry: &Entry| entry.run.as_ref() == row.key.first();
        let at = entries.iter().rposition(about);
        with[at.unwrap_or(entries.len() - 1)].push(row);
    }
    let pairs = entries.into_iter().zip(with);
    pairs
        .map(|(entry, rows)| chain.append(to, entry, rows))
        .collect()
}

/// Ties all rows of a database that an older version made.
pub(crate) fn adopt(to: &Connection, chain: &mut Chain) -> Result<(), Error> {
    for table in TABLES {
        let found = all(to, &table.select(""), [], |row| table.read(row))?;
        for rows in found.chunks(ADOPTED_AT_ONCE) {
            chain.append(to, by_itself(ADOPTED), rows.to_vec())?;
        }
    }
    Ok(())
}

/// An entry for rows that no event of anybody's goes with.
fn by_itself(kind: &'static str) -> Entry {
    Entry {
        time: jiff::Timestamp::now().as_microsecond(),
        kind,
        actor: "weighlock".into(),
        detail: serde_json::json!({}),
        ..Entry::default()
    }
}

/// Returns which of these commands differ from what their newest entries say.
pub(crate) fn altered(commands: &[&str], from: &Connection) -> Result<Vec<String>, Error> {
    let table = &TABLES[0];
    let mut altered = vec![];
    for id in commands {
        let row = table.row(vec![(*id).to_owned()], from)?;
        let differs = |bound: BoundRow| bound != row;
        if newest(&row, from)?.is_some_and(differs) {
            altered.push((*id).to_owned());
        }
    }
    Ok(altered)
}

/// Returns what the newest entry about a command says of its row.
fn newest(row: &BoundRow, from: &Connection) -> Result<Option<BoundRow>, Error> {
    let mut query = from.prepare_cached(
        "SELECT body FROM audit INDEXED BY audit_run WHERE run = ?1 ORDER BY seq DESC",
    )?;
    let mut bodies = query.query(params_from_iter(&row.key))?;
    while let Some(found) = bodies.next()? {
        let body: String = found.get(0)?;
        let Ok(body) = serde_json::from_str::<EntryBody>(&body) else {
            continue;
        };
        let about = |bound: &BoundRow| bound.table == row.table && bound.key == row.key;
        if let Some(bound) = body.rows.into_iter().find(about) {
            return Ok(Some(bound));
        }
    }
    Ok(None)
}

/// What a chain says of rows, collected while it is read.
#[derive(Default)]
pub(crate) struct BoundRows {
    /// By table and key: the newest hash and the entry that has it.
    rows: HashMap<(String, Vec<String>), (u64, Option<String>)>,
    /// The first entry that ties rows of its own accord, and not of an older
    /// database.
    first: Option<u64>,
}

impl BoundRows {
    /// Takes in what an entry says. Returns what is wrong with it.
    pub(crate) fn add(&mut self, seq: u64, kind: &str, rows: Vec<BoundRow>) -> Option<String> {
        if rows.is_empty() {
            return None;
        }
        match (kind == ADOPTED, self.first) {
            (true, Some(first)) => {
                return Some(format!("it ties rows that were tied since entry {first}"));
            }
            (false, None) => self.first = Some(seq),
            _ => {}
        }
        for row in rows {
            self.rows.insert((row.table, row.key), (seq, row.hash));
        }
        None
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Compares all rows of the database with what the chain says of them.
    /// Returns the first that differs.
    pub(crate) fn compare(mut self, with: &Connection, last: u64) -> Result<Option<Fault>, Error> {
        let fault = |seq, name: &str, key: &[String], what: &str| Fault {
            seq,
            what: what.to_owned(),
            row: Some(format!("{name} {}", key.join(" "))),
        };
        for table in TABLES {
            let name = table.name;
            let mut query = with.prepare(&table.select(""))?;
            let mut found = query.query_map([], |row| table.read(row))?;
            while let Some(row) = found.next().transpose()? {
                let (key, hash) = (row.key, row.hash);
                let Some((seq, bound)) = self.rows.remove(&(row.table, key.clone())) else {
                    let what = "no entry has recorded it";
                    return Ok(Some(fault(last, name, &key, what)));
                };
                if bound != hash {
                    let what = "it was changed since this entry recorded it";
                    return Ok(Some(fault(seq, name, &key, what)));
                }
            }
        }
        let gone = self.rows.iter().filter(|(_, (_, hash))| hash.is_some());
        let gone = gone.min_by_key(|(_, (seq, _))| *seq);
        Ok(gone.map(|((name, key), (seq, _))| {
            let what = "it was removed since this entry recorded it";
            fault(*seq, name, key, what)
        }))
    }
}
