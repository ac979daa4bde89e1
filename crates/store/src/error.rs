//! Why the store fails.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::column::DamagedValue;

/// Why something could not be remembered or recalled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is damaged.
    #[error("the database {} is damaged: {what}", .path.display())]
    Corrupt { path: PathBuf, what: String },
    /// A record cannot be read, so that nobody knows what it said.
    #[error("the database has a damaged record: {0}")]
    Damaged(String),
    /// The file is gone, but the audit's head says that there was one.
    #[error("the database {} is gone, but the audit had {entries} entries", .path.display())]
    Vanished { path: PathBuf, entries: u64 },
    /// A newer program has changed the schema.
    #[error("the database {} was made by a newer version", .path.display())]
    Newer { path: PathBuf },
    /// An older program made it, and nobody has opened it for writing since.
    #[error("the database {} was made by an older version; start the server once", .path.display())]
    Older { path: PathBuf },
    /// There is no room to write.
    #[error("the disk is full")]
    Full,
    /// Another process holds the database.
    #[error("the database is locked by another process")]
    Busy,
    /// There is none yet, and this call may not make one.
    #[error("there is no database {} yet", .path.display())]
    Missing { path: PathBuf },
    /// Anything else the database says.
    #[error("the database failed")]
    Database(#[source] Arc<rusqlite::Error>),
    /// A file beside the database could not be used.
    #[error("cannot use {}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// A place in a list that this store has not given out.
    #[error("the cursor does not belong to this list")]
    Cursor,
    /// The oldest entries went while they were read.
    #[error("the oldest entries were removed by retention while they were read")]
    Removed,
    /// The store is shutting down.
    #[error("the store is closed")]
    Closed,
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        if let rusqlite::Error::FromSqlConversionFailure(_, _, source) = &error
            && let Some(damaged) = source.downcast_ref::<DamagedValue>()
        {
            return Self::Damaged(damaged.to_string());
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt {
                path: PathBuf::new(),
                what: error.to_string(),
            },
            _ => Self::Database(Arc::new(error)),
        }
    }
}

impl Error {
    /// Names the file where the database itself could not.
    pub(crate) fn at(self, file: &Path) -> Self {
        match self {
            Self::Corrupt { path, what } if path.as_os_str().is_empty() => Self::Corrupt {
                path: file.to_owned(),
                what,
            },
            other => other,
        }
    }

    /// The same failure for each caller of a batch.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Full => Self::Full,
            Self::Busy => Self::Busy,
            Self::Damaged(what) => Self::Damaged(what.clone()),
            Self::Corrupt { path, what } => Self::Corrupt {
                path: path.clone(),
                what: what.clone(),
            },
            Self::Database(error) => Self::Database(error.clone()),
            _ => Self::Closed,
        }
    }
}
