//! The emergency brake: new runs are held, not rejected, until somebody
//! resumes.

use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weighlock_store::{PauseRow, State};

use crate::engine::Engine;
use crate::error::{Error, brief};
use crate::mutex::lock;
use crate::principal::{Principal, Right};
use crate::time;

/// A pause that is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PauseView {
    /// Who is paused; everyone if absent.
    pub principal: Option<String>,
    /// Who has paused.
    pub by: String,
    /// Since when.
    pub since: String,
    /// Why, if that was said.
    pub reason: Option<String>,
}

/// The pauses in force.
#[derive(Default)]
pub(crate) struct Pauses(Mutex<Vec<PauseRow>>);

impl Pauses {
    /// Returns the pause that holds somebody's runs.
    pub(crate) fn of(&self, name: &str) -> Option<PauseRow> {
        let pauses = lock(&self.0);
        let holds = |pause: &&PauseRow| pause.principal.is_empty() || pause.principal == name;
        pauses.iter().find(holds).cloned()
    }
}

impl Engine {
    pub(crate) fn read_pauses(&self) -> Result<(), Error> {
        *lock(&self.pauses.0) = self.core.store.pauses()?;
        Ok(())
    }

    /// Returns the pauses in force.
    pub fn pauses(&self, who: &Principal) -> Vec<PauseView> {
        let pauses = lock(&self.pauses.0);
        let seen = pauses.iter().filter(|pause| {
            pause.principal.is_empty()
                || pause.principal == who.name()
                || who.check(Right::Review).is_ok()
        });
        seen.map(pause_view).collect()
    }

    /// Holds new runs: of one principal, or of all.
    pub async fn pause(
        &self,
        name: Option<&str>,
        reason: Option<String>,
        who: &Principal,
    ) -> Result<Vec<PauseView>, Error> {
        self.may_pause(name, who).await?;
        let row = PauseRow {
            principal: name.unwrap_or_default().to_owned(),
            by: who.name().to_owned(),
            since: self.core.clock.micros(),
            reason: reason.map(|reason| brief(&reason)),
        };
        let detail = json!({ "principal": name, "reason": row.reason });
        let entry = self
            .core
            .entry("principal.paused", who.name(), None, detail);
        self.core.store.pause(row, vec![entry]).await?;
        self.read_pauses()?;
        Ok(self.pauses(who))
    }

    /// Lets runs start again, and what was held go on.
    pub async fn resume(
        self: &Arc<Self>,
        name: Option<&str>,
        who: &Principal,
    ) -> Result<Vec<PauseView>, Error> {
        self.may_pause(name, who).await?;
        let detail = json!({ "principal": name });
        let entry = self
            .core
            .entry("principal.resumed", who.name(), None, detail);
        let key = name.unwrap_or_default().to_owned();
        self.core.store.resume(key, vec![entry]).await?;
        self.read_pauses()?;
        self.let_go_soon();
        Ok(self.pauses(who))
    }

    /// Goes on with what is held no more, while nobody waits for it.
    pub(crate) fn let_go_soon(self: &Arc<Self>) {
        let engine = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = engine.let_go().await {
                tracing::error!(%error, "held runs could not all go on");
            }
        });
    }

    async fn may_pause(&self, name: Option<&str>, who: &Principal) -> Result<(), Error> {
        if who.is_agent() {
            return Err(self.core.refuse_agent("pause or resume", name, who).await);
        }
        who.check(Right::Operate)?;
        match name {
            Some(name) => self.core.find_person(name, who).map(drop),
            None if who.is_everywhere() => Ok(()),
            None => Err(Error::Forbidden {
                name: who.name().into(),
                role: who.role().word(),
                needs: "operator for all sandboxes",
            }),
        }
    }

    /// Goes on with what is held no more.
    pub(crate) async fn let_go(self: &Arc<Self>) -> Result<(), Error> {
        for (command, request) in self.core.store.unbegun()? {
            if command.state == State::Held && self.pauses.of(&command.requested_by).is_none() {
                self.go_on(command, request).await;
            }
        }
        Ok(())
    }
}

fn pause_view(pause: &PauseRow) -> PauseView {
    PauseView {
        principal: Some(pause.principal.clone()).filter(|name| !name.is_empty()),
        by: pause.by.clone(),
        since: time(pause.since),
        reason: pause.reason.clone(),
    }
}
