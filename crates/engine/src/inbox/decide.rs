//! A person's answer, exactly once.
//!
//! The answer is one transaction of the store: whoever comes second, be it a
//! person, a clock or the requester itself, hears how it ended. What was
//! approved is begun by another transaction, which only succeeds while it
//! still waits. A server that ends between the two begins it when it is back.

use std::sync::Arc;

use serde_json::json;
pub use weighlock_api::DecisionKind;
use weighlock_policy::{Scope, Verdict};
use weighlock_store::{Answer, Answered, Approval, ApprovalState, Command, Entry};

use super::Inbox;
use crate::case::Case;
use crate::error::Error;
use crate::principal::{Principal, Right};
use crate::questions::{is_about_changes, risk};
use crate::view::ApprovalView;
use crate::view::{Reason, Run, explained};

/// A person's answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Yes or no.
    pub kind: DecisionKind,
    /// Names what the person has seen. Without it the answer counts only if
    /// the question is the one that was asked first.
    pub fingerprint: Option<String>,
    /// The message to the requester.
    pub reason: Option<String>,
    /// What has put the question, where it was not a door of ours.
    pub through: Option<&'static str>,
    /// The text to run instead, for `ApproveEdited`.
    pub command: Option<String>,
    /// What is allowed from now on, for `ApproveAlways`: patterns, each for
    /// whom and until when.
    pub grants: Vec<(String, Scope, Option<i64>)>,
    /// What is blocked from now on, for everybody, with `Reject`: patterns.
    pub blocks: Vec<String>,
}

/// Characters of a reason: a page, which the requester is told word for word.
const MAX_REASON: usize = 4000;

impl Decision {
    /// The plain answer.
    pub fn new(kind: DecisionKind) -> Self {
        Self {
            kind,
            fingerprint: None,
            reason: None,
            through: None,
            command: None,
            grants: vec![],
            blocks: vec![],
        }
    }

    fn check_reason(&self) -> Result<(), Error> {
        let long = self
            .reason
            .as_ref()
            .map_or(0, |reason| reason.chars().count());
        match long <= MAX_REASON {
            true => Ok(()),
            false => Err(Error::invalid(
                "reason_too_long",
                format!(
                    "the reason has {long} characters, and {MAX_REASON} is the limit; nothing was \
                     decided"
                ),
                "use fewer words",
            )),
        }
    }
}

impl Inbox {
    /// Takes a person's answer, and starts what was approved.
    pub async fn decide(
        self: &Arc<Self>,
        id: &str,
        decision: Decision,
        who: &Principal,
    ) -> Result<ApprovalView, Error> {
        let approval = self.to_decide(id, "decide", who).await?;
        let approve = decision.kind != DecisionKind::Reject;
        if approve && self.core.config.approvals.four_eyes && approval.requested_by == who.name() {
            return Err(Error::OwnRequest);
        }
        if self.questions.is_over(&approval.id) {
            // The clock was first, even if it has not said so yet.
            self.questions.expire(&approval.id).await?;
            return Err(self.questions.how_it_ended(&approval.id, who)?);
        }
        if approval.state != ApprovalState::Pending {
            return Err(self.questions.how_it_ended(&approval.id, who)?);
        }
        let shown = decision.fingerprint.as_ref();
        if shown.is_some_and(|shown| *shown != approval.fingerprint)
            || shown.is_none() && approve && approval.version > 1
        {
            return Err(self.questions.changed(&approval.id, who)?);
        }
        decision.check_reason()?;
        match approve {
            true => self.check_yes(&approval, &decision, who).await?,
            false => self.check_blocks(&decision.blocks, who)?,
        }
        // Whoever hangs up now has answered nevertheless, and what was approved
        // begins.
        let (inbox, who) = (Arc::clone(self), who.clone());
        let answered = tokio::spawn(async move { inbox.answer(approval, decision, &who).await });
        answered.await.expect("answering does not panic")
    }

    /// The same by the run that waits. Returns what became of it.
    pub async fn decide_run(
        self: &Arc<Self>,
        id: &str,
        decision: Decision,
        who: &Principal,
    ) -> Result<Run, Error> {
        let found = self.runs.find(id, who);
        let run = self.unless_agent(found, "decide", id, who).await?;
        match &run.approval_id {
            Some(id) => self.decide(id, decision, who).await?,
            None => return Err(Error::NotWaiting { id: run.short_id }),
        };
        self.runs.find(&run.command_id, who)
    }

    /// Finds a question in which somebody has a say.
    pub(crate) async fn to_decide(
        &self,
        id: &str,
        what: &str,
        who: &Principal,
    ) -> Result<Approval, Error> {
        let found = self.questions.find_approval(id, who);
        let approval = self.unless_agent(found, what, id, who).await?;
        who.check(Right::Decide)?;
        if !who.reaches(&approval.sandbox) {
            return Err(Error::Forbidden {
                name: who.name().into(),
                role: who.role().word(),
                needs: "approver for its sandbox",
            });
        }
        Ok(approval)
    }

