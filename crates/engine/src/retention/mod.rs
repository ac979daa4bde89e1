//! Keeping the output of all runs together within bounds, and the record.
//!
//! | subject | methods |
//! |---|---|
//! | how much is kept | [`Retention::kept`], [`Retention::ended_bytes`], [`Retention::output_bytes`] |
//! | room for the output of a run | [`Retention::grant_bytes`], [`Retention::count_kept`], [`Retention::uncount_kept`] |
//! | removing what is old, or too much | [`Retention::tidy_output`], [`Retention::tidy_record`], [`Retention::tidy_output_files`] |
//! | a run that is over | [`Retention::settle`], [`Retention::put_away`], [`Retention::forget_output`] |

mod close;
mod kept;
mod task_files;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use weighlock_store::{Command, Entry};

pub use self::kept::{Kept, KeptPart};
use crate::core::Core;
use crate::error::Error;
use crate::limits::RuntimeLimits;
use crate::live::Lives;
use crate::runs::Runs;
use crate::shells::Shells;
use crate::view::RunRecord;
use crate::view::{Run, stored};

/// A run gets at least this much room for its output, however many run.
const LEAST: u64 = 256 * 1024;

/// How often old output is looked for.
const AGE_EVERY_SECONDS: u64 = 60;

/// How often the record's oldest part is removed.
const RECORD_EVERY: Duration = Duration::from_secs(24 * 3600);

/// How many runs are looked at in one go.
const BATCH: i64 = 100;

/// Counts the output of runs, and removes what is old; see
/// [`Engine::retention`](crate::Engine::retention).
pub struct Retention {
    core: Arc<Core>,
    limits: Arc<RuntimeLimits>,
    lives: Arc<Lives>,
    runs: Arc<Runs>,
    shells: Arc<Shells>,
    /// Bytes of output on disk, of runs that have ended.
    kept: AtomicU64,
    /// Seconds after the start when old output was last looked for.
    aged_at: AtomicU64,
    /// Held while output is removed.
    tidying: tokio::sync::Mutex<()>,
}

impl Retention {
    pub(crate) fn open(
        core: Arc<Core>,
        limits: Arc<RuntimeLimits>,
        lives: Arc<Lives>,
        runs: Arc<Runs>,
        shells: Arc<Shells>,
    ) -> Result<Self, Error> {
        Ok(Self {
            kept: AtomicU64::new(core.store.commands().kept_bytes()?),
            aged_at: AtomicU64::new(0),
            tidying: tokio::sync::Mutex::default(),
            core,
            limits,
            lives,
            runs,
            shells,
        })
    }

    /// Returns how many bytes of output runs that have ended have on disk.
    pub(crate) fn ended_bytes(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Returns how many bytes of output all runs have on disk.
    pub(crate) fn output_bytes(&self) -> u64 {
        self.ended_bytes() + self.lives.used()
    }

    /// Returns how many bytes of output a new run may keep. Each gets at most
    /// a quarter of what is not promised yet, so that many floods at once stay
    /// within the bound that is meant for all of them.
    pub(crate) fn grant_bytes(&self) -> u64 {
        let free = { self.limits.output_total() }.saturating_sub(self.lives.reserved());
        self.core.config.output_per_run.min(free / 4).max(LEAST)
    }

    pub(crate) async fn tidy_output(&self, aged: bool) -> Result<(), Error> {
        let oldest = self.core.steady_now() - self.limits.output_age().as_micros() as i64;
        // Many runs that end at once would each remove the same, and count it
        // as often.
        let _one = self.tidying.lock().await;
        loop {
            let candidates = if self.is_over() || aged {
                self.core.store.commands().oldest_kept(BATCH)?
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

    /// Removes the record of what was over long ago. Once a day is often enough,
    /// and each time leaves an entry.
    pub(crate) async fn tidy_record(&self) -> Result<(), Error> {
        let age = self.core.config.record_age;
        let slack = (age / 16).min(RECORD_EVERY);
        let now = self.core.steady_now();
        let before = |age: Duration| now.saturating_sub(age.as_micros() as i64);
        let due = self.core.store.audit().oldest_time()?;
        if due.is_none_or(|oldest| oldest >= before(age + slack)) {
            return Ok(());
        }
        loop {
            let gone = { &self.core.store }
                .audit()
                .forget(before(age), self.core.clock.micros());
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
        self.output_bytes() > self.limits.output_total()
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
        let removed = { &self.core.store }
            .commands()
            .amend(&command.id, move |command| {
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
            .commands()
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
    pub(crate) fn is_age_due(&self) -> bool {
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
