//! Asking the client's person, where they may decide.

use serde_json::json;
use weighlock_api::{ApiRequest, ApprovalView, CommandView, Me, Role, State};
use weighlock_screen::{safe_command, safe_text};

use crate::api::{self, Failure};
use crate::call::{AskMode, Call, DeferredQuestion, OnCancel, PersonAnswer, ReturnedAnswer};
use crate::seal::SealedQuestion;

impl Call {
    /// Has a question answered at once, if the client's person may and does;
    /// and goes on with what they have answered.
    pub(crate) async fn ask_person(
        &self,
        view: CommandView,
        on_cancel: OnCancel,
    ) -> Result<CommandView, Failure> {
        if view.run.state != State::Waiting {
            return Ok(view);
        }
        let view = self.have_answered(view, on_cancel).await?;
        self.attend(view, self.patience(None), on_cancel).await
    }

    /// Has a question answered at once, if the client's person may and does.
    pub(crate) async fn have_answered(
        &self,
        view: CommandView,
        on_cancel: OnCancel,
    ) -> Result<CommandView, Failure> {
        let (State::Waiting, Some(id)) = (view.run.state, view.run.approval_id.clone()) else {
            return Ok(view);
        };
        if *self.cancelled.borrow() {
            return self.leave(view, on_cancel).await;
        }
        let Some(manner) = self.client.manner().filter(|_| self.desk.options.ask) else {
            return Ok(view);
        };
        let Some(who) = self.decider().await? else {
            return Ok(view);
        };
        let back = self.said(&id);
        if let Some((_, None)) = back {
            return Ok(view);
        }
        let api = self.desk.api();
        let seen: ApprovalView = api::get(api, format!("/approvals/{id}")).await?;
        if let Some((asked, Some(said))) = back {
            // A yes to one is none to those that have come since.
            let more = said.yes && seen.count > asked.count;
            if !more {
                return self.decide(asked, said).await;
            }
        }
        if seen.more_input > 0 || seen.input_follows {
            // What cannot be shown whole is for the inbox.
            return Ok(view);
        }
        let asked = SealedQuestion {
            run: view.run.command_id.clone(),
            approval: id,
            fingerprint: seen.fingerprint.clone(),
            effect: seen.effect.is_some(),
            count: seen.count,
        };
        let text = question(&seen);
        if manner == AskMode::Instead {
            let question = DeferredQuestion { text, asked, who };
            let _ = self.question.set(question);
            return Ok(view);
        }
        let said = tokio::select! {
            said = self.answer(&view, text) => said?,
            () = self.is_cancelled() => return self.leave(view, on_cancel).await,
        };
        // A yes that comes after it is too late, and both may have come at once.
        tokio::task::yield_now().await;
        if *self.cancelled.borrow() {
            return self.leave(view, on_cancel).await;
        }
        match said {
            Some(said) => self.decide(&asked, said).await,
            None => self.seen(&asked.run).await,
        }
    }

    /// Returns the run that a call goes on with which is made again.
    pub(crate) async fn resumed(&self) -> Result<Option<CommandView>, Failure> {
        match &self.again {
            Some(again) => Ok(Some(self.seen(&again.asked.run).await?)),
            None => Ok(None),
        }
    }

    /// What came back for a question, if it was put.
    fn said(&self, approval: &str) -> Option<(&SealedQuestion, Option<PersonAnswer>)> {
        let again = { self.again.as_ref() }.filter(|again| again.asked.approval == approval)?;
        match &again.back {
            ReturnedAnswer::Said(said) => Some((&again.asked, said.clone())),
            ReturnedAnswer::Nothing => None,
        }
    }

