//! Trying the command of a question, so that a person sees what it does.

use std::sync::Arc;

use serde_json::json;
use weighlock_policy::Settled;
use weighlock_store::{Approval, ApprovalState, ChangesState, Command, State};

use super::copy::no_copy;
use crate::engine::Engine;
use crate::error::Error;
use crate::principal::Principal;
use crate::run::Beginning;
use crate::view::ApprovalView;
use crate::view::ChangesRecord;
use crate::view::ChangesView;

impl Engine {
    /// Tries the command of a pending question on a copy, offline; once more,
    /// if it was tried before. What it changes there becomes what is asked.
    pub async fn try_question(
        self: &Arc<Self>,
        id: &str,
        who: &Principal,
    ) -> Result<ApprovalView, Error> {
        let approval = self.to_decide(id, "try it", who).await?;
        if approval.state != ApprovalState::Pending {
            return Err(self.how_it_ended(&approval.id, who)?);
        }
        self.check_not_tried_now(&approval)?;
        let runs = self.core.store.runs_of(&approval.id)?;
        let waiting = { runs.iter() }.find(|(_, state)| *state == State::Waiting);
        let gone = || Error::NoSuchApproval {
            id: approval.id.clone(),
        };
        let (run, _) = waiting.ok_or_else(gone)?;
        let command = self.core.store.named(run)?.pop().ok_or_else(gone)?;
        let kept = self.core.store.pending_request(run)?.ok_or_else(gone)?;
        let mut case = self.case(self.revive(&kept)?).await?;
        if case.request.external {
            return Err(Error::invalid(
                "no_copy",
                "its requester runs it, so it cannot be tried here; nothing was run".into(),
                "approve or reject it by its text",
            ));
        }
        case.for_question = true;
        if let Some(why) = self.why_no_copy(&case.known.sandbox, &case.place.path) {
            return Err(no_copy(&why));
        }
        let permit = match case.judged.judgement.settle() {
            Settled::Asked(question) => question.tried(),
            Settled::Allowed(permit) => permit,
            Settled::Refused => {
                return Err(Error::invalid(
                    "blocked",
                    format!("{} Nothing was run.", case.refusal().text),
                    "reject it: the rules no longer allow it",
                ));
            }
        };
        let there = self.archiver.hold_files().await;
        self.forget_try(&command.id).await?;
        drop(there);
        let beginning = Beginning::Tried {
            command: Box::new(command),
        };
        self.begin_case(case, permit, beginning).await?;
        self.question(&approval.id, who).await
    }

    /// Refuses to decide while what is decided about is being found out.
    pub(crate) fn check_not_tried_now(&self, approval: &Approval) -> Result<(), Error> {
        let runs = self.core.store.runs_of(&approval.id)?;
        let runs = runs.iter().any(|(_, state)| *state == State::Running);
        // What was approved meanwhile runs, too.
        let now = self.core.store.approvals_named(&approval.id)?.pop();
        let open = now.is_some_and(|now| now.state == ApprovalState::Pending);
        match runs && open {
            true => Err(Error::Trying),
            false => Ok(()),
        }
    }

    /// Throws away what a run did on a copy, together with what was built on it,
    /// since it or another text is to run for real. Its request stays, so that
    /// it begins even if this server ends now.
    pub(crate) async fn discard_try(&self, command: &Command, by: &str) -> Result<(), Error> {
        let _there = self.archiver.hold_files().await;
        let _one = self.committing.lock().await;
        for row in self.built_on(&command.id)? {
            self.throw_one(row, by, Some(&command.id)).await?;
        }
        if let Some(row) = self.core.store.changes(&command.id)? {
            let mut view = ChangesView::from_row(&row);
            view.state = "discarded".into();
            let told = json!({ "hash": row.hash, "summary": view.summary, "by": by });
            let entry = self.core.entry_of("changes.discarded", by, command, told);
            let row = self.row(command, ChangesState::Discarded, &view, &row.below, 0);
            self.core
                .store
                .update_changes(vec![row], vec![entry])
                .await?;
        }
        self.forget_try(&command.id).await?;
        self.sweep_copies().await;
        Ok(())
    }

    /// Removes what an earlier try has left.
    async fn forget_try(&self, run: &str) -> Result<(), Error> {
        self.forget_output(run).await?;
        self.remove_copy(run).await;
        Ok(())
    }
}
