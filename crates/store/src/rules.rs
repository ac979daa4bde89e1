//! What rule files have said.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::audit::Entry;
use crate::cursor::rows;
use crate::open::{Error, Store, all};

/// One text of a rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesVersion {
    /// The file, by the name of its policy.
    pub policy: String,
    /// From 1.
    pub version: i64,
    /// Who saved it; empty where nobody has told us.
    pub author: String,
    /// Their comment on it.
    pub note: String,
    /// The whole text.
    pub text: String,
    /// Microseconds since 1970.
    pub at: i64,
}

impl Store {
    /// Remembers texts of one file together with their entry, and returns the
    /// number of the last. The numbers given with them do not count.
    pub async fn save_rules(
        &self,
        versions: Vec<RulesVersion>,
        entry: impl FnOnce(i64) -> Entry + Send + 'static,
    ) -> Result<i64, Error> {
        self.writer
            .write(move |to| {
                let mut last = 0;
                for version in &versions {
                    last = newest(to, &version.policy)? + 1;
                    insert(to, version, last)?;
                }
                Ok((last, vec![entry(last)]))
            })
            .await
    }

    /// Lists the texts of a file, newest first, those before a version.
    pub fn rules_versions(
        &self,
        policy: &str,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<RulesVersion>, Error> {
        let sql = "SELECT policy_id, version, author, note, text, created_at FROM rules_versions \
                   WHERE policy_id = ?1 AND version < ?2 ORDER BY version DESC LIMIT ?3";
        let before = before.unwrap_or(i64::MAX);
        let values = params![policy, before, rows(limit)];
        all(&self.lock_reader(), sql, values, read)
    }

    /// Returns one text of a file.
    pub fn rules_version(&self, policy: &str, version: i64) -> Result<Option<RulesVersion>, Error> {
        let sql = "SELECT policy_id, version, author, note, text, created_at FROM rules_versions \
                   WHERE policy_id = ?1 AND version = ?2";
        let reader = self.lock_reader();
        let found = reader.query_row(sql, params![policy, version], read);
        Ok(found.optional()?)
    }
}

fn newest(from: &Connection, policy: &str) -> Result<i64, Error> {
    let sql = "SELECT coalesce(max(version), 0) FROM rules_versions WHERE policy_id = ?1";
    Ok(from.query_row(sql, [policy], |row| row.get(0))?)
}

fn insert(to: &Connection, version: &RulesVersion, number: i64) -> Result<(), Error> {
    to.execute(
        "INSERT INTO rules_versions (policy_id, version, author, note, text, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            version.policy,
            number,
            version.author,
            version.note,
            version.text,
            version.at
        ],
    )?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<RulesVersion> {
    Ok(RulesVersion {
        policy: row.get(0)?,
        version: row.get(1)?,
        author: row.get(2)?,
        note: row.get(3)?,
        text: row.get(4)?,
        at: row.get(5)?,
    })
}
