//! Keeping the output of all runs together within bounds, and the record.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use weighlock_store::{Command, Entry};

use crate::engine::Engine;
use crate::error::Error;
use crate::view::RunRecord;
use crate::view::{Run, stored};

/// A run gets at least this much room for its output, however many run.
const LEAST: u64 = 256 * 1024;

/// How often old output is looked for.
const AGE_EVERY_SECONDS: u64 = 60;

/// How long a request's key stands for its run, in microseconds: a day is
/// longer than anyone tries again.
const KEYS_FOR: i64 = 24 * 3600 * 1_000_000;

/// How often the record's oldest part is removed.
const RECORD_EVERY: Duration = Duration::from_secs(24 * 3600);

/// How many runs are looked at in one go.
const BATCH: i64 = 100;

impl Engine {
    /// Returns how many bytes of output a new run may keep: at most a quarter
    /// of what is not reserved yet, so that many large outputs at once stay
    /// within the limit for all.
    pub(crate) fn grant_bytes(&self) -> u64 {
        let free = { self.limits.output_total() }.saturating_sub(self.lives.reserved());
        self.core.config.output_per_run.min(free / 4).max(LEAST)
    }

    /// Removes the oldest output while there is too much of it, or it is too
    /// old. The record of the run stays.
    pub(crate) async fn tidy(&self) -> Result<(), Error> {
        // Held to the end: a backup that begins meanwhile waits for this.
        let Some(_held) = self.archiver.try_hold_files() else {
            return Ok(());
        };
        let aged = self.is_age_due();
        if aged {
            let now = self.core.steady_now();
            self.core.store.forget_keys(now - KEYS_FOR).await?;
            self.core.store.forget_logins(now).await?;
            self.tidy_effects().await?;
            self.recordings.tidy();
            self.tidy_output_files()?;
        }
        self.tidy_output(aged).await?;
        if aged {
            self.tidy_record().await?;
        }
        Ok(())
    }

    async fn tidy_output(&self, aged: bool) -> Result<(), Error> {
        let oldest = self.core.steady_now() - self.limits.output_age().as_micros() as i64;
        // Many runs that end at once would each remove the same, and count it
        // as often.
        let _one = self.tidying.lock().await;
        loop {
            let candidates = if self.is_over() || aged {
                self.core.store.oldest_kept(BATCH)?
            } else {
                vec![]
            };
            if candidates.is_empty() {
                return Ok(());
            }
            for command in candidates {
                if !self.is_over() && command.created_at >= oldest {
                    return Ok(());
                }
                self.remove_output(command).await?;
            }
        }
    }

    /// Removes records older than the retention period. Once a day is often
    /// enough, and each time adds an audit entry.
    async fn tidy_record(&self) -> Result<(), Error> {
        let age = self.core.config.record_age;
        let slack = (age / 16).min(RECORD_EVERY);
        let now = self.core.steady_now();
        let before = |age: Duration| now.saturating_sub(age.as_micros() as i64);
        let due = self.core.store.oldest_time()?;
        if due.is_none_or(|oldest| oldest >= before(age + slack)) {
            return Ok(());
        }
        loop {
            let gone = { &self.core.store }.forget(before(age), self.core.clock.micros());
            let gone = gone.await?;
            for id in &gone.commands {
                let _ = std::fs::remove_dir_all(self.core.run_dir(id));
            }
            if gone.entries == 0 {
                return Ok(());
            }
            tracing::info!(entries = gone.entries, "removed what is old of the record");
        }
    }

    fn is_over(&self) -> bool {
        self.kept.load(Ordering::Relaxed) + self.lives.used() > self.limits.output_total()
    }

    /// Counts the output of a run that has ended. Before that is on record:
    /// what is on record may be removed at once, and is then taken off.
    pub(crate) fn count_kept(&self, command: &Command) {
        if let Some(live) = self.lives.get(&command.id) {
            live.counted.store(true, Ordering::Relaxed);
        }
        self.kept.fetch_add(command.kept_bytes, Ordering::Relaxed);
    }

    async fn remove_output(&self, command: Command) -> Result<(), Error> {
        let _ = std::fs::remove_dir_all(self.core.run_dir(&command.id));
        self.remove_output_file(&Run::from_command(command.clone()));
        let entry = self
            .core
            .entry("output.removed", "weighlock", Some(&command.id), json!({}));
        // It may have been decided about since it was looked at.
        let removed = { &self.core.store }.amend(&command.id, move |command| {
            let bytes = without_output(command, true);
            let detail = json!({ "bytes": bytes });
            (bytes, vec![Entry { detail, ..entry }])
        });
        self.uncount_kept(removed.await?.unwrap_or_default());
        Ok(())
    }

    /// Removes the output of a run that is to begin anew.
    pub(crate) async fn forget_output(&self, run: &str) -> Result<(), Error> {
        let _one = self.tidying.lock().await;
        let _ = std::fs::remove_dir_all(self.core.run_dir(run));
        let removed = { &self.core.store }
            .amend(run, |command| (without_output(command, false), vec![]))
            .await?;
        self.uncount_kept(removed.unwrap_or_default());
        Ok(())
    }

    pub(crate) fn uncount_kept(&self, bytes: u64) {
        let left = |kept: u64| Some(kept.saturating_sub(bytes));
        let _ = { &self.kept }.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
    }

    /// Age is looked at once in a while: nothing gets old in a moment, and
    /// this is on the path of every run.
    fn is_age_due(&self) -> bool {
        let now = self.core.uptime().as_secs();
        let last = self.aged_at.load(Ordering::Relaxed);
        let due = last == 0 || now >= last + AGE_EVERY_SECONDS;
        if due {
            self.aged_at.store(now.max(1), Ordering::Relaxed);
        }
        due
    }
}

/// Makes a command one whose output is not on disk, and returns how much was.
fn without_output(command: &mut Command, for_room: bool) -> u64 {
    let mut detail = Run::from_command(command.clone()).detail;
    detail.output_file = None;
    detail.output.removed = for_room;
    detail.output.kept_bytes = 0;
    command.detail = stored(&detail);
    std::mem::take(&mut command.kept_bytes)
}
