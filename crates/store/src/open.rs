//! Opening the database, and refusing one that cannot be trusted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Params, Row, TransactionBehavior};

use crate::bound;
use crate::head::ChainHead;
use crate::histogram::Histogram;
use crate::writer::Writer;

/// The database's name in the state directory.
pub(crate) const FILE: &str = "weighlock.db";

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

/// How long another process may hold the database before we say so.
const BUSY: Duration = Duration::from_secs(5);

/// A database up to this size is checked at every start, which takes well
/// under a second; larger ones by `doctor`.
const CHECK_UP_TO_BYTES: u64 = 64 * 1024 * 1024;

/// Why something could not be remembered or recalled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is damaged.
    #[error("the database {} is damaged: {what}", .path.display())]
    Corrupt { path: PathBuf, what: String },
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

/// What a crash may cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Nothing is lost when processes die; a loss of power may cost about the
    /// last second.
    #[default]
    Process,
    /// Every answer waits for the disk.
    Power,
}

/// The open database.
pub struct Store {
    pub(crate) path: PathBuf,
    pub(crate) writer: Writer,
    pub(crate) reader: Mutex<Connection>,
}

impl Store {
    /// Opens the database in a state directory, making it when there is none.
    pub fn open(dir: &Path, durability: Durability) -> Result<Self, Error> {
        let path = dir.join(FILE);
        let head = ChainHead::open(dir)?;
        if is_empty(&path) && head.seq() > 0 {
            return Err(Error::Vanished {
                path,
                entries: head.seq(),
            });
        }
        let mut connection = connect(&path, OpenFlags::default())?;
        let head = prepare(&mut connection, &path, durability)
            .and_then(|()| migrate(&mut connection, head, &path))
            .map_err(|error| error.at(&path))?;
        bound::watch(&connection)?;
        checkpoint_on_close(&connection, true)?;
        let reader = Mutex::new(connect(&path, read_only())?);
        Ok(Self {
            writer: Writer::start(connection, head, dir),
            reader,
            path,
        })
    }

    /// Opens the database in a state directory for reading, without a server.
    pub fn open_read_only(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(FILE);
        if !path.exists() {
            return Err(Error::Missing { path });
        }
        let connection = connect(&path, read_only())?;
        if version(&connection)? < MIGRATIONS.len() {
            return Err(Error::Older { path });
        }
        Ok(Self::of_reader(dir, connection))
    }

    pub(crate) fn of_reader(dir: &Path, reader: Connection) -> Self {
        Self {
            writer: Writer::none(dir),
            reader: Mutex::new(reader),
            path: dir.join(FILE),
        }
    }

    /// Closes it, and returns once all of it is in the one file.
    pub fn close(self) {
        drop(self.reader);
        self.writer.close();
    }

    /// Moves a damaged database aside, so that the next start makes a new one.
    /// Returns where it went.
    pub fn set_aside(dir: &Path, stamp: &str) -> Result<PathBuf, Error> {
        let aside = dir.join(format!("{FILE}.broken-{stamp}"));
        for suffix in ["", "-wal", "-shm"] {
            let from = dir.join(format!("{FILE}{suffix}"));
            let to = PathBuf::from(format!("{}{suffix}", aside.display()));
            match std::fs::rename(&from, to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::File {
                        path: from,
                        source: error,
                    });
                }
                _ => {}
            }
        }
        ChainHead::set_aside(dir, stamp)?;
        Ok(aside)
    }

    /// Returns the database's size on disk and what an integrity check says.
    pub fn check(&self) -> Result<(u64, Option<String>), Error> {
        let log = PathBuf::from(format!("{}-wal", self.path.display()));
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        let size = size(&self.path) + size(&log);
        let reader = self.lock_reader();
        Ok((size, quick_check(&reader)?))
    }

    /// Returns how long commits take.
    pub fn commits(&self) -> &Histogram {
        &self.writer.commits
    }

    /// Opens a connection for what may take long.
    pub(crate) fn another_reader(&self) -> Result<Connection, Error> {
        connect(&self.path, read_only())
    }

    pub(crate) fn lock_reader(&self) -> std::sync::MutexGuard<'_, Connection> {
        // A reader that panicked has left no half-written state behind.
        self.reader.lock().unwrap_or_else(|lock| lock.into_inner())
    }
}

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

pub(crate) fn read_only() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn prepare(connection: &mut Connection, path: &Path, durability: Durability) -> Result<(), Error> {
    let synchronous = match durability {
        Durability::Process => "NORMAL",
        Durability::Power => "FULL",
    };
    // A database that is refused stays as it is: what its log still has
    // beyond a damaged place would be gone with a checkpoint.
    checkpoint_on_close(connection, false)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // What takes a statement back would otherwise be a file when it is large.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    let small = std::fs::metadata(path).is_ok_and(|file| file.len() <= CHECK_UP_TO_BYTES);
    if small && let Some(what) = quick_check(connection)? {
        return Err(Error::Corrupt {
            path: path.to_owned(),
            what,
        });
    }
    if version(connection)? > MIGRATIONS.len() {
        return Err(Error::Newer {
            path: path.to_owned(),
        });
    }
    Ok(())
}

fn checkpoint_on_close(connection: &Connection, wanted: bool) -> Result<(), Error> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !wanted)?;
    Ok(())
}

fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |file| file.len() == 0)
}

fn quick_check(connection: &Connection) -> Result<Option<String>, Error> {
    let answer: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((answer != "ok").then_some(answer))
}

/// Returns how many migrations were made.
pub(crate) fn version(connection: &Connection) -> Result<usize, Error> {
    Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Brings the schema up to date. Nothing is written before the audit's head was
/// compared.
fn migrate(connection: &mut Connection, head: ChainHead, path: &Path) -> Result<ChainHead, Error> {
    let version = version(connection)?;
    let mut head = match version {
        // Without tables there is nothing to compare yet.
        0 => head,
        _ => head.agrees(connection, path)?,
    };
    if version == MIGRATIONS.len() {
        return Ok(head);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for migration in &MIGRATIONS[version..] {
        transaction.execute_batch(migration)?;
    }
    let mut chain = head.chain();
    if (1..bound::SINCE).contains(&version) {
        bound::adopt(&transaction, &mut chain)?;
    }
    transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
    transaction.commit()?;
    if version > 0 {
        head.advance(chain);
    }
    head.agrees(connection, path)
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
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
}
