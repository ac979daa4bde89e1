//! Applying what a person has seen, exactly once, or throwing it away.

use std::fs;
use std::path::Path;

use serde_json::json;
use weighlock_effects::{
    Applied, Changes, CommitError, Kind, Place, commit, is_applied, is_unfinished, recover,
};
use weighlock_policy::{ChangesSettled, CommitPermit};
use weighlock_store::{ApprovalState, ChangesRow, ChangesState, Command, Durability, State};

use super::Drafts;
use super::question::Looked;
use crate::copied::{Copied, apart};
use crate::error::Error;
use crate::id;
use crate::measures::SETTLED;
use crate::principal::Principal;
use crate::runs::RETRY_EVERY;
use crate::view::ChangesRecord;
use crate::view::ChangesView;
use crate::view::RunRecord;
use crate::view::{Reason, Run, stored};

impl Drafts {
    /// Applies changes, or nothing of them. Whoever calls it holds
    /// `committing`, and where somebody else could settle them, until what
    /// became of them is on record.
    pub(super) async fn commit_now(
        &self,
        run: &str,
        changes: &Changes,
        permit: CommitPermit,
    ) -> Result<Applied, CommitError> {
        let others = self.lives.ids();
        let place = Place {
            dir: self.undo_dir(run),
            durable: self.core.config.durability == Durability::Power,
            alone: others.iter().all(|other| other == run) && !self.copies.is_copy_seen(run),
        };
        let applying = changes.clone();
        let applied = apart(move || commit(&applying, permit, &place)).await?;
        if let Ok(Some(copied)) = Copied::load(&self.copy_dir(run))
            && copied.closed
        {
            let made = { changes.entries.iter() }.filter(|change| change.kind == Kind::Created);
            let made = made.filter_map(|change| {
                let root = changes.roots.get(change.root)?;
                Some((root.live.clone(), change.path.path().to_owned()))
            });
            self.walls.remember_created(made);
        }
        Ok(applied)
    }

    /// Returns whether a command waits for an answer about its changes.
    pub(crate) fn holds_changes(&self, run: &str) -> Result<bool, Error> {
        let row = self.core.store.changes().of_run(run)?;
        Ok(row.is_some_and(|row| row.state == ChangesState::Held))
    }

    /// Applies what a person has approved, or says on its record why that
    /// cannot be.
    pub(crate) async fn apply_approved(&self, command: Command, by: &str) -> Result<(), Error> {
        match self.apply_held(command.clone(), by).await {
            Err(Error::Conflicts { paths }) => {
                let text = format!(
                    "Approved by {by}, but not all is as it was: {}. Nothing was applied; its \
                     changes \
                     are kept.",
                    paths.join(", ")
                );
                let short = id::short(&command.id);
                let reason = Reason::new("conflict", text).with_remedy(format!(
                    "Look at both with `weighlock diff {short}`, then `weighlock commit {short}` \
                     or `weighlock discard {short}`; or run it again."
                ));
                self.end_held(command, State::Failed, reason).await
            }
            done => done,
        }
    }

    async fn apply_held(&self, command: Command, by: &str) -> Result<(), Error> {
        let _one = self.committing.lock().await;
        let (since, run) = (self.core.clock.micros(), command.id.clone());
        let undo = self.undo_dir(&command.id);
        let applied = apart(move || applied_before(&undo)).await?;
        let row = self.core.store.changes().of_run(&command.id)?;
        let row = row.filter(|row| row.state == ChangesState::Held);
        let row = row.ok_or_else(|| Error::NoChanges {
            id: id::short(&command.id),
        })?;
        let applied = match applied {
            Some(applied) => applied,
            None => {
                let looked = self.look_at_held(&command).await?;
                self.commit_looked(&command, looked, by).await?
            }
        };
        let recorded = self.record_held_applied(command, row, &applied, by).await;
        self.tracer.trace_stage(&run, "commit", since);
        recorded
    }

    /// Brings to an end what an earlier server was applying, and removes
    /// copies that nothing needs.
    pub(crate) async fn recover_held(&self) -> Result<(), Error> {
        let undo = self.core.config.state_dir.join("undo");
        for entry in fs::read_dir(undo).into_iter().flatten().flatten() {
            let dir = entry.path();
            if is_unfinished(&dir)
                && let Err(error) = apart(move || applied_before(&dir)).await
            {
                tracing::error!(%error, "cannot bring to an end what was being applied");
            }
        }
        for row in self.held_if_readable()? {
            let dir = self.undo_dir(&row.run);
            if !dir.exists() || is_unfinished(&dir) {
                continue;
            }
            self.note_applied(row).await?;
        }
        self.copies.sweep_copies().await;
        Ok(())
    }

