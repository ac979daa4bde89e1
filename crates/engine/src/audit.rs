//! The audit: its entries as they are made, and the record as it is read.

use std::io::Write;
use std::sync::Arc;

use weighlock_store::{Approval, Command, Entry, EntryFilter, Verified};

use crate::engine::Engine;
use crate::error::Error;
use crate::principal::{Principal, Right};
use crate::view::Run;

/// Actors that are no principals: what they record is charged to whose command
/// it is about.
const OURS: [&str; 2] = ["weighlock", "policy"];

impl Engine {
    /// Checks the audit's chain.
    /// Administrators are told of a fault, wherever they are.
    pub async fn verify(self: &Arc<Self>, who: &Principal) -> Result<Verified, Error> {
        who.check(Right::Review)?;
        self.verified().await
    }

    pub(crate) async fn verified(self: &Arc<Self>) -> Result<Verified, Error> {
        let engine = Arc::clone(self);
        let verified = tokio::task::spawn_blocking(move || engine.store.verify());
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
        Ok(self.store.export(to)?)
    }

    /// Returns audit entries, oldest first.
    pub fn entries(
        &self,
        filter: &EntryFilter,
        who: &Principal,
    ) -> Result<Vec<serde_json::Value>, Error> {
        who.check(Right::Review)?;
        Ok(self.store.entries(filter)?)
    }

    /// Returns the audit entries of a run, oldest first.
    pub fn entries_of(&self, run: &Run) -> Result<Vec<serde_json::Value>, Error> {
        Ok(self.store.entries(&EntryFilter {
            run: Some(run.command_id.clone()),
            limit: i64::MAX as usize,
            ..EntryFilter::default()
        })?)
    }

    /// An entry about what happens now.
    pub(crate) fn entry(
        &self,
        kind: &'static str,
        actor: &str,
        run: Option<&str>,
        detail: serde_json::Value,
    ) -> Entry {
        if !OURS.contains(&actor) {
            self.charge_entry(actor, &detail);
        }
        Entry {
            time: self.clock.micros(),
            kind,
            actor: actor.to_owned(),
            run: run.map(str::to_owned),
            detail,
            ..Entry::default()
        }
    }

    /// The same about a command.
    pub(crate) fn entry_of(
        &self,
        kind: &'static str,
        actor: &str,
        command: &Command,
        detail: serde_json::Value,
    ) -> Entry {
        if OURS.contains(&actor) {
            self.charge_entry(&command.requested_by, &detail);
        }
        Entry {
            sandbox: command.sandbox.clone(),
            owner: Some(command.requested_by.clone()),
            ..self.entry(kind, actor, Some(&command.id), detail)
        }
    }

    /// The same about an approval.
    pub(crate) fn entry_about(
        &self,
        kind: &'static str,
        actor: &str,
        approval: &Approval,
        detail: serde_json::Value,
    ) -> Entry {
        Entry {
            sandbox: Some(approval.sandbox.clone()),
            owner: Some(approval.requested_by.clone()),
            ..self.entry(kind, actor, None, detail)
        }
    }

    /// The same about a sandbox.
    pub(crate) fn entry_in(
        &self,
        kind: &'static str,
        who: &Principal,
        sandbox: &str,
        detail: serde_json::Value,
    ) -> Entry {
        Entry {
            sandbox: Some(sandbox.to_owned()),
            ..self.entry(kind, who.name(), None, detail)
        }
    }
}
