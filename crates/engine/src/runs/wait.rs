//! What can be done with a run while it is under way: it is waited for, fed and
//! stopped.

use std::time::Duration;

use weighlock_store::State;

use super::Runs;
use crate::error::Error;
use crate::principal::{Principal, Right};
use crate::view::{Load, Run};

impl Runs {
    /// Waits for a run to end, at most for a time, and returns it as it is
    /// then. What has not begun is waited for too.
    pub async fn wait(&self, run: &Run, time: Option<Duration>) -> Result<Run, Error> {
        let until = time.map(|time| tokio::time::Instant::now() + time);
        loop {
            let live = self.lives.get(&run.command_id);
            // Whoever waits for an answer about changes waits for no end.
            let live =
                live.filter(|live| run.state != State::Waiting || live.end.borrow().is_none());
            if let Some(live) = live {
                let mut end = live.end.subscribe();
                let ended = end.wait_for(Option::is_some);
                let ended = before(until, ended).await.and_then(Result::ok);
                return match ended.and_then(|run| run.clone()) {
                    Some(run) => Ok(run),
                    None => self.recall(&run.command_id),
                };
            }
            // Before looking, so that nothing is told in between.
            let mut waiter = self.waiters.wait_for(&run.command_id);
            let now = self.recall(&run.command_id)?;
            if self.lives.get(&run.command_id).is_some() && now.state == State::Running {
                continue;
            }
            let waits = match now.state {
                State::Waiting | State::Held => true,
                // Whoever has waited to run it itself waits no longer.
                State::Running if now.executor == "external" => run.state == State::Running,
                // It is just being started.
                State::Running => true,
                _ => false,
            };
            if !waits || before(until, waiter.told()).await.is_none() {
                return Ok(now);
            }
        }
    }

    /// Waits until nothing of a run is left, at most for a time.
    pub async fn closed(&self, run: &Run, time: Duration) -> Result<Run, Error> {
        if let Some(live) = self.lives.get(&run.command_id) {
            let mut over = live.over.subscribe();
            let _ = tokio::time::timeout(time, over.wait_for(|&over| over)).await;
        }
        self.recall(&run.command_id)
    }

    /// Hands input to a run that takes it.
    pub async fn feed(
        &self,
        run: &Run,
        bytes: &[u8],
        last: bool,
        by: &Principal,
    ) -> Result<(), Error> {
        if run.requested_by != by.name() {
            by.check(Right::Operate)?;
        }
        if run.detail.terminal.is_some() {
            return Err(Error::invalid(
                "invalid_line",
                "terminal input is judged before it is sent; nothing was sent".into(),
                "type at it: `weighlock term send`, or POST /terminals/{id}/input",
            ));
        }
        let ended = || Error::Ended {
            id: run.short_id.clone(),
        };
        let live = self.lives.get(&run.command_id).ok_or_else(ended)?;
        live.job.feed(bytes).await.map_err(|_| ended())?;
        if last {
            live.job.close_stdin().await.map_err(|_| ended())?;
        }
        Ok(())
    }

    /// Returns how many processes a run has now, and their resident memory.
    pub fn load(&self, run: &Run) -> Option<Load> {
        // One that has just ended may still be on its way out of `lives`.
        let live = self.lives.get(&run.command_id).filter(|_| run.open)?;
        let (processes, memory_bytes) = live.job.load();
        Some(Load {
            processes,
            memory_bytes,
        })
    }
}

/// Waits for something, at most until then.
async fn before<T>(
    until: Option<tokio::time::Instant>,
    what: impl Future<Output = T>,
) -> Option<T> {
    match until {
        None => Some(what.await),
        Some(until) => tokio::time::timeout_at(until, what).await.ok(),
    }
}
