//! Writes ends of runs down, however long that takes.

use std::time::Duration;

use weighlock_store::{ChangesRow, Command, Entry};

use super::Runs;
use crate::error::Error;
use crate::view::RunRecord;
use crate::view::{Detail, Run, stored};

/// How often an end that could not be recorded is tried again.
pub(crate) const RETRY_EVERY: Duration = Duration::from_secs(1);

impl Runs {
    /// Records how a run ended, and what became of its changes, if it made
    /// any; and tells whoever waits.
    pub(crate) async fn record_end(
        &self,
        command: &mut Command,
        mut detail: Detail,
        changes: Option<ChangesRow>,
        entries: Vec<Entry>,
        end: &tokio::sync::watch::Sender<Option<Run>>,
    ) {
        command.detail = stored(&detail);
        // The answer is made while the store writes.
        let (written, run) = tokio::join!(self.write_end(command, &changes, &entries), async {
            Run::from_command(command.clone())
        });
        if let Err(error) = written {
            // The caller gets its answer; the record follows when it can.
            detail.warnings.push(format!(
                "the end is not recorded yet, and will be: {}",
                Error::from(error).problem().detail
            ));
            let unrecorded = Command {
                detail: stored(&detail),
                ..command.clone()
            };
            end.send_replace(Some(Run::from_command(unrecorded)));
            self.write_until_done(command, &changes, &entries).await;
        }
        end.send_replace(Some(run));
    }

    pub(crate) async fn write_end(
        &self,
        command: &Command,
        changes: &Option<ChangesRow>,
        entries: &[Entry],
    ) -> Result<(), weighlock_store::Error> {
        let (command, entries) = (command.clone(), entries.to_vec());
        match changes {
            None => self.core.store.commands().update(command, entries).await,
            Some(row) => {
                let settled = self
                    .core
                    .store
                    .changes()
                    .settle(command, None, row.clone(), entries);
                settled.await.map(drop)
            }
        }
    }

    /// Writes an end, however long the disk is full or the database locked.
    pub(crate) async fn write_until_done(
        &self,
        command: &Command,
        changes: &Option<ChangesRow>,
        entries: &[Entry],
    ) {
        while let Err(error) = self.write_end(command, changes, entries).await {
            tracing::error!(run = command.id, %error, "cannot record the end of a run yet");
            tokio::time::sleep(RETRY_EVERY).await;
        }
    }
}
