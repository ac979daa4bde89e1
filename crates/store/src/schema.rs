//! The tables, version by version.

use rusqlite::Connection;

use crate::error::Error;

/// Every change of the schema, in order. The version is how many were made.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
];

/// Returns how many migrations were made.
pub(crate) fn version(connection: &Connection) -> Result<usize, Error> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}
