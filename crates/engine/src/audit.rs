//! The audit as doors read it: entries, events, the export, and whether the
//! chain is whole.

use std::io::Write;
use std::sync::Arc;

use weighlock_notify::Notifier;
use weighlock_store::{EntryFilter, Histogram, Verified};

use crate::core::Core;
use crate::error::Error;
use crate::events::Events;
use crate::principal::{Principal, Right};
use crate::view::Run;

/// Reads the audit for those who may; see [`Engine::audit`](crate::Engine::audit).
pub struct Audit {
    core: Arc<Core>,
    notifier: Arc<Notifier>,
}

impl Audit {
    pub(crate) fn new(core: Arc<Core>, notifier: Arc<Notifier>) -> Self {
        Self { core, notifier }
    }

    /// Checks the audit's chain. Administrators are notified of a fault through
    /// their webhooks.
    pub async fn verify(&self, who: &Principal) -> Result<Verified, Error> {
        who.check(Right::Review)?;
        self.verify_chain().await
    }

    /// Checks the audit's chain on behalf of the server itself.
    pub(crate) async fn verify_chain(&self) -> Result<Verified, Error> {
        let store = Arc::clone(&self.core.store);
        let verified = tokio::task::spawn_blocking(move || store.audit().verify());
        let verified = verified.await.expect("verifying does not panic")?;
        if let Some(fault) = &verified.fault {
            self.notifier.report_fault(fault.seq, &fault.what).await?;
        }
        Ok(verified)
    }

    /// Returns whether somebody may have the whole audit.
    pub fn may_export(&self, who: &Principal) -> Result<(), Error> {
        who.check(Right::Review)
    }

    /// Writes the whole audit as JSON Lines and returns how many entries.
    pub fn export(&self, to: &mut impl Write, who: &Principal) -> Result<u64, Error> {
        self.may_export(who)?;
        Ok(self.core.store.audit().export(to)?)
    }

    /// Returns audit entries, oldest first.
    pub fn entries(
        &self,
        filter: &EntryFilter,
        who: &Principal,
    ) -> Result<Vec<serde_json::Value>, Error> {
        who.check(Right::Review)?;
        Ok(self.core.store.audit().entries(filter)?)
    }

    /// Returns the audit entries of a run, oldest first.
    pub fn entries_of(&self, run: &Run) -> Result<Vec<serde_json::Value>, Error> {
        Ok(self.core.store.audit().entries(&EntryFilter {
            run: Some(run.command_id.clone()),
            limit: i64::MAX as usize,
            ..EntryFilter::default()
        })?)
    }

    /// Streams what happens from now on; or from after an earlier event on.
    pub fn events(&self, after: Option<u64>, who: &Principal) -> Result<Events, Error> {
        Events::open(&self.core, after, who)
    }

    /// Returns how long the store takes to commit.
    pub fn commit_times(&self) -> &Histogram {
        self.core.store.commits()
    }
}
