//! The open database: one connection that writes, and one that reads.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use rusqlite::Connection;

use crate::error::Error;
use crate::sql::{connect, read_only};
use crate::writer::Writer;

/// The database's name in the state directory.
pub(crate) const FILE: &str = "weighlock.db";

/// What all tables share. Each borrows it, and adds what it knows of its rows.
pub(crate) struct Database {
    pub(crate) path: PathBuf,
    pub(crate) writer: Writer,
    pub(crate) reader: Mutex<Connection>,
}

impl Database {
    /// Opens a connection for what may take long.
    pub(crate) fn another_reader(&self) -> Result<Connection, Error> {
        connect(&self.path, read_only())
    }

    pub(crate) fn lock_reader(&self) -> MutexGuard<'_, Connection> {
        // A reader that panicked has left no half-written state behind.
        self.reader.lock().unwrap_or_else(|lock| lock.into_inner())
    }

    /// Closes it, and returns once all of it is in the one file.
    pub(crate) fn close(self) {
        drop(self.reader);
        self.writer.close();
    }
}
