//! The emergency brake: new runs are held, not rejected, until somebody
//! resumes.

use std::sync::{Arc, Mutex};

use serde_json::json;
pub use weighlock_api::PauseView;
use weighlock_store::PauseRow;

use crate::core::Core;
use crate::error::{Error, brief};
use crate::mutex::lock;
use crate::principal::{Principal, Right};
use crate::time;

/// The pauses in force; see [`Engine::pauses`](crate::Engine::pauses).
pub struct Pauses {
    core: Arc<Core>,
    rows: Mutex<Vec<PauseRow>>,
}

impl Pauses {
    /// Reads the pauses of the store.
    pub(crate) fn open(core: Arc<Core>) -> Result<Self, Error> {
        let rows = Mutex::new(core.store.pauses().all()?);
        Ok(Self { core, rows })
    }

    /// Returns the pause that holds somebody's runs.
    pub(crate) fn of(&self, name: &str) -> Option<PauseRow> {
        let pauses = lock(&self.rows);
        let holds = |pause: &&PauseRow| pause.principal.is_empty() || pause.principal == name;
        pauses.iter().find(holds).cloned()
    }

    /// Returns the pauses in force.
    pub fn list(&self, who: &Principal) -> Vec<PauseView> {
        let pauses = lock(&self.rows);
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
        self.check_right(name, who).await?;
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
        self.core.store.pauses().begin(row, vec![entry]).await?;
        self.reload()?;
        Ok(self.list(who))
    }

    /// Ends a pause. What was held is not started by this; see
    /// [`Life::resume`](crate::Life::resume).
    pub(crate) async fn lift(&self, name: Option<&str>, who: &Principal) -> Result<(), Error> {
        self.check_right(name, who).await?;
        let detail = json!({ "principal": name });
        let entry = self
            .core
            .entry("principal.resumed", who.name(), None, detail);
        let key = name.unwrap_or_default().to_owned();
        self.core.store.pauses().end(key, vec![entry]).await?;
        self.reload()
    }

    fn reload(&self) -> Result<(), Error> {
        *lock(&self.rows) = self.core.store.pauses().all()?;
        Ok(())
    }

    async fn check_right(&self, name: Option<&str>, who: &Principal) -> Result<(), Error> {
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
}

fn pause_view(pause: &PauseRow) -> PauseView {
    PauseView {
        principal: Some(pause.principal.clone()).filter(|name| !name.is_empty()),
        by: pause.by.clone(),
        since: time(pause.since),
        reason: pause.reason.clone(),
    }
}
