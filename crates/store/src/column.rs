//! Columns that hold words or JSON of this program.
//!
//! What cannot be read is an error that names the place: a record that was
//! damaged must not look like another one.

use rusqlite::Row;
use rusqlite::types::{Type, ValueRef};
use serde::de::DeserializeOwned;

/// Where such a column is.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    pub(crate) table: &'static str,
    pub(crate) name: &'static str,
    /// Its place among the columns that are read, of which the first names the
    /// row.
    pub(crate) index: usize,
}

/// A value that this program does not write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("row {row} of table {table} has an unreadable {column}: {what}")]
pub(crate) struct DamagedValue {
    table: &'static str,
    row: String,
    column: &'static str,
    what: String,
}

impl Column {
    /// Reads one of a set of words.
    pub(crate) fn word<T>(
        self,
        row: &Row<'_>,
        known: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, rusqlite::Error> {
        let word = row.get_ref(self.index)?.as_str()?;
        known(word).ok_or_else(|| self.damaged(row, format!("unknown word `{word}`")))
    }

    /// Reads a number that stands for one of a set of things.
    pub(crate) fn number<T>(
        self,
        row: &Row<'_>,
        known: impl FnOnce(i64) -> Option<T>,
    ) -> Result<T, rusqlite::Error> {
        let number = row.get(self.index)?;
        known(number).ok_or_else(|| self.damaged(row, format!("unknown number {number}")))
    }

    /// Reads JSON.
    pub(crate) fn json<T: DeserializeOwned>(self, row: &Row<'_>) -> Result<T, rusqlite::Error> {
        let text = row.get_ref(self.index)?.as_str()?;
        serde_json::from_str(text).map_err(|error| self.damaged(row, error.to_string()))
    }

    fn damaged(self, row: &Row<'_>, what: String) -> rusqlite::Error {
        let damaged = DamagedValue {
            table: self.table,
            row: match row.get_ref(0) {
                Ok(ValueRef::Integer(number)) => number.to_string(),
                Ok(ValueRef::Text(text)) => String::from_utf8_lossy(text).into_owned(),
                _ => String::new(),
            },
            column: self.name,
            what,
        };
        rusqlite::Error::FromSqlConversionFailure(self.index, Type::Text, Box::new(damaged))
    }
}
