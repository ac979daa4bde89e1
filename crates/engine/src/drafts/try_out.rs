//! Trying the command of a question, so that a person sees what it does.

use serde_json::json;
use weighlock_store::{Approval, ApprovalState, ChangesState, Command, State};

use super::Drafts;
use crate::error::Error;
use crate::view::ChangesRecord;
use crate::view::ChangesView;

impl Drafts {
    /// Refuses to decide while what is decided about is being found out.
    pub(crate) fn check_not_tried_now(&self, approval: &Approval) -> Result<(), Error> {
        let runs = self.core.store.approvals().runs_of(&approval.id)?;
        let runs = runs.iter().any(|(_, state)| *state == State::Running);
        // What was approved meanwhile runs, too.
        let now = self.core.store.approvals().named(&approval.id)?.pop();
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
        if let Some(row) = self.core.store.changes().of_run(&command.id)? {
            let mut view = ChangesView::from_row(&row);
            view.state = "discarded".into();
            let told = json!({ "hash": row.hash, "summary": view.summary, "by": by });
            let entry = self.core.entry_of("changes.discarded", by, command, told);
            let row = self.row(command, ChangesState::Discarded, &view, &row.below, 0);
            self.core
                .store
                .changes()
                .update(vec![row], vec![entry])
                .await?;
        }
        self.forget_try(&command.id).await?;
        self.copies.sweep_copies().await;
        Ok(())
    }

    /// Removes what an earlier try has left.
    pub(crate) async fn forget_try(&self, run: &str) -> Result<(), Error> {
        self.retention.forget_output(run).await?;
        self.copies.remove_copy(run).await;
        Ok(())
    }
}
