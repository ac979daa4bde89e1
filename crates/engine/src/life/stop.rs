//! Stopping a run.

use std::time::Duration;

use serde_json::json;
use weighlock_store::{Entry, State};

use super::{Life, Report};
use crate::error::Error;
use crate::mutex::lock;
use crate::principal::{Principal, Right};
use crate::view::Run;

impl Life {
    /// Asks a run to end: politely, and after the grace time by force.
    pub async fn stop(
        &self,
        run: &Run,
        by: &Principal,
        interrupt: bool,
        grace: Duration,
    ) -> Result<(), Error> {
        let ended = || Error::Ended {
            id: run.short_id.clone(),
        };
        if run.requested_by != by.name() {
            by.check(Right::Operate)?;
        }
        let typed = run.detail.in_terminal.is_some() && run.state == State::Running;
        let live = self.lives.get(&run.command_id);
        if live.is_none() && !typed {
            return Err(ended());
        }
        let entry = Entry {
            owner: Some(run.requested_by.clone()),
            sandbox: run.sandbox_id.clone(),
            ..self
                .core
                .entry("run.stop", by.name(), Some(&run.command_id), json!({}))
        };
        self.core.store.audit().record(vec![entry]).await?;
        let Some(live) = live else {
            return self.stop_typed(run, by).await;
        };
        lock(&live.stopped_by).get_or_insert_with(|| by.name().to_owned());
        live.job.stop(interrupt, grace).await.map_err(|_| ended())
    }

    /// Ends a command that is to be typed at a terminal, or was: it is not
    /// typed any more, or interrupted.
    pub(crate) async fn stop_typed(&self, run: &Run, by: &Principal) -> Result<(), Error> {
        let owner = Principal::library(run.requested_by.clone());
        let report = Report::failed(&format!(
            "stopped by {}; it may still run in the terminal",
            by.name()
        ));
        self.finalize(&run.command_id, report, &owner).await?;
        Ok(())
    }
}