    /// Passes on what was found, but not to an agent: that it has tried is on
    /// record, even where it may not know whether there is such a thing.
    async fn unless_agent<T>(
        &self,
        found: Result<T, Error>,
        what: &str,
        about: &str,
        who: &Principal,
    ) -> Result<T, Error> {
        if !who.is_agent() {
            return found;
        }
        let never = self.core.refuse_agent(what, Some(about), who).await;
        found.and(Err(never))
    }

    /// Makes sure that a yes means what it meant when the person saw it.
    async fn check_yes(
        self: &Arc<Self>,
        approval: &Approval,
        decision: &Decision,
        who: &Principal,
    ) -> Result<(), Error> {
        if let Some(pause) = self.pauses.of(&approval.requested_by) {
            return Err(Error::Paused { by: pause.by });
        }
        self.drafts.check_not_tried_now(approval)?;
        if is_about_changes(approval) {
            return self.check_yes_to_changes(approval, decision, who).await;
        }
        if matches!(
            decision.kind,
            DecisionKind::ApplyEffect | DecisionKind::RunForReal
        ) {
            return Err(Error::invalid(
                "not_tried",
                "it was not tried on a copy, so there is nothing to apply; nothing was decided"
                    .into(),
                "approve it once, or try it on a copy first: [t] in `weighlock approve`",
            ));
        }
        let now = match self.questions.look_again(approval).await {
            Ok(now) => now,
            // Nothing of it waits any more.
            Err(Error::NoSuchApproval { .. }) => {
                return Err(self.questions.how_it_ended(&approval.id, who)?);
            }
            Err(error) => return Err(error),
        };
        if now.judged.judgement.verdict == Verdict::Reject {
            let reason = now.refusal();
            self.questions
                .close_question(&approval.id, ApprovalState::Blocked, "policy", reason)
                .await?;
            return Err(self.questions.how_it_ended(&approval.id, who)?);
        }
        if now.is_another(approval) {
            self.questions.renew(approval, &now).await?;
            return Err(self.questions.changed(&approval.id, who)?);
        }
        for (pattern, scope, until) in &decision.grants {
            self.rules.check_grant(pattern, scope, *until, who)?;
        }
        match decision.kind {
            DecisionKind::ApproveAlways if approval.needed > 1 => Err(two_must_see()),
            DecisionKind::ApproveEdited => self.check_other(approval, decision, now).await,
            _ => Ok(()),
        }
    }

    /// Makes sure that another text may run in the place of what was asked for.
    async fn check_other(
        self: &Arc<Self>,
        approval: &Approval,
        decision: &Decision,
        now: Case,
    ) -> Result<(), Error> {
        match &decision.command {
            None => Err(Error::invalid(
                "no_command",
                "the text to run instead is missing; nothing was decided".into(),
                "give `command`",
            )),
            // Whoever writes the text is who asks for it.
            Some(_) if self.core.config.approvals.four_eyes => Err(Error::OwnRequest),
            Some(_) if approval.needed > 1 => Err(Error::invalid(
                "two_must_see_it",
                "two people must approve this, and only one has seen the new text; nothing was \
                 decided"
                    .into(),
                "reject it, and say what to request instead",
            )),
            Some(text) => self.check_edited(now, text).await,
        }
    }

    /// The same for changes: that they are what was seen, that nothing stands
    /// in their way, and that it is their turn.
    async fn check_yes_to_changes(
        self: &Arc<Self>,
        approval: &Approval,
        decision: &Decision,
        who: &Principal,
    ) -> Result<(), Error> {
        let looked = match self.drafts.look_at_changes(approval).await {
            Ok(looked) => looked,
            Err(Error::NoSuchApproval { .. } | Error::NoChanges { .. }) => {
                return Err(self.questions.how_it_ended(&approval.id, who)?);
            }
            Err(error) => return Err(error),
        };
        if self.drafts.renew_changes(approval, &looked).await? {
            return Err(self.questions.changed(&approval.id, who)?);
        }
        self.drafts.check_order(&looked.row)?;
        match decision.kind {
            // What it did on a copy goes, so nothing can stand in its way.
            DecisionKind::ApproveEdited => {
                let now = self.questions.look_again(approval).await?;
                return self.check_other(approval, decision, now).await;
            }
            DecisionKind::RunForReal if approval.needed > 1 => return Err(two_must_see()),
            DecisionKind::RunForReal => {
                let now = self.questions.look_again(approval).await?;
                let text = now.request.command.clone();
                return self.check_edited(now, &text).await;
            }
            DecisionKind::ApproveAlways if approval.needed > 1 => return Err(two_must_see()),
            _ => {}
        }
        looked.check()?;
        for (pattern, scope, until) in &decision.grants {
            self.rules.check_grant(pattern, scope, *until, who)?;
        }
        Ok(())
    }

