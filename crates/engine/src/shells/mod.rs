//! What is kept and recorded of a terminal while its run goes on: the secret of
//! its shell, its screen, its diary, and its entries in the audit.
//!
//! | subject | methods |
//! |---|---|
//! | the secret by which a shell tells where it is | [`Shells::kept_nonce`], [`Shells::forget_nonce`] |
//! | its screen | [`Shells::show_from`], [`Shells::look_into_diary`] |
//! | its entries | [`Shells::record_terminal`], [`Shells::record_opened`], [`Shells::record_closed`] |
//! | a keyboard that an earlier server left taken | [`Shells::settle_keyboard`] |

mod left;
mod show;
mod startup;

use std::sync::Arc;

use serde_json::json;
use weighlock_store::Entry;

pub(crate) use self::left::{Said, TOOK};
pub(crate) use self::startup::{keep_nonce, plain_shell, startup};
use crate::core::Core;
use crate::error::Error;
use crate::live::{Live, Lives, mark};
use crate::output::Outputs;
use crate::principal::Principal;
use crate::view::Run;

/// Keeps and records what belongs to terminals that are open.
pub(crate) struct Shells {
    core: Arc<Core>,
    lives: Arc<Lives>,
    outputs: Arc<Outputs>,
}

impl Shells {
    pub(crate) fn new(core: Arc<Core>, lives: Arc<Lives>, outputs: Arc<Outputs>) -> Self {
        Self {
            core,
            lives,
            outputs,
        }
    }
}

impl Shells {
    /// Shows what the diary says before there is more output.
    pub(crate) fn look_into_diary(&self, live: &Live, run: &Run) {
        if let Some(shown) = &live.shown {
            shown.read_diary(&self.core.run_dir(&run.command_id));
        }
    }

    pub(crate) fn terminal_entry(
        &self,
        kind: &'static str,
        run: &Run,
        who: &str,
        said: serde_json::Value,
    ) -> Entry {
        Entry {
            owner: Some(run.requested_by.clone()),
            sandbox: run.sandbox_id.clone(),
            ..self.core.entry(kind, who, Some(&run.command_id), said)
        }
    }

    pub(crate) async fn record_terminal(
        &self,
        kind: &'static str,
        run: &Run,
        who: &Principal,
        said: serde_json::Value,
    ) -> Result<(), Error> {
        self.core.check_quota(who.name()).await?;
        let entry = self.terminal_entry(kind, run, who.name(), said);
        Ok(self.core.store.audit().record(vec![entry]).await?)
    }

    /// Tells that a terminal is there.
    pub(crate) async fn record_opened(&self, run: &Run) {
        self.tell_of_terminal("terminal.opened", run).await;
        if let (Some(by), Some(live)) = (&run.approved_by, self.lives.get(&run.command_id)) {
            mark(&live, "approval", format!("approved by {by}")).await;
        }
    }

    /// Tells that it is not there any more.
    pub(crate) async fn record_closed(&self, run: &Run) {
        self.tell_of_terminal("terminal.closed", run).await;
    }

    pub(crate) async fn tell_of_terminal(&self, kind: &'static str, run: &Run) {
        let Some(terminal) = &run.detail.terminal else {
            return;
        };
        let entry = self.terminal_entry(
            kind,
            run,
            &run.requested_by,
            json!({ "name": terminal.name }),
        );
        // The run itself is on record.
        if let Err(error) = self.core.store.audit().record(vec![entry]).await {
            tracing::warn!(run = run.command_id, %error, "cannot tell of a terminal");
        }
    }
}