    /// Lists all held changes; none if a row of them is damaged, since that must
    /// not stop what concerns everybody.
    pub(super) fn held_if_readable(&self) -> Result<Vec<ChangesRow>, Error> {
        match self.core.store.changes().held(None) {
            Err(weighlock_store::Error::Damaged(what)) => {
                tracing::error!(what, "cannot tell which changes are held");
                Ok(vec![])
            }
            held => Ok(held?),
        }
    }

    async fn commit_looked(
        &self,
        command: &Command,
        looked: Looked,
        by: &str,
    ) -> Result<Applied, Error> {
        self.check_order(&looked.row)?;
        let permit = match looked.settled {
            ChangesSettled::Allowed(permit) => permit,
            ChangesSettled::Asked(question) => question.approved_by(by),
            ChangesSettled::Refused => return Err(Error::ChangesBlocked),
        };
        let applied = self.commit_now(&command.id, &looked.changes, permit).await;
        Ok(applied?)
    }

    /// Returns whether changes of any of these runs are undecided.
    pub(super) fn holds_any(&self, runs: &[String]) -> Result<bool, Error> {
        for run in runs {
            if self.holds_changes(run)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes sure that what changes were built on is applied.
    pub(crate) fn check_order(&self, row: &ChangesRow) -> Result<(), Error> {
        let mut earlier = vec![];
        for run in &row.below {
            if self.holds_changes(run)? {
                earlier.push(id::short(run));
            }
        }
        match earlier.is_empty() {
            true => Ok(()),
            false => Err(Error::EarlierFirst { runs: earlier }),
        }
    }

    async fn record_held_applied(
        &self,
        mut command: Command,
        row: ChangesRow,
        applied: &Applied,
        by: &str,
    ) -> Result<(), Error> {
        let mut view = ChangesView::from_row(&row);
        view.state = "applied".into();
        view.applied_by = Some(by.to_owned());
        view.can_undo = true;
        let was = command.state;
        let mut detail = Run::from_command(command.clone()).detail;
        let files = match view.count() {
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        detail.warnings.push(format!(
            "Approved by {by}. The previewed changes were applied ({files})."
        ));
        detail.reason = None;
        detail.changes = Some(view.clone());
        command.state = view.ended_as.unwrap_or(State::Succeeded);
        command.updated_at = self.core.clock.micros();
        command.open = false;
        command.detail = stored(&detail);
        let row = self.row(
            &command,
            ChangesState::Applied,
            &view,
            &row.below,
            applied.bytes,
        );
        let mut told = json!({ "hash": view.hash, "summary": view.summary, "paths": view.paths,
                               "by": by, "approval": command.approval });
        if was == State::Waiting {
            told[SETTLED] = command.state.word().into();
        }
        let entry = self.core.entry_of("changes.applied", by, &command, told);
        let id = command.id.clone();
        let settled = self
            .core
            .store
            .changes()
            .settle(command, Some(was), row, vec![entry]);
        settled.await?;
        if let Some(copied) = self.copies.unseen_copy(&id) {
            self.copies.part_from_copy(&copied).await;
        }
        self.waiters.tell(&id);
        // Its own in any case: it may not be known yet that the run is over.
        self.copies.drop_copy(&id).await;
        self.copies.sweep_copies().await;
        Ok(())
    }

    /// Ends a run whose changes stay held without a question.
    async fn end_held(
        &self,
        mut command: Command,
        state: State,
        reason: Reason,
    ) -> Result<(), Error> {
        let Some(row) = self.core.store.changes().of_run(&command.id)? else {
            return Ok(());
        };
        let was = command.state;
        let told = json!({ "state": state, "reason": reason.text });
        let entry = self
            .core
            .entry_of("changes.not_applied", "weighlock", &command, told);
        let mut detail = Run::from_command(command.clone()).detail;
        detail.reason = Some(reason);
        command.detail = stored(&detail);
        command.state = state;
        command.updated_at = self.core.clock.micros();
        let id = command.id.clone();
        self.core
            .store
            .changes()
            .settle(command, Some(was), row, vec![entry])
            .await?;
        self.waiters.tell(&id);
        Ok(())
    }

    /// Applies what is held without a question, and records it as soon as that
    /// can be.
    pub(crate) async fn apply_late(&self, command: Command, who: &Principal) -> Result<(), Error> {
        let dir = self.undo_dir(&command.id);
        if !is_applied(&dir) {
            self.check_late_yes(&command, who).await?;
        }
        loop {
            match self.apply_held(command.clone(), who.name()).await {
                Err(error) if error.is_passing() && is_applied(&dir) => {
                    tokio::time::sleep(RETRY_EVERY).await;
                }
                done => return done,
            }
        }
    }

    /// Records what was applied and is not on record yet. Returns whether there
    /// was any.
    async fn note_applied(&self, row: ChangesRow) -> Result<bool, Error> {
        let dir = self.undo_dir(&row.run);
        let applied = apart(move || applied_before(&dir)).await?;
        let command = self.core.store.commands().named(&row.run)?.pop();
        let (Some(applied), Some(command)) = (applied, command) else {
            return Ok(false);
        };
        let by = command.approved_by.clone();
        let by = by.as_deref().unwrap_or("weighlock");
        self.record_held_applied(command, row, &applied, by).await?;
        Ok(true)
    }

    /// Makes sure that a yes which comes after the question was closed is as
    /// good as an answer to it.
    async fn check_late_yes(&self, command: &Command, who: &Principal) -> Result<(), Error> {
        if let Some(pause) = self.pauses.of(&command.requested_by) {
            return Err(Error::Paused { by: pause.by });
        }
        if self.core.config.approvals.four_eyes && command.requested_by == who.name() {
            return Err(Error::OwnRequest);
        }
        let looked = self.look_at_held(command).await?;
        looked.check()?;
        match looked.needed() > 1 {
            true => Err(Error::invalid(
                "two_must_see_it",
                "two people must approve this, and the question is closed; nothing was applied"
                    .into(),
                "run the command again, so that both are asked",
            )),
            false => Ok(()),
        }
    }

    pub(crate) fn open_question(
        &self,
        command: &Command,
    ) -> Result<Option<weighlock_store::Approval>, Error> {
        let Some(id) = &command.approval else {
            return Ok(None);
        };
        let found = self.core.store.approvals().named(id)?.pop();
        Ok(found.filter(|approval| approval.state == ApprovalState::Pending))
    }

    /// Returns the runs whose held changes were built on one's, and which
    /// would go with them; the newest first.
    pub(crate) fn built_on(&self, run: &str) -> Result<Vec<ChangesRow>, Error> {
        let mut held = self.core.store.changes().held(None)?;
        held.retain(|row| row.below.iter().any(|below| below == run));
        Ok(held)
    }

    /// Throws changes away together with what was built on them: what is
    /// still asked about those is answered. Says no if they are decided about.
    pub(crate) async fn throw_away(&self, run: &str, by: &str) -> Result<bool, Error> {
        let _one = self.committing.lock().await;
        let held = self.core.store.changes().of_run(run)?;
        let Some(row) = held.filter(|row| row.state == ChangesState::Held) else {
            return Ok(false);
        };
        if self.note_applied(row.clone()).await? {
            return Ok(false);
        }
        for row in self.built_on(run)? {
            self.throw_one(row, by, Some(run)).await?;
        }
        self.throw_one(row, by, None).await?;
        self.copies.sweep_copies().await;
        Ok(true)
    }

    pub(super) async fn throw_one(
        &self,
        row: ChangesRow,
        by: &str,
        with: Option<&str>,
    ) -> Result<(), Error> {
        let Some(mut command) = self.core.store.commands().named(&row.run)?.pop() else {
            return Ok(());
        };
        if let Some(open) = self.open_question(&command)? {
            let text = match with {
                Some(run) => format!(
                    "It was built on the changes of {}, which {by} did not apply. Its own were \
                     discarded.",
                    id::short(run)
                ),
                None => format!("Discarded by {by}."),
            };
            let reason = Reason::new("rejected", text);
            self.questions
                .close_question(&open.id, ApprovalState::Rejected, by, reason)
                .await?;
            command = self
                .core
                .store
                .commands()
                .named(&row.run)?
                .pop()
                .unwrap_or(command);
        }
        let mut detail = Run::from_command(command.clone()).detail;
        if let Some(view) = &mut detail.changes {
            view.state = "discarded".into();
        }
        command.detail = stored(&detail);
        let mut body = ChangesView::from_row(&row);
        body.state = "discarded".into();
        let told = json!({ "hash": row.hash, "summary": body.summary, "by": by, "with": with });
        let entry = self.core.entry_of("changes.discarded", by, &command, told);
        let id = row.run.clone();
        let row = self.row(&command, ChangesState::Discarded, &body, &row.below, 0);
        self.core
            .store
            .changes()
            .settle(command, None, row, vec![entry])
            .await?;
        self.copies.drop_copy(&id).await;
        Ok(())
    }
}

/// Returns what was applied in a directory, once what was cut off there has
/// been brought to an end.
pub(super) fn applied_before(dir: &Path) -> Result<Option<Applied>, Error> {
    recover(dir)?;
    Applied::load(dir).map_err(Error::file(dir))
}
