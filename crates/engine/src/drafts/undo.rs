//! Taking back what was applied.

use std::fs;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use weighlock_effects::{Applied, Changes};
use weighlock_policy::ChangeQuestion;
use weighlock_store::{ChangesRow, ChangesState, Command, Entry, State};

use super::Drafts;
use super::apply::applied_before;
use crate::copied::apart;
use crate::error::Error;
use crate::id;
use crate::principal::{Principal, Right};
use crate::runs::RETRY_EVERY;
use crate::view::ChangesRecord;
use crate::view::ChangesView;
use crate::view::RunRecord;
use crate::view::{Detail, Reason, Run, stored};

/// The file that marks a directory as one of an undo.
const UNDO: &str = "undo.json";

/// What an undo takes back.
#[derive(Serialize, Deserialize)]
struct Of {
    run: String,
    by: String,
}

impl Drafts {
    /// Takes back what runs have changed, the latest first, whatever the order
    /// they are named in. Each is a run of its own, and can be undone.
    pub async fn undo(
        self: &Arc<Self>,
        ids: &[String],
        who: &Principal,
    ) -> Result<Vec<Run>, Error> {
        let mut rows = vec![];
        for id in ids {
            let run = self.runs.find(id, who)?;
            if who.is_agent() {
                return Err(self.core.refuse_agent("undo", Some(id), who).await);
            }
            who.check(Right::Decide)?;
            let row = self.core.store.changes().of_run(&run.command_id)?;
            match row.filter(|row| row.state == ChangesState::Applied) {
                Some(row) => rows.push(row),
                None => return Err(Error::NotApplied { id: run.short_id }),
            }
        }
        rows.sort_by_key(|row| std::cmp::Reverse((row.updated_at, row.run.clone())));
        rows.dedup();
        let mut done = vec![];
        for row in rows {
            done.push(self.undo_one(row, who).await?);
        }
        Ok(done)
    }

    async fn undo_one(self: &Arc<Self>, row: ChangesRow, who: &Principal) -> Result<Run, Error> {
        let short = id::short(&row.run);
        if row.body["can_undo"] != true {
            return Err(Error::NoUndo { id: short });
        }
        let dir = self.undo_dir(&row.run);
        let changes = apart(move || {
            let applied = Applied::load(&dir).map_err(Error::file(&dir))?;
            let applied = applied.ok_or(Error::NoUndo { id: short })?;
            let changes = applied.inverse(&dir);
            let conflicts = changes.conflicts()?;
            match conflicts.is_empty() {
                true => Ok(changes),
                false => Err(Error::conflicts(&changes, &conflicts)),
            }
        });
        let changes = changes.await?;
        // Whoever asked may leave. What is taken back is on record all the same.
        let (drafts, who) = (Arc::clone(self), who.clone());
        let taken = tokio::spawn(async move { drafts.undo_now(row, &changes, &who).await });
        taken.await.expect("taking back does not panic")
    }

    async fn undo_now(
        self: &Arc<Self>,
        row: ChangesRow,
        changes: &Changes,
        who: &Principal,
    ) -> Result<Run, Error> {
        let _there = self.archiver.hold_files().await;
        let _one = self.committing.lock().await;
        let command = self.record_undo(&row, who).await?;
        let permit = ChangeQuestion::about(&changes.hash()).approved_by(who.name());
        match self.commit_now(&command.id, changes, permit).await {
            Ok(applied) => {
                let of = Of {
                    run: row.run,
                    by: who.name().to_owned(),
                };
                self.record_taken_back(&command, &of, &applied).await
            }
            Err(error) => {
                let error = Error::from(error);
                let reason = Reason::new("not_undone", format!("{}.", error.problem().detail));
                // The record may have to wait for room on the disk; the caller
                // does not.
                let drafts = Arc::clone(self);
                let settled = async move {
                    drafts
                        .retention
                        .settle(command, State::Failed, reason)
                        .await
                };
                let _ = tokio::time::timeout(RETRY_EVERY, tokio::spawn(settled)).await;
                Err(error)
            }
        }
    }

    /// Writes down that something is to be undone: whatever happens, what
    /// became of it is then found at the next start.
    async fn record_undo(&self, row: &ChangesRow, who: &Principal) -> Result<Command, Error> {
        let undone = self.core.store.commands().named(&row.run)?.pop();
        let undone = undone.ok_or_else(|| Error::NoSuchRun {
            id: row.run.clone(),
        })?;
        let now = self.core.clock.micros();
        let command = Command {
            id: self.core.ids.next_as("r", now),
            command: format!("weighlock undo {}", id::short(&row.run)),
            state: State::Running,
            exit_code: None,
            signal: None,
            requested_by: who.name().to_owned(),
            approved_by: None,
            approval: None,
            created_at: now,
            updated_at: now,
            started_at: Some(now),
            ended_at: None,
            open: true,
            external: false,
            kept_bytes: 0,
            detail: stored(&Detail {
                description: Some(format!("Undoes the changes of `{}`", undone.command)),
                ..Detail::default()
            }),
            ..undone
        };
        let dir = self.undo_dir(&command.id);
        let of = Of {
            run: row.run.clone(),
            by: who.name().to_owned(),
        };
        let text = serde_json::to_vec(&of).expect("a name is plain data");
        let written = fs::create_dir_all(&dir)
            .and_then(|()| fs::write(dir.join(UNDO), text))
            .map_err(Error::file(&dir));
        let told = json!({ "undoes": row.run });
        let entry = self
            .core
            .entry_of("changes.undo", who.name(), &command, told);
        let recorded = match written {
            Ok(()) => {
                self.core
                    .store
                    .commands()
                    .insert(command.clone(), None, vec![entry])
            }
            .await
            .map_err(Error::from),
            Err(error) => Err(error),
        };
        if let Err(error) = recorded {
            // Nobody would ever look for it.
            let _ = fs::remove_dir_all(&dir);
            return Err(error);
        }
        Ok(command)
    }

