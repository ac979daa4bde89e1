//! Keeping what is on disk within bounds.

use super::Life;
use crate::error::Error;

/// How long a request's key stands for its run, in microseconds: a day is
/// longer than anyone tries again.
const KEYS_FOR: i64 = 24 * 3600 * 1_000_000;

impl Life {
    /// Removes the oldest output while there is too much of it, or it is too
    /// old. The record of the run stays.
    pub(crate) async fn tidy(&self) -> Result<(), Error> {
        // Held to the end: a backup that begins meanwhile waits for this.
        let Some(_held) = self.archiver.try_hold_files() else {
            return Ok(());
        };
        let aged = self.retention.is_age_due();
        if aged {
            let now = self.core.steady_now();
            self.core
                .store
                .commands()
                .forget_keys(now - KEYS_FOR)
                .await?;
            self.core.store.logins().forget(now).await?;
            self.drafts.tidy_effects().await?;
            self.recordings.tidy();
            self.retention.tidy_output_files()?;
        }
        self.retention.tidy_output(aged).await?;
        if aged {
            self.retention.tidy_record().await?;
        }
        Ok(())
    }
}
