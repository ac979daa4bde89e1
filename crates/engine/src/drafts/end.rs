//! The end of a run that worked on a copy: what it changed is found, judged,
//! and applied, asked about or thrown away.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::json;
use tokio::sync::watch;
use weighlock_effects::{Applied, Changes};
use weighlock_policy::{ChangesJudgement, ChangesSettled, CommitPermit};
use weighlock_store::{ChangesRow, ChangesState, Command, Durability, Entry, State};

use super::Drafts;
use super::apply::applied_before;
use crate::copied::{CHANGES, Copied, apart};
use crate::error::Error;
use crate::measures::SETTLED;
use crate::view::ChangesRecord;
use crate::view::ChangesView;
use crate::view::{Detail, Reason, Run};

/// A run that has ended, with what is known about it.
pub(super) struct Ended<'a> {
    pub(super) command: &'a mut Command,
    pub(super) detail: Detail,
    /// That it has ended, for the record.
    pub(super) entry: Entry,
    /// Who waits for the end.
    pub(super) tell: &'a watch::Sender<Option<Run>>,
}

/// What was found on a copy.
pub(super) struct Found {
    pub(super) copied: Copied,
    pub(super) changes: Changes,
    pub(super) judgement: ChangesJudgement,
}

/// How a copy is.
enum Copy {
    Changed(Box<Found>),
    /// It was applied, and the server ended before that was recorded.
    Applied(Box<Copied>, Applied),
}

impl Ended<'_> {
    /// Says with the end what the run is settled as, where that is not how it
    /// ended.
    pub(super) fn settled_as(&mut self, state: State) {
        self.entry.detail[SETTLED] = state.word().into();
    }
}

impl Drafts {
    /// Settles a run that worked on a copy, once nothing of it is left.
    pub(crate) async fn settle_copy(
        &self,
        command: &mut Command,
        detail: Detail,
        entry: Entry,
        tell: &watch::Sender<Option<Run>>,
    ) {
        let ended = Ended {
            command,
            detail,
            entry,
            tell,
        };
        let (since, run) = (self.core.clock.micros(), ended.command.id.clone());
        match self.look_at_copy(&run).await {
            Err(error) => self.cannot_read(ended, &error).await,
            Ok(Copy::Applied(copied, applied)) => {
                self.record_applied(ended, *copied, applied, None).await;
            }
            Ok(Copy::Changed(found)) => self.settle_found(ended, *found).await,
        }
        self.tracer.trace_stage(&run, "settle", since);
    }

    async fn settle_found(&self, ended: Ended<'_>, found: Found) {
        if found.changes.is_empty() && !found.copied.for_question {
            return self.changed_nothing(ended).await;
        }
        let hash = found.changes.hash();
        let depends = self.depends(&found);
        match found.judgement.settle(&hash) {
            ChangesSettled::Refused => self.block(ended, &found).await,
            ChangesSettled::Allowed(permit) if !depends && !found.copied.for_question => {
                self.apply_unasked(ended, found, permit).await;
            }
            ChangesSettled::Allowed(_) | ChangesSettled::Asked(_) => {
                self.hold_changes(ended, found).await;
            }
        }
    }

    /// Finds what a run changed, and judges it.
    async fn look_at_copy(&self, run: &str) -> Result<Copy, Error> {
        let (dir, undo) = (self.copy_dir(run), self.undo_dir(run));
        let durable = self.core.config.durability == Durability::Power;
        let looked = apart(move || {
            let lost = Error::file(&dir);
            let copied = Copied::load(&dir).map_err(&lost)?;
            let copied = copied.ok_or_else(|| lost(std::io::ErrorKind::NotFound.into()))?;
            if let Some(applied) = applied_before(&undo)? {
                return Ok((copied, Err(applied)));
            }
            let changes = Changes::scan(copied.roots.clone(), copied.since)?;
            let file = dir.join(CHANGES);
            let saved = changes.save(&file, durable);
            saved.map_err(Error::file(&file))?;
            Ok::<_, Error>((copied, Ok(changes)))
        });
        let (copied, found) = looked.await?;
        Ok(match found {
            Err(applied) => Copy::Applied(Box::new(copied), applied),
            Ok(changes) => {
                let judgement = self.judge_changes(&changes, &copied)?;
                Copy::Changed(Box::new(Found {
                    copied,
                    changes,
                    judgement,
                }))
            }
        })
    }

    async fn changed_nothing(&self, mut ended: Ended<'_>) {
        ended.detail.changes = Some(ChangesView::nothing());
        let entries = vec![ended.entry];
        self.runs
            .record_end(ended.command, ended.detail, None, entries, ended.tell)
            .await;
        self.copies.drop_copy(&ended.command.id).await;
    }

    async fn apply_unasked(&self, ended: Ended<'_>, found: Found, permit: CommitPermit) {
        let run = ended.command.id.clone();
        let one = self.committing.lock().await;
        let applied = self.commit_now(&run, &found.changes, permit).await;
        // Nobody can settle what nobody was asked about: the record, which may
        // have to wait for room, holds up no others.
        drop(one);
        match applied {
            Ok(applied) => {
                self.record_applied(ended, found.copied, applied, Some(&found.changes))
                    .await;
            }
            // Somebody was faster, or there is no room: a person sees it.
            Err(error) => {
                tracing::warn!(run, %error, "changes cannot be applied unasked");
                self.hold_changes(ended, found).await;
            }
        }
    }

