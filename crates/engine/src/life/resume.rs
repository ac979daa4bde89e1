//! Ending a pause: what was held goes on.

use std::sync::Arc;

use weighlock_store::State;

use super::Life;
use crate::error::Error;
use crate::pause::PauseView;
use crate::principal::Principal;

impl Life {
    /// Lets runs start again, and what was held go on.
    pub async fn resume(
        self: &Arc<Self>,
        name: Option<&str>,
        who: &Principal,
    ) -> Result<Vec<PauseView>, Error> {
        self.pauses.lift(name, who).await?;
        self.let_go_soon();
        Ok(self.pauses.list(who))
    }

    /// Goes on with what is held no more, while nobody waits for it.
    pub(crate) fn let_go_soon(self: &Arc<Self>) {
        let life = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = life.let_go().await {
                tracing::error!(%error, "held runs could not all go on");
            }
        });
    }

    /// Goes on with what is held no more.
    pub(crate) async fn let_go(self: &Arc<Self>) -> Result<(), Error> {
        for (command, request) in self.core.store.pending().ready()? {
            if command.state == State::Held && self.pauses.of(&command.requested_by).is_none() {
                self.go_on(command, request).await;
            }
        }
        Ok(())
    }
}
