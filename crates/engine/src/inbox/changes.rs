//! Decisions about changes: applying, discarding, and trying a command first.

use std::sync::Arc;

use weighlock_policy::Settled;
use weighlock_store::{ApprovalState, Command, State};

use super::{Decision, DecisionKind, Inbox};
use crate::copied::apart;
use crate::copies::no_copy;
use crate::error::Error;
use crate::life::Beginning;
use crate::principal::{Principal, Right};
use crate::view::{ApprovalView, Run};

impl Inbox {
    /// Applies the held changes of a run: the answer to its question, or
    /// without one once that is closed. `hash` names what was seen.
    pub async fn commit_changes(
        self: &Arc<Self>,
        id: &str,
        hash: Option<&str>,
        who: &Principal,
    ) -> Result<Run, Error> {
        let (run, command) = self.held_by(id, who).await?;
        let row = self.core.store.changes().of_run(&run.command_id)?;
        let shown = hash.is_none_or(|hash| row.as_ref().is_some_and(|row| row.hash == hash));
        if !shown {
            return Err(Error::PayloadChanged { approval: None });
        }
        if let Some(approval) = self.drafts.open_question(&command)? {
            // What was seen is named by the hash; what stands in the way since
            // then is reported as a conflict, not as a changed question.
            let looked = self.drafts.look_at_held(&command).await?;
            looked.check()?;
            self.drafts.renew_changes(&approval, &looked).await?;
            let decision = Decision {
                fingerprint: Some(looked.fingerprint),
                ..Decision::new(DecisionKind::ApplyEffect)
            };
            self.decide(&approval.id, decision, who).await?;
        } else {
            // In a task of its own: the approver may disconnect, and the changes are
            // applied and recorded all the same.
            let (inbox, who) = (Arc::clone(self), who.clone());
            let applied = tokio::spawn(async move { inbox.drafts.apply_late(command, &who).await });
            applied.await.expect("applying does not panic")?;
        }
        self.runs.find(&run.command_id, who)
    }

    /// Throws the held changes of a run away, and what was built on them.
    pub async fn discard_changes(
        self: &Arc<Self>,
        id: &str,
        reason: Option<String>,
        who: &Principal,
    ) -> Result<Run, Error> {
        let (run, command) = self.held_by(id, who).await?;
        if let Some(approval) = self.drafts.open_question(&command)? {
            let decision = Decision {
                reason,
                ..Decision::new(DecisionKind::Reject)
            };
            self.decide(&approval.id, decision, who).await?;
        } else if command.state == State::Waiting
            && let Some(approval) = &command.approval
        {
            // Somebody has said yes, and it is being applied.
            return Err(self.questions.how_it_ended(approval, who)?);
        } else if !self.drafts.throw_away(&command.id, who.name()).await? {
            return Err(Error::NoChanges { id: run.short_id });
        }
        self.runs.find(&run.command_id, who)
    }

    pub(crate) async fn held_by(&self, id: &str, who: &Principal) -> Result<(Run, Command), Error> {
        let run = self.runs.find(id, who)?;
        if who.is_agent() {
            return Err(self.core.refuse_agent("decide", Some(id), who).await);
        }
        who.check(Right::Decide)?;
        let command = self.core.store.commands().named(&run.command_id)?.pop();
        match command.filter(|command| self.drafts.holds_changes(&command.id).unwrap_or(false)) {
            Some(command) => Ok((run, command)),
            None => Err(Error::NoChanges { id: run.short_id }),
        }
    }

    /// Applies a session's whole draft in order, if it is the one that was
    /// seen. Stops at the first that cannot be applied.
    pub async fn commit_draft(
        self: &Arc<Self>,
        session: &str,
        hash: Option<&str>,
        who: &Principal,
    ) -> Result<Vec<Run>, Error> {
        if let Some(hash) = hash {
            let (inbox, session, who) = (Arc::clone(self), session.to_owned(), who.clone());
            let looking = apart(move || inbox.drafts.whole_draft(&session, &who)).await?;
            if hash != looking.view.hash {
                return Err(Error::PayloadChanged { approval: None });
            }
        }
        let mut done = vec![];
        for run in self.drafts.draft_runs(session, who)? {
            done.push(self.commit_changes(&run.command_id, None, who).await?);
        }
        Ok(done)
    }

    /// Throws a session's whole draft away.
    pub async fn discard_draft(
        self: &Arc<Self>,
        session: &str,
        reason: Option<String>,
        who: &Principal,
    ) -> Result<Vec<Run>, Error> {
        let mut done = vec![];
        for run in self.drafts.draft_runs(session, who)?.into_iter().rev() {
            let discarded = self.discard_changes(&run.command_id, reason.clone(), who);
            done.push(discarded.await?);
        }
        Ok(done)
    }

    /// Tries the command of a pending question on a copy, offline; once more,
    /// if it was tried before. What it changes there becomes what is asked.
    pub async fn try_question(
        self: &Arc<Self>,
        id: &str,
        who: &Principal,
    ) -> Result<ApprovalView, Error> {
        let approval = self.to_decide(id, "try it", who).await?;
        if approval.state != ApprovalState::Pending {
            return Err(self.questions.how_it_ended(&approval.id, who)?);
        }
        self.drafts.check_not_tried_now(&approval)?;
        let runs = self.core.store.approvals().runs_of(&approval.id)?;
        let waiting = { runs.iter() }.find(|(_, state)| *state == State::Waiting);
        let gone = || Error::NoSuchApproval {
            id: approval.id.clone(),
        };
        let (run, _) = waiting.ok_or_else(gone)?;
        let command = self
            .core
            .store
            .commands()
            .named(run)?
            .pop()
            .ok_or_else(gone)?;
        let kept = self.core.store.pending().request(run)?.ok_or_else(gone)?;
        let mut case = self.cases.case(self.cases.revive(&kept)?).await?;
        if case.request.external {
            return Err(Error::invalid(
                "no_copy",
                "its requester runs it, so it cannot be tried here; nothing was run".into(),
                "approve or reject it by its text",
            ));
        }
        case.for_question = true;
        if let Some(why) = self
            .copies
            .why_no_copy(&case.known.sandbox, &case.place.path)
        {
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
        self.drafts.forget_try(&command.id).await?;
        drop(there);
        let beginning = Beginning::Tried {
            command: Box::new(command),
        };
        self.life.begin_case(case, permit, beginning).await?;
        self.question(&approval.id, who).await
    }
}
