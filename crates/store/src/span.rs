//! The part of a list in which everything of a time lies.
//!
//! Lists are in the order of ids, which never run backwards; clocks do, now
//! and then. So a time is looked up in an index of times first, and gives the
//! ids between which the list is walked; what lies there by accident is left
//! out while walking.

use rusqlite::Connection;
use rusqlite::types::FromSql;

use crate::error::Error;

/// Where more than so many match, a walk meets enough of them without help.
const MANY: i64 = 10_000;

/// A time: from the first, and before the second, in microseconds since 1970.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TimeWindow {
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
}

/// Where to look.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum IdRange<T> {
    /// Everywhere.
    All,
    /// Between two ids, these included.
    Between(T, T),
    /// Nowhere.
    Nothing,
}

/// The times of a table.
pub(crate) struct TimeColumns {
    /// Selects the ids of a window, at most so many of them.
    pub(crate) ids: &'static str,
    /// The list begins with the newest.
    pub(crate) newest_first: bool,
}

impl TimeColumns {
    /// Returns where to look for what is of a time.
    pub(crate) fn span<T: FromSql>(
        &self,
        from: &Connection,
        window: TimeWindow,
    ) -> Result<IdRange<T>, Error> {
        if window.from.is_none() && window.to.is_none() {
            return Ok(IdRange::All);
        }
        let (sql, values) = self.query(window);
        let mut query = from.prepare_cached(&sql)?;
        let span = query.query_row(values, |row| {
            Ok(match row.get(2)? {
                0 => IdRange::Nothing,
                MANY if !self.hidden(window) => IdRange::All,
                _ => IdRange::Between(row.get(0)?, row.get(1)?),
            })
        });
        Ok(span?)
    }

    pub(crate) fn query(&self, window: TimeWindow) -> (String, [i64; 3]) {
        let sql = format!("SELECT min(id), max(id), count(*) FROM ({})", self.ids);
        let from = window.from.unwrap_or(i64::MIN);
        let to = window.to.unwrap_or(i64::MAX);
        (sql, [from, to, if self.hidden(window) { -1 } else { MANY }])
    }

    /// Returns whether the list may begin with much that is not of this time.
    fn hidden(&self, window: TimeWindow) -> bool {
        if self.newest_first {
            window.to.is_some()
        } else {
            window.from.is_some()
        }
    }
}
