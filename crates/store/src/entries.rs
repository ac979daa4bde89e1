//! Finding audit entries again.

use rusqlite::types::Value as Sql;
use rusqlite::{OptionalExtension, Row, params_from_iter};
use serde_json::{Map, Value};

use crate::audit::AuditLog;
use crate::column::Column;
use crate::cursor::rows;
use crate::entry::EntryBody;
use crate::entry::Recorded;
use crate::entry::hash;
use crate::error::Error;
use crate::span::{IdRange, TimeColumns, TimeWindow};
use crate::sql::readable;

/// Which entries to recall, oldest first.
#[derive(Debug, Clone, Default)]
pub struct EntryFilter {
    /// Only those about this run.
    pub run: Option<String>,
    /// Only those about this sandbox.
    pub sandbox: Option<String>,
    /// Only what this principal did.
    pub actor: Option<String>,
    /// Only those about this principal's things.
    pub owner: Option<String>,
    /// Only those of this kind, or of all that begin with it if it ends in a
    /// dot.
    pub kind: Option<String>,
    /// Only those at this time or later, in microseconds since 1970.
    pub from: Option<i64>,
    /// Only those before this time.
    pub to: Option<i64>,
    /// Only those after this number.
    pub after: u64,
    /// At most so many.
    pub limit: usize,
}

const BODY: Column = Column {
    table: "audit",
    name: "body",
    index: 1,
};

/// When entries were made.
pub(crate) const TIMES: TimeColumns = TimeColumns {
    ids: "SELECT seq AS id FROM audit INDEXED BY audit_time \
          WHERE time >= ?1 AND time < ?2 LIMIT ?3",
    newest_first: false,
};

