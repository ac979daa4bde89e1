//! Beginning what has waited: approved, or held until work went on.

use std::sync::Arc;

use serde_json::json;
use weighlock_policy::Settled;
use weighlock_store::{Approval, Command, Error as StoreError, State};

use super::{Beginning, Life};
use crate::error::Error;
use crate::id;
use crate::questions::is_about_changes;
use crate::runs::RETRY_EVERY;
use crate::view::Reason;

/// Something that waited, and may begin.
struct Left {
    command: Command,
    /// Its request.
    kept: String,
    /// The question, answered with yes; none for what was held.
    approval: Option<Approval>,
    /// What to run instead.
    edited: Option<String>,
}

impl Life {
    /// Begins what was approved; each once.
    pub(crate) async fn begin_approved(
        self: &Arc<Self>,
        approval: &Approval,
        commands: Vec<(Command, String)>,
        edited: Option<&str>,
    ) {
        for (command, kept) in commands {
            let left = Left {
                command,
                kept,
                approval: Some(approval.clone()),
                edited: edited.map(str::to_owned),
            };
            self.begin(left).await;
        }
    }

    /// Begins what was approved before an earlier server ended.
    pub(crate) async fn begin_left_over(
        self: &Arc<Self>,
        command: Command,
        kept: String,
    ) -> Result<(), Error> {
        let id = command.approval.clone().unwrap_or_default();
        let Some(approval) = self.core.store.approvals().named(&id)?.pop() else {
            return Ok(());
        };
        let answers = self.core.store.approvals().answers(&approval.id)?;
        let edited = answers
            .into_iter()
            .filter_map(|answer| answer.edited)
            .next_back();
        let left = Left {
            command,
            kept,
            approval: Some(approval),
            edited,
        };
        self.begin(left).await;
        Ok(())
    }

    /// Goes on with what was held: it is judged as if it came now.
    pub(crate) async fn go_on(self: &Arc<Self>, command: Command, kept: String) {
        let left = Left {
            command,
            kept,
            approval: None,
            edited: None,
        };
        self.begin(left).await;
    }

    /// Begins something that waited. As long as there is no room, work is
    /// paused, or it cannot be written down, it goes on waiting, for it may
    /// begin.
    async fn begin(self: &Arc<Self>, left: Left) {
        if self.begin_now(&left).await.is_ok() {
            return;
        }
        let life = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(RETRY_EVERY).await;
                if life.begin_now(&left).await.is_ok() {
                    return;
                }
            }
        });
    }

    /// Begins something that waited, or says on its record why it cannot.
    async fn begin_now(self: &Arc<Self>, left: &Left) -> Result<(), Error> {
        let command = left.command.clone();
        let id = command.id.clone();
        match self.try_begin(left).await {
            // Somebody else has begun it, or it was taken back.
            Ok(()) | Err(Error::NotWaiting { .. }) => {}
            Err(
                error @ (Error::TooMany { .. }
                | Error::Paused { .. }
                | Error::Store(StoreError::Busy | StoreError::Full)
                | Error::Unrecorded(StoreError::Busy | StoreError::Full)),
            ) => {
                tracing::warn!(run = id, %error, "it cannot begin yet");
                return Err(error);
            }
            Err(error) => {
                let problem = error.problem();
                tracing::warn!(run = id, code = problem.code, "{}", problem.detail);
                self.cannot_begin(command, problem.code, &problem.detail)
                    .await?;
            }
        }
        self.waiters.tell(&id);
        Ok(())
    }

    async fn try_begin(self: &Arc<Self>, left: &Left) -> Result<(), Error> {
        let (approval, edited) = (left.approval.as_ref(), left.edited.as_deref());
        if let Some(pause) = self.pauses.of(&left.command.requested_by) {
            return Err(Error::Paused { by: pause.by });
        }
        if let Some(approval) = approval
            && self.drafts.holds_changes(&left.command.id)?
        {
            let by = approval.decided_by.as_deref().unwrap_or("somebody");
            match edited {
                None => return self.drafts.apply_approved(left.command.clone(), by).await,
                Some(_) => self.drafts.discard_try(&left.command, by).await?,
            }
        }
        let mut case = self.cases.case(self.cases.revive(&left.kept)?).await?;
        if let Some(approval) = approval {
            // What was asked about changes names those, and they are gone.
            if !is_about_changes(approval) && case.is_another(approval) {
                return Err(Error::PayloadChanged { approval: None });
            }
            if let Some(text) = edited {
                case = self.cases.edited(case, text).await?;
            }
        }
        let command = left.command.clone();
        let by = approval.map(|approval| approval.decided_by.as_deref().unwrap_or("somebody"));
        let permit = match (case.judged.judgement.settle(), by) {
            (Settled::Allowed(permit), None) => permit,
            // The same answer may have allowed its like from now on.
            (Settled::Allowed(permit), Some(by)) => permit.also_approved_by(by),
            (Settled::Refused, _) => return self.end_blocked(command, &case).await,
            (Settled::Asked(question), None) if self.copies.is_tried(&mut case)? => {
                question.tried()
            }
            // It was held, and has to be asked about after all.
            (Settled::Asked(_), None) => {
                return self.questions.ask(case, Some(command)).await.map(drop);
            }
            (Settled::Asked(question), Some(by)) => question.approved_by(by),
        };
        let beginning = Beginning::After {
            command: Box::new(command),
            edited: edited.is_some(),
        };
        self.begin_case(case, permit, beginning).await.map(drop)
    }

    /// Ends something that was approved, or held, and cannot begin.
    async fn cannot_begin(
        &self,
        command: Command,
        code: &str,
        detail: &str,
    ) -> Result<(), StoreError> {
        let reason = match (command.started_at, self.drafts.holds_changes(&command.id)) {
            (None, _) => not_begun(code, detail, "Nothing was run."),
            (Some(_), Ok(false)) => not_begun(code, detail, "It ran only on a copy."),
            (Some(_), Ok(true) | Err(_)) => not_applied(code, detail, &id::short(&command.id)),
        };
        let entry = self.core.entry_of(
            "run.ended",
            "weighlock",
            &command,
            json!({ "state": State::Failed, "reason": reason.text }),
        );
        let was = command.state;
        let command = self.questions.ended_unbegun(command, State::Failed, reason);
        self.core
            .store
            .pending()
            .end(command, was, vec![entry])
            .await?;
        Ok(())
    }
}

fn not_begun(code: &str, detail: &str, so_far: &str) -> Reason {
    // Many an error says it, too.
    let detail = detail.trim_end_matches("; nothing was run");
    Reason::new(code, format!("It could not begin: {detail}. {so_far}"))
        .with_remedy("Ask for it again.")
}

/// What a person has approved is what a command did on a copy.
fn not_applied(code: &str, detail: &str, short: &str) -> Reason {
    let text = format!(
        "It ran on a copy, and what it changed could not be applied: {detail}. Its changes are \
         kept."
    );
    Reason::new(code, text).with_remedy(format!(
        "`weighlock commit {short}` tries again, `weighlock discard {short}` throws them away."
    ))
}
