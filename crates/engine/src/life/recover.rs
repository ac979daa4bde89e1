//! Settling what an earlier server left unfinished.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use weighlock_exec::{self as exec, Orphan, adopt};
use weighlock_store::{Command, State};
use weighlock_walls::SuspectRun;

use super::Life;
use super::follow::follow;
use crate::error::Error;
use crate::live::Live;
use crate::view::RunRecord;
use crate::view::{Reason, Run};

/// A keeper that lives but does not answer for so long is beyond help.
const PATIENCE: Duration = Duration::from_secs(10);

impl Life {
    /// Finds the keepers of all open runs. Afterwards each run is under
    /// control again, or has its true end, or is lost and says why.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), Error> {
        let open = self.core.store.commands().open()?;
        let detail = json!({ "version": env!("CARGO_PKG_VERSION"), "open_runs": open.len() });
        let entry = self.core.entry("server.started", "weighlock", None, detail);
        self.core.store.audit().record(vec![entry]).await?;
        // Runs that could make a blacklist may have, and may go on.
        let marked = self.walls.blacklist().is_marked();
        let maker = marked.then(|| self.suspect()).transpose()?;
        let mut tasks = JoinSet::new();
        for command in open {
            let life = Arc::clone(self);
            tasks.spawn(async move { life.find_keeper(command).await });
        }
        while tasks.join_next().await.is_some() {}
        drop(maker);
        Ok(())
    }

    /// Removes what an earlier server had recorded and not yet put away. The
    /// directories are listed before anything can begin; looking into them,
    /// which may take a while, need not be waited for.
    pub(crate) fn put_away_left(self: &Arc<Self>) {
        let below = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
        let runs = below(self.core.config.state_dir.join("runs")).flat_map(|day| below(day.path()));
        let runs: Vec<PathBuf> = runs.map(|run| run.path()).collect();
        let life = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            let left = runs.iter().filter(|dir| exec::is_left(dir));
            for dir in left {
                let id = dir.file_name().unwrap_or_default().to_string_lossy();
                // What cannot be looked up is left alone.
                let over = |found: Vec<Command>| found.iter().all(|command| !command.open);
                if life.lives.get(&id).is_none()
                    && life.core.store.commands().named(&id).is_ok_and(over)
                {
                    life.shells.forget_nonce(&id);
                    exec::forget(dir);
                }
            }
        });
    }

    /// Begins what was approved when an earlier server ended, and goes on with
    /// what was held and is not any more.
    pub(crate) async fn begin_unbegun(self: &Arc<Self>) -> Result<(), Error> {
        for (command, kept) in self.core.store.pending().ready()? {
            if command.state == State::Waiting {
                self.begin_left_over(command, kept).await?;
            }
        }
        self.let_go().await
    }

    fn suspect(&self) -> Result<SuspectRun, Error> {
        let guard = self.walls.blacklist();
        guard.suspect_run().map_err(Error::file(guard.dir()))
    }

    async fn find_keeper(self: Arc<Self>, mut command: Command) {
        if self.drafts.recover_undo(&command).await {
            return;
        }
        let dir = self.core.run_dir(&command.id);
        match tokio::time::timeout(PATIENCE, adopt(&dir)).await {
            Ok(Ok(Orphan::Running(job))) => {
                let place = self.places.count(&command.requested_by);
                let live = Live::new(job, self.core.config.output_per_run, place, None, vec![]);
                let run = Run::from_command(command.clone());
                let live = Arc::new(live.with_terminal(&run, self.shells.kept_nonce(&run)));
                // Nobody knows any more what was typed before.
                live.unknown.store(true, Ordering::Relaxed);
                self.shells.settle_keyboard(&live, &run).await;
                self.lives.insert(&command.id, Arc::clone(&live));
                // One that has written nothing has its size nevertheless.
                self.shells.look_into_diary(&live, &run);
                let answered = live.job.status().output.bytes();
                self.shells.show_from(&live, &run, answered);
                let marked = self.walls.blacklist().is_marked();
                let maker = marked.then(|| self.suspect().ok()).flatten();
                tokio::spawn(async move {
                    follow(self, live, command).await;
                    drop(maker);
                });
            }
            Ok(Ok(Orphan::Ended(status))) => {
                let nobody = tokio::sync::watch::Sender::new(None);
                self.learn(&mut command, &status, None, &nobody).await;
                self.retention.put_away(&command);
            }
            Ok(Ok(Orphan::Dead(status))) => {
                let nobody = tokio::sync::watch::Sender::new(None);
                self.bury(&mut command, *status, None, &nobody).await;
            }
            Ok(Ok(Orphan::NeverBegan)) => {
                let reason = Reason::new(
                    "never_began",
                    "The server ended before the command was started. Nothing was run.",
                )
                .with_remedy("Run it again.");
                self.settle(command, State::Lost, reason).await;
            }
            Ok(Err(error)) => {
                self.lose(command, &format!("its files cannot be read ({error})"))
                    .await;
            }
            Err(_) => {
                self.lose(command, "its keeper does not answer").await;
            }
        }
    }
}
