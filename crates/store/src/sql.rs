//! Connections, and reading rows from them.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Params, Row};

use crate::error::Error;

/// How long another process may hold the database before we say so.
const BUSY: Duration = Duration::from_secs(5);

pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, Error> {
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    };
    open().map_err(|error: rusqlite::Error| Error::from(error).at(path))
}

/// Reads all that a statement finds.
pub(crate) fn all<T>(
    from: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T, rusqlite::Error>,
) -> Result<Vec<T>, Error> {
    let mut query = from.prepare_cached(sql)?;
    let rows = query.query_map(values, read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Reads what can be read of all that a statement finds. For work that must go on
/// without a damaged row: whoever asks for that row itself hears of the damage, and
/// so does `audit verify`.
pub(crate) fn readable<T>(
    from: &Connection,
    sql: &str,
    values: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, rusqlite::Error>,
) -> Result<Vec<T>, Error> {
    let found = all(from, sql, values, |row| {
        match read(row).map_err(Error::from) {
            Ok(found) => Ok(Ok(Some(found))),
            Err(Error::Damaged(_)) => Ok(Ok(None)),
            Err(error) => Ok(Err(error)),
        }
    })?;
    found.into_iter().filter_map(Result::transpose).collect()
}

pub(crate) fn read_only() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX
}