    /// Refuses an edited text that nobody may run.
    async fn check_edited(self: &Arc<Self>, original: Case, text: &str) -> Result<(), Error> {
        let case = self.cases.edited(original, text).await?;
        match case.judged.judgement.verdict {
            Verdict::Ask if self.questions.needed(risk(&case)) > 1 => Err(Error::invalid(
                "two_must_see_it",
                "two people must approve the new text; nothing was decided".into(),
                "reject it, and say what to request instead",
            )),
            Verdict::Reject => Err(Error::invalid(
                "blocked",
                format!("{} Nothing was decided.", case.refusal().text),
                "write another text, or reject",
            )),
            _ => Ok(()),
        }
    }

    async fn answer(
        self: &Arc<Self>,
        approval: Approval,
        decision: Decision,
        who: &Principal,
    ) -> Result<ApprovalView, Error> {
        let approve = decision.kind != DecisionKind::Reject;
        let answer = Answer {
            by: who.name().to_owned(),
            approve,
            how: match decision.through {
                Some(through) => format!("{}, through {through}", who.how()),
                None => who.how().to_owned(),
            },
            origin: who.origin(),
            reason: decision.reason.clone(),
            edited: match decision.kind {
                DecisionKind::ApproveEdited => decision.command.clone(),
                // The same text: what counts is that it runs.
                DecisionKind::RunForReal => Some(text_of(&approval)),
                _ => None,
            },
            at: self.core.clock.micros(),
        };
        let edited = answer.edited.clone();
        let reason = rejected(who, answer.reason.as_deref(), is_about_changes(&approval));
        let detail = move |command: &Command| explained(command, reason.clone());
        let template = self
            .core
            .entry_about("approval.approved", who.name(), &approval, json!({}));
        let told = json!({ "approval": approval.id, "kind": decision.kind, "how": answer.how,
                           "origin": answer.origin, "reason": answer.reason,
                           "edited": answer.edited, "fingerprint": approval.fingerprint });
        let entries = move |approval: &Approval, commands: &[Command]| {
            entries(template, &told, approve, approval, commands)
        };
        let (id, fingerprint) = (approval.id.clone(), approval.fingerprint.clone());
        let answered = self
            .core
            .store
            .approvals()
            .answer(id, fingerprint, answer, detail, entries)
            .await?;
        match answered {
            Answered::Settled { approval, commands } => {
                self.questions.clear_deadline(&approval.id);
                if approve {
                    let allowed = self.allow_from_now_on(&decision, who).await;
                    // In any case: the answer is on record.
                    self.life
                        .begin_approved(&approval, commands, edited.as_deref())
                        .await;
                    allowed?;
                } else {
                    for (command, _) in &commands {
                        self.drafts.throw_away(&command.id, who.name()).await?;
                        self.waiters.tell(&command.id);
                    }
                    self.block_from_now_on(&decision.blocks, &approval, who)
                        .await?;
                }
                self.question(&approval.id, who).await
            }
            Answered::More { .. } => self.question(&approval.id, who).await,
            Answered::Again => Err(Error::AnsweredAlready),
            Answered::Closed(_) => Err(self.questions.how_it_ended(&approval.id, who)?),
            Answered::Changed(_) => Err(self.questions.changed(&approval.id, who)?),
            Answered::Missing => Err(Error::NoSuchApproval { id: approval.id }),
        }
    }

    async fn allow_from_now_on(&self, decision: &Decision, who: &Principal) -> Result<(), Error> {
        if decision.kind != DecisionKind::ApproveAlways {
            return Ok(());
        }
        for (pattern, scope, until) in &decision.grants {
            self.rules
                .add_grant(pattern, scope.clone(), *until, who)
                .await?;
        }
        Ok(())
    }
}

fn entries(
    template: Entry,
    told: &serde_json::Value,
    approve: bool,
    approval: &Approval,
    commands: &[Command],
) -> Vec<Entry> {
    let settled = approval.state != ApprovalState::Pending;
    let (kind, run_kind) = match (approve, settled) {
        (true, false) => ("approval.one_of_two", ""),
        (true, true) => ("approval.approved", "run.approved"),
        (false, _) => ("approval.rejected", "run.rejected"),
    };
    let one = |kind, run: Option<String>| Entry {
        kind,
        run,
        detail: told.clone(),
        ..template.clone()
    };
    let runs = commands
        .iter()
        .map(|command| one(run_kind, Some(command.id.clone())));
    std::iter::once(one(kind, None)).chain(runs).collect()
}

/// Returns the text that a question is about.
fn text_of(approval: &Approval) -> String {
    let text = approval.body.get("command").and_then(|text| text.as_str());
    text.unwrap_or_default().to_owned()
}

fn two_must_see() -> Error {
    Error::invalid(
        "two_must_see_it",
        "two people must approve this, and this action takes one only; nothing was decided".into(),
        "approve it once",
    )
}

fn rejected(who: &Principal, why: Option<&str>, about_changes: bool) -> Reason {
    let who = who.name();
    let nothing = match about_changes {
        true => "Its changes were discarded; nothing was applied.",
        false => "Nothing was run.",
    };
    Reason::new(
        "rejected",
        match why {
            Some(why) => format!("Rejected by {who}: ‘{why}’ {nothing}"),
            None => format!("Rejected by {who}. {nothing}"),
        },
    )
}
