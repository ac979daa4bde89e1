//! The record that shows when it was tampered with.
//!
//! Each entry carries the hash of the one before. The newest hash is also kept
//! in a file of its own, so that cutting off the end is noticed too.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::database::Database;
use crate::entry::{Entry, Recorded};
use crate::error::Error;

/// The chain of entries.
#[derive(Clone, Copy)]
pub struct AuditLog<'a> {
    pub(crate) database: &'a Database,
}

impl AuditLog<'_> {
    /// Appends entries that stand for themselves.
    pub async fn record(self, entries: Vec<Entry>) -> Result<(), Error> {
        self.database.writer.write(|_| Ok(((), entries))).await
    }

    /// Subscribes to every entry from now on, in order, once it is committed. A
    /// receiver that is more than a thousand entries behind gets
    /// [`Lagged`](broadcast::error::RecvError::Lagged), and reads the rest with
    /// [`AuditLog::recorded_after`].
    pub fn events(self) -> broadcast::Receiver<Arc<Recorded>> {
        self.database.writer.events.subscribe()
    }
}