    /// Decides as the client's person has said.
    async fn decide(
        &self,
        asked: &SealedQuestion,
        said: PersonAnswer,
    ) -> Result<CommandView, Failure> {
        let kind = match (said.yes, asked.effect) {
            (false, _) => "reject",
            (true, true) => "apply_effect",
            (true, false) => "approve_once",
        };
        let decision = json!({
            "kind": kind,
            "fingerprint": asked.fingerprint,
            "reason": said.reason,
            "through": "elicitation",
        });
        // Somebody else may have been faster: what counts is how it is now.
        let path = format!("/approvals/{}/decision", asked.approval);
        let decided = api::post::<ApprovalView>(self.desk.api(), path, &decision).await;
        let mut now = self.seen(&asked.run).await?;
        if let (Err(failure), State::Waiting) = (decided, now.run.state) {
            let told = format!("What your person answered does not count: {}", failure.what);
            self.client.log(told.clone()).await;
            now.run.detail.warnings.push(told);
        }
        Ok(now)
    }

    async fn seen(&self, run: &str) -> Result<CommandView, Failure> {
        api::get(self.desk.api(), format!("/commands/{run}")).await
    }

    /// Whose tools these are, if they are one who is asked.
    async fn decider(&self) -> Result<Option<String>, Failure> {
        let me: Me = api::get(self.desk.api(), "/me".into()).await?;
        let decides = matches!(
            me.role,
            Role::Approver | Role::Operator | Role::Administrator
        );
        Ok(decides.then_some(me.principal_id))
    }

    /// Waits for an answer as long as the call may last, and the question is
    /// there: it may be answered elsewhere, or expire.
    async fn answer(
        &self,
        view: &CommandView,
        question: String,
    ) -> Result<Option<PersonAnswer>, Failure> {
        let mut answer = self.client.ask(question);
        let until = self.patience(None).map(|patience| self.began + patience);
        let id = &view.run.command_id;
        while let Some(step) = self.step(until) {
            let request = ApiRequest::run(id, Some(step.as_millis() as u64), None);
            let now: CommandView = tokio::select! {
                said = answer.as_mut() => return Ok(said),
                now = api::send(self.desk.api(), request) => now?,
            };
            if now.run.state != State::Waiting {
                return Ok(None);
            }
            self.tell("a person is asked".into()).await;
        }
        Ok(None)
    }
}

/// The question, with nothing in it that could pass for something else.
fn question(asked: &ApprovalView) -> String {
    let mut lines = vec![line(&asked.summary), String::new()];
    let variables = asked.environment.iter();
    lines.extend(variables.map(|set| format!("  {}", line(set))));
    lines.push(format!(
        "$ {}",
        safe_command(&asked.command).replace('\n', "\n  ")
    ));
    if let Some(input) = &asked.input {
        lines.push("  reads".into());
        let input = safe_command(input);
        lines.extend(input.lines().map(|line| format!("  < {line}")));
    }
    lines.push(String::new());
    lines.push(format!(
        "in {} · {} · network {}",
        line(&asked.sandbox),
        line(&asked.cwd),
        line(&asked.network)
    ));
    if asked.count > 1 {
        lines.push(format!(
            "{} identical requests wait: the answer is for all of them.",
            asked.count
        ));
    }
    if let Some(claim) = &asked.claim {
        lines.push(format!("The agent says: “{}”", line(claim)));
    }
    let reasons = asked.reasons.iter();
    lines.extend(reasons.map(|reason| format!("Why: {}", line(&reason.text))));
    if let Some(effect) = &asked.effect {
        lines.push(format!(
            "It ran on a copy: {}. Approving applies that:",
            line(&effect.changes.summary)
        ));
        let changes = &effect.changes;
        lines.extend({ changes.paths.iter() }.map(|path| format!("  {}", line(path))));
        let all = changes.created + changes.modified + changes.deleted + changes.renamed;
        let more = (all + changes.other).saturating_sub(changes.paths.len() as u64);
        if more > 0 {
            lines.push(format!("  … and {more} more, which the inbox lists"));
        }
        if effect.changes.network.is_some() {
            lines.push("It had network access; what it did there is not shown.".into());
        }
    }
    lines.join("\n")
}

/// One line of it: what comes from elsewhere begins none of its own.
fn line(text: &str) -> String {
    safe_text(text).replace('\n', "⏎")
}
