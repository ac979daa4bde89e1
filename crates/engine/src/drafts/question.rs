//! Asking a person about changes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use weighlock_effects::{Changes, Conflict};
use weighlock_policy::ChangesSettled;
use weighlock_store::{
    Approval, ApprovalState, ChangesRow, ChangesState, Command, Held, HoldChanges, State,
};

use super::Drafts;
use super::end::{Ended, Found};
use super::judge::risk;
use super::list::conflict_info;
use super::words::{header, stopped, summary, waiting};
use crate::copied::{CHANGES, Copied, apart};
use crate::error::Error;
use crate::hex::hex;
use crate::id;
use crate::measures::SETTLED;
use crate::questions::of_the_request;
use crate::rules::reason_view;
use crate::runs::RETRY_EVERY;
use crate::view::ChangesRecord;
use crate::view::ChangesView;
use crate::view::ConflictInfo;
use crate::view::ReasonView;
use crate::view::RunRecord;
use crate::view::Tried;
use crate::view::{Reason, Run, stored};

/// What a question about changes has of them.
pub(crate) struct Looked {
    pub(crate) row: ChangesRow,
    pub(super) changes: Changes,
    pub(crate) conflicts: Vec<Conflict>,
    pub(crate) fingerprint: String,
    pub(super) settled: ChangesSettled,
    approval: Approval,
}

impl Looked {
    /// Refuses what cannot be applied as it is now.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.conflicts.is_empty() {
            true => Ok(()),
            false => Err(Error::conflicts(&self.changes, &self.conflicts)),
        }
    }

    /// Returns how many people have to approve.
    pub(super) fn needed(&self) -> u32 {
        self.approval.needed
    }

    pub(crate) fn conflict_infos(&self) -> Vec<ConflictInfo> {
        { self.conflicts.iter() }
            .map(|conflict| conflict_info(&self.changes, conflict))
            .collect()
    }
}

/// What a person is asked about.
struct Asked<'a> {
    found: &'a Found,
    view: &'a ChangesView,
    /// What stands in the way.
    conflicts: &'a [Conflict],
}

/// What a question keeps of the effect, in its body.
#[derive(Serialize, Deserialize)]
struct Body {
    effect: Tried,
    reasons: Vec<ReasonView>,
    summary: String,
}

impl Drafts {
    /// Holds changes, and asks a person about them.
    pub(super) async fn hold_changes(&self, mut ended: Ended<'_>, found: Found) {
        ended.settled_as(State::Waiting);
        let Ended {
            command,
            mut detail,
            entry,
            tell,
        } = ended;
        let mut view = ChangesView::of(&found.changes, "held");
        view.network = found.copied.network.clone();
        view.ended_as = Some(command.state);
        view.built_on = found.copied.below.clone();
        let conflicts = self.conflicts(&found.copied.below, &found.changes).await;
        let conflicts = conflicts.unwrap_or_default();
        let asked = Asked {
            found: &found,
            view: &view,
            conflicts: &conflicts,
        };
        let approval = self.about_changes(command, &asked, &detail);
        let row = self.row(command, ChangesState::Held, &view, &found.copied.below, 0);
        let told = json!({ "hash": view.hash, "summary": view.summary, "paths": view.paths,
                           "exit_code": command.exit_code, "risk": approval.risk,
                           "fingerprint": approval.fingerprint });
        let asked = self
            .core
            .entry_of("changes.held", "weighlock", command, told);
        let ended_as = command.state;
        detail.changes = Some(view);
        command.state = State::Waiting;
        command.detail = stored(&detail);
        let hold = HoldChanges {
            command: command.clone(),
            request: found.copied.request.clone(),
            approval,
            changes: row,
        };
        let held = loop {
            let (told, mut asked, ended) = (detail.clone(), asked.clone(), entry.clone());
            let held = self
                .core
                .store
                .changes()
                .hold(hold.clone(), move |command, question| {
                    let mut told = told;
                    told.reason = Some(waiting(question, command, &told));
                    command.detail = stored(&told);
                    asked.detail["approval"] = question.id.as_str().into();
                    let mut opened = asked.clone();
                    opened.kind = "approval.asked";
                    opened.run = None;
                    vec![ended, asked, opened]
                });
            match held.await {
                Ok(held) => break held,
                Err(error) => {
                    tracing::error!(run = command.id, %error, "cannot ask about changes yet");
                    tokio::time::sleep(RETRY_EVERY).await;
                }
            }
        };
        match held {
            Held::Asked(question) => {
                if question.version == 1 {
                    self.questions.set_deadline(&question.id);
                }
                command.approval = Some(question.id.clone());
                if let Ok(run) = self.runs.recall(&command.id) {
                    tell.send_replace(Some(run));
                }
            }
            // What it was tried for is decided.
            Held::Ended(approval) => {
                command.state = ended_as;
                self.end_with(command, detail, &approval, entry, tell).await;
            }
        }
        self.waiters.tell(&command.id);
    }

    /// Ends a run that was tried for a question which is closed by now.
    async fn end_with(
        &self,
        command: &mut Command,
        mut detail: crate::view::Detail,
        approval: &Approval,
        mut entry: weighlock_store::Entry,
        tell: &tokio::sync::watch::Sender<Option<Run>>,
    ) {
        let by = approval.decided_by.as_deref().unwrap_or("somebody");
        let state = match approval.state {
            ApprovalState::Rejected => State::Rejected,
            ApprovalState::Withdrawn => State::Withdrawn,
            _ => State::Expired,
        };
        let what = match state {
            State::Expired => "Nobody answered in time,".into(),
            _ => format!("The question was closed by {by}"),
        };
        detail.reason = Some(Reason::new(
            state.word(),
            format!("{what} while it was tried on a copy. Nothing was changed."),
        ));
        detail.changes = None;
        command.state = state;
        entry.detail[SETTLED] = state.word().into();
        self.copies.drop_copy(&command.id).await;
        self.runs
            .record_end(command, detail, None, vec![entry], tell)
            .await;
    }