impl AuditLog<'_> {
    /// Recalls entries as JSON, oldest first, each with the hash that the next
    /// one names as `prev`. An entry that cannot be read is left out: verifying
    /// finds it.
    pub fn entries(self, filter: &EntryFilter) -> Result<Vec<Value>, Error> {
        self.select(filter, |row| {
            let mut entry: Map<String, Value> = BODY.json(row)?;
            let body: String = row.get(BODY.index)?;
            entry.insert("hash".into(), hash(body.as_bytes()).into());
            Ok(entry.into())
        })
    }

    /// Recalls what was appended after an entry, oldest first.
    pub fn recorded_after(self, seq: u64, limit: usize) -> Result<Vec<Recorded>, Error> {
        let filter = EntryFilter {
            after: seq,
            limit,
            ..EntryFilter::default()
        };
        self.recorded(&filter)
    }

    /// Recalls what was appended after an entry, of these kinds, oldest first,
    /// and the number up to which that is all of them.
    pub fn recorded_like(
        self,
        after: u64,
        kinds: &[&str],
        limit: usize,
    ) -> Result<(Vec<Recorded>, u64), Error> {
        // First, so that what comes meanwhile is left for the next time.
        let mut seen = self.newest_seq()?.max(after);
        let mut found = vec![];
        for kind in kinds {
            let some = self.recorded(&EntryFilter {
                kind: Some((*kind).to_owned()),
                after,
                limit,
                ..EntryFilter::default()
            })?;
            if let Some(last) = some.last().filter(|_| some.len() == limit) {
                seen = seen.min(last.seq);
            }
            found.extend(some);
        }
        found.retain(|recorded| recorded.seq <= seen);
        found.sort_by_key(|recorded| recorded.seq);
        Ok((found, seen))
    }

    fn recorded(self, filter: &EntryFilter) -> Result<Vec<Recorded>, Error> {
        self.select(filter, |row| Ok(BODY.json::<EntryBody>(row)?.into()))
    }

    /// Returns the number of the newest entry, or zero.
    pub fn newest_seq(self) -> Result<u64, Error> {
        let sql = "SELECT coalesce(max(seq), 0) FROM audit";
        Ok(self
            .database
            .lock_reader()
            .query_row(sql, [], |row| row.get(0))?)
    }

    /// Returns when something of a kind was last recorded, in microseconds
    /// since 1970.
    pub fn newest_time(self, kind: &str) -> Result<Option<i64>, Error> {
        let sql = "SELECT time FROM audit WHERE seq = (SELECT seq FROM audit \
                   INDEXED BY audit_kind WHERE kind = ?1 ORDER BY seq DESC LIMIT 1)";
        let reader = self.database.another_reader()?;
        let found = reader.query_row(sql, [kind], |row| row.get(0)).optional()?;
        Ok(found.flatten())
    }

    /// Returns when the first entry was recorded.
    pub fn oldest_time(self) -> Result<Option<i64>, Error> {
        let sql = "SELECT time FROM audit ORDER BY seq LIMIT 1";
        let found = self
            .database
            .lock_reader()
            .query_row(sql, [], |row| row.get(0));
        Ok(found.optional()?.flatten())
    }

    fn select<T>(
        self,
        filter: &EntryFilter,
        read: impl FnMut(&Row<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<Vec<T>, Error> {
        let reader = self.database.lock_reader();
        let span = TIMES.span(&reader, filter.window())?;
        if span == IdRange::Nothing {
            return Ok(vec![]);
        }
        let (sql, values) = filter.query(&span);
        readable(&reader, &sql, params_from_iter(values), read)
    }
}

impl EntryFilter {
    pub(crate) fn window(&self) -> TimeWindow {
        TimeWindow {
            from: self.from,
            to: self.to,
        }
    }

    pub(crate) fn query(&self, span: &IdRange<i64>) -> (String, Vec<Sql>) {
        let mut values = vec![rows(self.limit).into(), self.above(span).into()];
        let mut wanted = String::new();
        let mut add = |condition: &str, value: Sql| {
            values.push(value);
            wanted.push_str(" AND ");
            wanted.push_str(condition);
        };
        let texts = [
            ("run = ?", &self.run),
            ("sandbox = ?", &self.sandbox),
            ("owner = ?", &self.owner),
            ("actor = ?", &self.actor),
        ];
        for (condition, text) in texts {
            if let Some(text) = text {
                add(condition, text.clone().into());
            }
        }
        match self.kind.as_deref().map(|kind| (kind, kind.ends_with('.'))) {
            Some((kind, true)) => {
                add("kind >= ?", kind.to_owned().into());
                // A slash is what sorts next after a dot.
                let next = format!("{}/", &kind[..kind.len() - 1]);
                add("kind < ?", next.into());
            }
            Some((kind, false)) => add("kind = ?", kind.to_owned().into()),
            None => {}
        }
        if let IdRange::Between(_, last) = span {
            add("seq <= ?", (*last).into());
        }
        // With a plus, which keeps the database from walking along the times.
        if let Some(from) = self.from {
            add("+time >= ?", from.into());
        }
        if let Some(to) = self.to {
            add("+time < ?", to.into());
        }
        let sql = format!(
            "SELECT seq, body FROM audit {} WHERE seq > ?2{wanted} ORDER BY seq LIMIT ?1",
            self.index(),
        );
        (sql, values)
    }

    /// One bound where there could be two: the database would only look up
    /// one, and walk to the other.
    fn above(&self, span: &IdRange<i64>) -> i64 {
        let after = i64::try_from(self.after).unwrap_or(i64::MAX);
        match span {
            IdRange::Between(first, _) => after.max(first - 1),
            _ => after,
        }
    }

    /// Returns what to walk along: the index that leaves the least.
    fn index(&self) -> &'static str {
        if self.run.is_some() {
            "INDEXED BY audit_run"
        } else if self.sandbox.is_some() {
            "INDEXED BY audit_sandbox"
        } else if self.owner.is_some() {
            "INDEXED BY audit_owner"
        } else if self.actor.is_some() || self.kind.is_some() {
            "INDEXED BY audit_kind"
        } else {
            // The numbers themselves.
            ""
        }
    }
}