    /// Removes what an earlier server wrote down to be undone and then did not
    /// record. Before-images, which such a directory does not have, are left.
    pub(crate) fn forget_unrecorded(&self) {
        let all = fs::read_dir(self.core.config.state_dir.join("undo"));
        for dir in all.into_iter().flatten().flatten() {
            let id = dir.file_name().to_string_lossy().into_owned();
            let files = fs::read_dir(dir.path()).map_or(0, Iterator::count);
            let only = files == 1 && dir.path().join(UNDO).exists();
            if only
                && self
                    .core
                    .store
                    .commands()
                    .named(&id)
                    .is_ok_and(|found| found.is_empty())
            {
                let _ = fs::remove_dir_all(dir.path());
            }
        }
    }

    async fn record_undone(
        &self,
        mut command: Command,
        row: ChangesRow,
        applied: &Applied,
        by: &str,
    ) -> Result<Run, Error> {
        let changes = Changes {
            roots: applied.roots.clone(),
            entries: applied.entries.clone(),
            refused: vec![],
        };
        let mut view = ChangesView::of(&changes, "applied");
        view.applied_by = Some(by.to_owned());
        view.ended_as = Some(State::Succeeded);
        view.can_undo = true;
        let now = self.core.clock.micros();
        let mut detail = Run::from_command(command.clone()).detail;
        detail.changes = Some(view.clone());
        detail.duration_ms = { command.started_at }.map(|began| (now - began) as f64 / 1000.0);
        command.detail = stored(&detail);
        command.state = State::Succeeded;
        command.exit_code = Some(0);
        command.updated_at = now;
        command.ended_at = Some(now);
        command.open = false;
        let own = self.row(&command, ChangesState::Applied, &view, &[], applied.bytes);
        let told = json!({ "undoes": row.run, "summary": view.summary, "paths": view.paths });
        let entry = self.core.entry_of("changes.undone", by, &command, told);
        // Where this is tried again, that may be done.
        if row.state == ChangesState::Applied {
            self.mark_undone(row, &command.id, entry.clone()).await?;
        }
        self.core
            .store
            .changes()
            .settle(command.clone(), None, own, vec![entry])
            .await?;
        Ok(Run::from_command(command))
    }

    /// Says with the run that its changes are no more.
    async fn mark_undone(&self, row: ChangesRow, by: &str, entry: Entry) -> Result<(), Error> {
        let Some(mut undone) = self.core.store.commands().named(&row.run)?.pop() else {
            return Ok(());
        };
        let mut detail = Run::from_command(undone.clone()).detail;
        let mut view = ChangesView::from_row(&row);
        view.state = "undone".into();
        view.undone_by = Some(by.to_owned());
        view.can_undo = false;
        detail.changes = Some(view.clone());
        undone.detail = stored(&detail);
        let row = ChangesRow {
            state: ChangesState::Undone,
            body: serde_json::to_value(&view).expect("a view is plain data"),
            ..row
        };
        let entry = Entry {
            run: Some(undone.id.clone()),
            ..entry
        };
        self.core
            .store
            .changes()
            .settle(undone, None, row, vec![entry])
            .await?;
        Ok(())
    }

    /// Finds out what became of an undo that an earlier server began. Returns
    /// whether it was one.
    pub(crate) async fn recover_undo(&self, command: &Command) -> bool {
        let dir = self.undo_dir(&command.id);
        let Some(of) = { fs::read(dir.join(UNDO)).ok() }
            .and_then(|text| serde_json::from_slice::<Of>(&text).ok())
        else {
            return false;
        };
        let (state, reason) = match apart(move || applied_before(&dir)).await {
            Ok(Some(applied)) => match self.record_taken_back(command, &of, &applied).await {
                Ok(_) => return true,
                Err(error) => (State::Lost, unrecorded(&error)),
            },
            Ok(None) => (State::Failed, not_undone()),
            Err(error) => (State::Lost, cut_off(&error)),
        };
        self.retention.settle(command.clone(), state, reason).await;
        true
    }

    /// Records what was taken back, as soon as it can be.
    async fn record_taken_back(
        &self,
        command: &Command,
        of: &Of,
        applied: &Applied,
    ) -> Result<Run, Error> {
        loop {
            match self.record_again(command, of, applied).await {
                Err(error) if error.is_passing() => tokio::time::sleep(RETRY_EVERY).await,
                done => return done,
            }
        }
    }

    async fn record_again(
        &self,
        command: &Command,
        of: &Of,
        applied: &Applied,
    ) -> Result<Run, Error> {
        let row = self.core.store.changes().of_run(&of.run)?;
        let row = row.ok_or_else(|| Error::NoSuchRun {
            id: id::short(&of.run),
        })?;
        self.record_undone(command.clone(), row, applied, &of.by)
            .await
    }
}

fn not_undone() -> Reason {
    Reason::new(
        "not_undone",
        "The server ended before anything was undone. Nothing was changed.",
    )
    .with_remedy("Undo it again.")
}

/// Files were taken back, and the record does not say so.
fn unrecorded(error: &Error) -> Reason {
    let text = format!(
        "The files were restored, but that cannot be recorded: {}.",
        error.problem().detail
    );
    Reason::new("lost", text).with_remedy("Look at the files before undoing anything else.")
}

/// Nobody knows which files were taken back.
fn cut_off(error: &Error) -> Reason {
    let text = format!(
        "The server ended during the undo, and it is not known how far it came: {}.",
        error.problem().detail
    );
    Reason::new("lost", text).with_remedy("Look at the files before undoing anything else.")
}