    fn about_changes(
        &self,
        command: &Command,
        asked: &Asked<'_>,
        detail: &crate::view::Detail,
    ) -> Approval {
        let Asked {
            found,
            view,
            conflicts,
        } = *asked;
        let now = self.core.clock.micros();
        let risk = risk(&found.changes, &found.judgement);
        let about = Body {
            summary: summary(view),
            reasons: { found.judgement.reasons.iter() }
                .map(reason_view)
                .chain(of_the_request(&found.copied.card))
                .collect(),
            effect: Tried {
                state: match conflicts.is_empty() {
                    true => "ready",
                    false => "stale",
                }
                .into(),
                header: header(view, command, detail, conflicts.len()),
                changes: view.clone(),
                exit_code: command.exit_code,
                stopped: stopped(detail),
                ..Tried::default()
            },
        };
        let mut body = found.copied.card.clone();
        if let (Some(body), Ok(serde_json::Value::Object(about))) =
            (body.as_object_mut(), serde_json::to_value(about))
        {
            body.extend(about);
        }
        Approval {
            id: self.core.ids.next_as("ap", now),
            state: ApprovalState::Pending,
            fingerprint: fingerprint(&found.changes, conflicts),
            requested_by: command.requested_by.clone(),
            sandbox: command.sandbox.clone().unwrap_or_default(),
            risk,
            version: 1,
            created_at: now,
            expires_at: now + self.limits.answer_time().as_micros() as i64,
            decided_at: None,
            decided_by: None,
            count: 1,
            needed: self.questions.needed(risk),
            body,
        }
    }

    /// Looks at the changes behind a question once more.
    pub(crate) async fn look_at_changes(&self, of: &Approval) -> Result<Looked, Error> {
        let gone = || Error::NoSuchApproval { id: of.id.clone() };
        let runs = self.core.store.approvals().runs_of(&of.id)?;
        let (run, _) = runs.first().ok_or_else(gone)?;
        let command = self
            .core
            .store
            .commands()
            .named(run)?
            .pop()
            .ok_or_else(gone)?;
        self.look_at_held(&command).await
    }

    /// Looks at the changes that a run holds.
    pub(crate) async fn look_at_held(&self, command: &Command) -> Result<Looked, Error> {
        let row = self.core.store.changes().of_run(&command.id)?;
        let row = row.filter(|row| row.state == ChangesState::Held);
        let row = row.ok_or_else(|| Error::NoChanges {
            id: id::short(&command.id),
        })?;
        let (copied, changes) = self.read_held(&command.id).await?;
        let conflicts = self.conflicts(&copied.below, &changes).await?;
        let judgement = self.judge_changes(&changes, &copied)?;
        let view = ChangesView::from_row(&row);
        let detail = Run::from_command(command.clone()).detail;
        let found = Found {
            copied,
            changes,
            judgement,
        };
        let asked = Asked {
            found: &found,
            view: &view,
            conflicts: &conflicts,
        };
        let approval = self.about_changes(command, &asked, &detail);
        Ok(Looked {
            settled: found.judgement.settle(&row.hash),
            fingerprint: approval.fingerprint.clone(),
            row,
            conflicts,
            approval,
            changes: found.changes,
        })
    }

    /// Returns what stands in the way of changes. What they were built on comes
    /// first: before that is applied, nothing can be as they saw it.
    async fn conflicts(&self, below: &[String], changes: &Changes) -> Result<Vec<Conflict>, Error> {
        if self.holds_any(below)? {
            return Ok(vec![]);
        }
        let changes = changes.clone();
        Ok(apart(move || changes.conflicts()).await?)
    }

    async fn read_held(&self, run: &str) -> Result<(Copied, Changes), Error> {
        let dir = self.copy_dir(run);
        apart(move || {
            let lost = Error::file(&dir);
            let copied = Copied::load(&dir).map_err(&lost)?;
            let copied = copied.ok_or_else(|| lost(std::io::ErrorKind::NotFound.into()))?;
            let changes = Changes::load(&dir.join(CHANGES)).map_err(lost)?;
            Ok((copied, changes))
        })
        .await
    }

    /// Replaces a question by its current version if it has changed. Returns
    /// whether it had.
    pub(crate) async fn renew_changes(
        self: &Arc<Self>,
        was: &Approval,
        looked: &Looked,
    ) -> Result<bool, Error> {
        if looked.fingerprint == was.fingerprint {
            return Ok(false);
        }
        let renewed = Approval {
            id: was.id.clone(),
            created_at: was.created_at,
            expires_at: was.expires_at,
            ..looked.approval.clone()
        };
        self.questions.put_renewed(was, renewed).await?;
        Ok(true)
    }
}

/// Names what a person is asked about: the changes, and what stands in their
/// way.
fn fingerprint(changes: &Changes, conflicts: &[Conflict]) -> String {
    let conflicts: Vec<_> = { conflicts.iter() }
        .map(|conflict| (conflict.root, &conflict.path, &conflict.why))
        .collect();
    let bound = json!(["changes", changes.hash(), conflicts]);
    let hash = Sha256::digest(bound.to_string().as_bytes());
    hex(&hash[..12])
}
