//! What every room of the engine stands on: the settings, the clock, the store,
//! new ids, and the entries of the audit.
//!
//! `Core` knows no room. It is shared as an `Arc`, and everything that a room
//! records goes through [`Core::entry`], so that each principal is charged for
//! what they have written.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::json;
use weighlock_store::{Approval, Clock, Command, Entry, Filter, PrincipalRow, Store};

use crate::config::Config;
use crate::error::{Error, brief};
use crate::id::{self, Ids};
use crate::principal::Principal;
use crate::quota::{self, Quota};

/// Actors that are no principals: what they record is charged to whose command
/// it is about.
const OURS: [&str; 2] = ["weighlock", "policy"];

/// Settings, clock, store and ids, and the making of audit entries.
pub(crate) struct Core {
    /// What the engine was given at its start, resolved.
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) store: Arc<Store>,
    pub(crate) ids: Ids,
    /// How much of the record each principal may fill.
    quota: Quota,
    began: Instant,
    /// What the wall clock said then.
    began_at: i64,
    /// Held as long as any part lives: one engine for one state directory.
    _lock: File,
}

impl Core {
    /// Continues the ids after the newest run of the store.
    pub(crate) fn new(
        config: Config,
        clock: Clock,
        store: Arc<Store>,
        lock: File,
    ) -> Result<Self, Error> {
        let newest = store.commands().newest_id()?;
        Ok(Self {
            quota: Quota::new(config.record_quota),
            ids: Ids::after(newest.as_deref()),
            began: Instant::now(),
            began_at: clock.micros(),
            config,
            clock,
            store,
            _lock: lock,
        })
    }

    /// Returns how long the engine has been there.
    pub(crate) fn uptime(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the time by a clock that nobody has set since the start, in
    /// microseconds since 1970.
    pub(crate) fn unset_now(&self) -> i64 {
        self.began_at + self.began.elapsed().as_micros() as i64
    }

    /// Returns the wall clock's time, unless it jumped ahead since the start:
    /// then nothing is thrown away on its word.
    pub(crate) fn steady_now(&self) -> i64 {
        self.clock.micros().min(self.unset_now())
    }

    /// Returns whether a file was last written to longer ago than `age`.
    pub(crate) fn is_old(&self, file: &Path, age: Duration) -> bool {
        let written = file.metadata().and_then(|meta| meta.modified());
        let written = written.map(|written| written.duration_since(UNIX_EPOCH));
        let Ok(Ok(written)) = written else {
            return false;
        };
        self.steady_now() - written.as_micros() as i64 > age.as_micros() as i64
    }

    /// Returns the directory of a run's files.
    pub(crate) fn run_dir(&self, id: &str) -> PathBuf {
        self.config
            .state_dir
            .join("runs")
            .join(id::day(id).to_string())
            .join(id)
    }

    /// Lists the commands that somebody may see, newest first.
    pub(crate) fn list_visible(
        &self,
        filter: Filter,
        who: &Principal,
    ) -> Result<Vec<Command>, Error> {
        Ok(self.store.commands().list(&Filter {
            visible: who.visible(),
            ..filter
        })?)
    }

    /// Finds a person or an agent that `who` may see.
    pub(crate) fn find_person(&self, name: &str, who: &Principal) -> Result<PrincipalRow, Error> {
        let is_open = !who.is_agent() && who.sandboxes().is_none();
        let row = if name == who.name() || is_open || who.is_administrator() {
            self.store.principals().named(name)?
        } else {
            None
        };
        row.ok_or_else(|| Error::NoSuchPerson { name: brief(name) })
    }

    /// Refuses an agent what only people may do, and records the attempt with
    /// what it was about.
    pub(crate) async fn refuse_agent(
        &self,
        what: &str,
        about: Option<&str>,
        who: &Principal,
    ) -> Error {
        let about = about.map(brief);
        let detail = json!({ "what": what, "about": about, "origin": who.origin() });
        // Whoever has filled their part of the record is refused all the same.
        if self.check_quota(who.name()).await.is_ok() {
            let entry = self.entry("agent.refused", who.name(), None, detail);
            if let Err(error) = self.store.audit().record(vec![entry]).await {
                tracing::error!(%error, "cannot record a refusal");
            }
        }
        Error::NeverAgents {
            what: what.to_owned(),
        }
    }

    /// Makes an entry about what happens now.
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

    /// Makes an entry about a command.
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

    /// Makes an entry about an approval.
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

    /// Makes an entry about a sandbox.
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

    /// Charges somebody for bytes that are about to be recorded.
    pub(crate) fn charge(&self, who: &str, bytes: u64) {
        self.quota.charge(who, bytes, Instant::now());
    }

    /// Charges somebody for an entry.
    pub(crate) fn charge_entry(&self, who: &str, detail: &serde_json::Value) {
        self.charge(who, quota::entry_size(detail));
    }

    /// Refuses somebody who has filled their part of the record. That is
    /// recorded once in an hour, and nothing else of them.
    pub(crate) async fn check_quota(&self, who: &str) -> Result<(), Error> {
        let Err(empty) = self.quota.check(who, Instant::now()) else {
            return Ok(());
        };
        let hourly = self.config.record_quota;
        if empty.is_news {
            let detail = json!({ "bytes_per_hour": hourly });
            let entry = self.entry("principal.over_quota", who, None, detail);
            if let Err(error) = self.store.audit().record(vec![entry]).await {
                tracing::error!(%error, "cannot record that somebody is over their quota");
            }
        }
        Err(Error::OverQuota {
            name: who.to_owned(),
            mib: hourly / (1024 * 1024),
            minutes: empty.wait.as_secs().div_ceil(60),
        })
    }
}
