//! What does not run, or not yet, and what is said of it.

use std::sync::Arc;

use serde_json::json;
use weighlock_store::{Command, Hold, Inserted, PauseRow, State};

use crate::engine::Engine;
use crate::error::{Error, brief};
use crate::inbox::Kept;
use crate::principal::Principal;
use crate::quota::{cut, left_out, tell_text};
use crate::request::terminal_detail;
use crate::run::{Case, Outcome};
use crate::view::RunRecord;
use crate::view::{Detail, Reason, Run, explained, stored};

impl Engine {
    /// Records that the policy said no.
    pub(crate) async fn refuse(&self, case: &Case) -> Result<Outcome, Error> {
        let reason = case.refusal();
        let mut command = self.unrun(case, State::Blocked);
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
            .insert(command.clone(), case.key(), vec![entry])
            .await?;
        match inserted {
            Inserted::New => Ok(Outcome::Refused(Run::from_command(command))),
            Inserted::Before { command_id, same } => {
                let wait = case.request.wait_for_answer()?;
                self.again(wait, &command_id, same).await
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
        let mut command = self.unrun(&case, State::Held);
        let mut told = json!({ "cwd": command.cwd, "paused_by": pause.by });
        tell_text(&mut told, &command.command);
        let who = case.request.principal.name();
        let entry = self.core.entry_of("run.held", who, &command, told);
        command.detail = explained(&command, held(pause));
        let (id, session) = (command.id.clone(), case.session.clone());
        let request = Kept::from(&case).to_json();
        self.core.charge(who, request.len() as u64);
        let hold = Hold {
            command,
            request,
            key: case.key(),
            max_pending: self.core.config.approvals.max_pending,
        };
        let (engine, of) = (Arc::clone(self), id.clone());
        let who = case.request.principal.clone();
        let held = tokio::spawn(async move {
            let held = engine.core.store.hold(hold, vec![entry]).await?;
            engine.leave_closed(&of, &session, &who).await?;
            if engine.pauses.of(who.name()).is_none() {
                // Whoever resumed meanwhile has not seen it.
                engine.let_go_soon();
            }
            Ok::<_, Error>(held)
        });
        drop(case);
        let held = held.await.expect("holding does not panic")?;
        self.taken(wait, &id, held).await
    }

    /// Records that what was held, or approved, is blocked by now.
    pub(crate) async fn end_blocked(&self, command: Command, case: &Case) -> Result<(), Error> {
        let reason = case.refusal();
        let detail = json!({ "rule": reason.rule, "reason": reason.text });
        let entry = self
            .core
            .entry_of("run.blocked", "policy", &command, detail);
        let was = command.state;
        let command = self.ended_unbegun(command, State::Blocked, reason);
        self.core
            .store
            .end_unbegun(command, was, vec![entry])
            .await?;
        Ok(())
    }

    /// The record of a command that does not run, or not yet.
    pub(crate) fn unrun(&self, case: &Case, state: State) -> Command {
        let now = self.core.clock.micros();
        let request = &case.request;
        let detail = Detail {
            description: request
                .description
                .as_deref()
                .map(|text| cut(text).to_owned()),
            token: request.principal.token().map(str::to_owned),
            policy_version: self.rules.version(),
            shell: case.judged.shell.name().into(),
            warnings: case.judged.warnings.clone(),
            sandbox: Some(case.view.clone()),
            terminal: request.terminal().map(terminal_detail),
            in_terminal: request.in_terminal.clone(),
            ..Detail::default()
        };
        Command {
            id: self.core.ids.next_as("r", now),
            session: Some(case.session.clone()),
            sandbox: Some(case.known.sandbox.id.clone()),
            command: request.command.clone(),
            cwd: case.place.path.to_string_lossy().into_owned(),
            state,
            exit_code: None,
            signal: None,
            requested_by: request.principal.name().into(),
            approval: None,
            approved_by: None,
            external: request.external,
            created_at: now,
            updated_at: now,
            started_at: None,
            ended_at: None,
            open: false,
            kept_bytes: 0,
            detail: stored(&detail),
        }
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
        if let Err(error) = self.core.store.record(vec![entry]).await {
            tracing::error!(%error, "cannot record a refusal");
        }
    }
}

impl Case {
    /// Returns why the policy says no.
    pub(crate) fn refusal(&self) -> Reason {
        let first = self.judged.judgement.reasons.first();
        let first = first.expect("a refusal has a reason");
        let text = &self.request.command;
        Reason {
            code: first.code.clone(),
            text: cut(&first.text).to_owned(),
            rule: Some(first.rule.clone()),
            layer: Some(first.layer.clone()),
            part: { first.span }
                .and_then(|span| text.get(span.start..span.end))
                .map(brief),
            remedy: Some(first.remedy.clone()).filter(|remedy| !remedy.is_empty()),
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
