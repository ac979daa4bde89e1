//! What does not run, or not yet, and what is said of it.

use std::sync::Arc;

use serde_json::json;
use weighlock_store::{Command, Hold, Inserted, PauseRow, State};

use super::Life;
use crate::case::{Case, PendingRequest};
use crate::error::{Error, brief};
use crate::principal::Principal;
use crate::quota::{cut, left_out, tell_text};
use crate::runs::Outcome;
use crate::view::RunRecord;
use crate::view::{Reason, Run, explained, stored};

impl Life {
    /// Records that the policy said no.
    pub(crate) async fn refuse(&self, case: &Case) -> Result<Outcome, Error> {
        let reason = case.refusal();
        let mut command = self.cases.unrun(case, State::Blocked);
        let mut told = json!({ "cwd": command.cwd, "requested_by": command.requested_by,
                               "rule": reason.rule, "reason": reason.text });
        tell_text(&mut told, &command.command);
        let entry = self.core.entry_of("run.blocked", "policy", &command, told);
        let mut detail = Run::from_command(command.clone()).detail;
        detail.warnings.extend(left_out(&command.command));
        detail.reason = Some(reason);
        command.detail = stored(&detail);
        command.command = cut(&command.command).to_owned();
        let inserted = self
            .core
            .store
            .commands()
            .insert(command.clone(), case.key(), vec![entry])
            .await?;
        match inserted {
            Inserted::New => Ok(Outcome::Refused(Run::from_command(command))),
            Inserted::Before { command_id, same } => {
                let wait = case.request.wait_for_answer()?;
                self.runs.again(wait, &command_id, same).await
            }
        }
    }

    /// Keeps a request until work goes on.
    pub(crate) async fn hold(
        self: &Arc<Self>,
        case: Case,
        pause: &PauseRow,
    ) -> Result<Outcome, Error> {
        let wait = case.request.wait_for_answer()?;
        let mut command = self.cases.unrun(&case, State::Held);
        let mut told = json!({ "cwd": command.cwd, "paused_by": pause.by });
        tell_text(&mut told, &command.command);
        let who = case.request.principal.name();
        let entry = self.core.entry_of("run.held", who, &command, told);
        command.detail = explained(&command, held(pause));
        let (id, session) = (command.id.clone(), case.session.clone());
        let request = PendingRequest::from(&case).to_json();
        self.core.charge(who, request.len() as u64);
        let hold = Hold {
            command,
            request,
            key: case.key(),
            max_pending: self.core.config.approvals.max_pending,
        };
        let (life, of) = (Arc::clone(self), id.clone());
        let who = case.request.principal.clone();
        let held = tokio::spawn(async move {
            let held = life.core.store.pending().hold(hold, vec![entry]).await?;
            life.questions.leave_closed(&of, &session, &who).await?;
            if life.pauses.of(who.name()).is_none() {
                // Whoever resumed meanwhile has not seen it.
                life.let_go_soon();
            }
            Ok::<_, Error>(held)
        });
        drop(case);
        let held = held.await.expect("holding does not panic")?;
        self.questions.taken(wait, &id, held).await
    }

    /// Records that what was held, or approved, is blocked by now.
    pub(crate) async fn end_blocked(&self, command: Command, case: &Case) -> Result<(), Error> {
        let reason = case.refusal();
        let detail = json!({ "rule": reason.rule, "reason": reason.text });
        let entry = self
            .core
            .entry_of("run.blocked", "policy", &command, detail);
        let was = command.state;
        let command = self
            .questions
            .ended_unbegun(command, State::Blocked, reason);
        self.core
            .store
            .pending()
            .end(command, was, vec![entry])
            .await?;
        Ok(())
    }

    /// Writes down that a request made no sense. It had no effect, so nothing
    /// is undone when that fails too.
    pub(crate) async fn record_refusal(&self, who: &Principal, command: &str, error: &Error) {
        let problem = error.problem();
        let mut entry = self.core.entry(
            "run.refused",
            who.name(),
            None,
            json!({ "command": brief(command), "code": problem.code, "detail": problem.detail }),
        );
        entry.owner = Some(who.name().to_owned());
        if let Err(error) = self.core.store.audit().record(vec![entry]).await {
            tracing::error!(%error, "cannot record a refusal");
        }
    }
}

fn held(pause: &PauseRow) -> Reason {
    let what = match pause.principal.as_str() {
        "" => "All work is paused".to_owned(),
        name => format!("All work of {name} is paused"),
    };
    let text = format!(
        "{what} by {}. The run is held and will start or be answered when resumed.",
        pause.by
    );
    Reason::new("paused", text)
}