    async fn record_applied(
        &self,
        mut ended: Ended<'_>,
        copied: Copied,
        applied: Applied,
        changes: Option<&Changes>,
    ) {
        let now = Changes {
            roots: copied.roots.clone(),
            entries: applied.entries.clone(),
            refused: vec![],
        };
        let mut view = ChangesView::of(changes.unwrap_or(&now), "applied");
        view.network = copied.network.clone();
        view.applied_by = Some("policy".into());
        view.ended_as = Some(ended.command.state);
        view.can_undo = true;
        let row = self.row(
            ended.command,
            ChangesState::Applied,
            &view,
            &copied.below,
            applied.bytes,
        );
        let told = json!({ "hash": view.hash, "summary": view.summary, "paths": view.paths,
                           "by": "policy" });
        let entry = self
            .core
            .entry_of("changes.applied", "policy", ended.command, told);
        ended.detail.changes = Some(view);
        let entries = vec![ended.entry, entry];
        self.copies.part_from_copy(&copied).await;
        self.runs
            .record_end(ended.command, ended.detail, Some(row), entries, ended.tell)
            .await;
        self.copies.drop_copy(&ended.command.id).await;
    }

    /// Throws away what is never applied.
    async fn block(&self, mut ended: Ended<'_>, found: &Found) {
        let mut view = ChangesView::of(&found.changes, "discarded");
        view.network = found.copied.network.clone();
        view.ended_as = Some(ended.command.state);
        let why = found.judgement.reasons.first();
        let reason = Reason::new(
            "changes_blocked",
            format!(
                "It ran on a copy, and what it changed there is never applied: {}. Nothing was \
                 changed.",
                why.map_or("", |why| &why.text)
            ),
        )
        .with_remedy(why.map_or("", |why| &why.remedy));
        ended.settled_as(State::Blocked);
        ended.command.state = State::Blocked;
        let row = self.row(
            ended.command,
            ChangesState::Discarded,
            &view,
            &found.copied.below,
            0,
        );
        let told = json!({ "hash": view.hash, "summary": view.summary, "paths": view.paths,
                           "reason": reason.text });
        let entry = self
            .core
            .entry_of("changes.discarded", "policy", ended.command, told);
        ended.detail.changes = Some(view);
        ended.detail.reason = Some(reason);
        let entries = vec![ended.entry, entry];
        self.runs
            .record_end(ended.command, ended.detail, Some(row), entries, ended.tell)
            .await;
        self.copies.drop_copy(&ended.command.id).await;
    }

    /// Says that a copy could not be read: then nothing of it is applied.
    async fn cannot_read(&self, mut ended: Ended<'_>, error: &Error) {
        let problem = error.problem();
        tracing::error!(
            run = ended.command.id,
            code = problem.code,
            "{}",
            problem.detail
        );
        let reason = Reason::new(
            "changes_unreadable",
            format!(
                "It ran on a copy, and what it changed there cannot be read: {}. Nothing was \
                 changed.",
                problem.detail
            ),
        )
        .with_remedy(problem.hint);
        ended.settled_as(State::Failed);
        ended.command.state = State::Failed;
        ended.detail.reason = Some(reason);
        // Nobody can get at it any more, and it may be what fills the disk.
        self.copies.drop_copy(&ended.command.id).await;
        let entries = vec![ended.entry];
        self.runs
            .record_end(ended.command, ended.detail, None, entries, ended.tell)
            .await;
    }

    /// Returns what the store keeps of changes.
    pub(super) fn row(
        &self,
        command: &Command,
        state: ChangesState,
        view: &ChangesView,
        below: &[String],
        bytes: u64,
    ) -> ChangesRow {
        ChangesRow {
            run: command.id.clone(),
            session: command.session.clone(),
            state,
            hash: view.hash.clone(),
            below: below.to_vec(),
            bytes,
            updated_at: self.core.clock.micros(),
            body: serde_json::to_value(view).expect("a view is plain data"),
        }
    }

    /// Returns whether changes make no sense without others that are held.
    fn depends(&self, found: &Found) -> bool {
        let mut held: BTreeSet<PathBuf> = BTreeSet::new();
        for run in &found.copied.below {
            let Ok(row) = self.core.store.changes().of_run(run) else {
                // They may be held.
                return true;
            };
            if row.is_some_and(|row| row.state == ChangesState::Held)
                && let Ok(changes) = Changes::load(&self.copy_dir(run).join(CHANGES))
            {
                held.extend(changes.entries.iter().map(|change| whole(&changes, change)));
            }
        }
        found.changes.entries.iter().any(|change| {
            let path = whole(&found.changes, change);
            let below = held.range(path.clone()..).next();
            change.built_on.is_some()
                || path.ancestors().any(|above| held.contains(above))
                || below.is_some_and(|below| below.starts_with(&path))
        })
    }
}

fn whole(changes: &Changes, change: &weighlock_effects::Change) -> PathBuf {
    changes.roots[change.root].live.join(change.path.path())
}
