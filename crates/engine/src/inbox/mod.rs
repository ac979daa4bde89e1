//! The inbox: what people are asked, as they see it, and their answers.
//!
//! | subject | methods |
//! |---|---|
//! | questions | [`Inbox::list`], [`Inbox::waiting`], [`Inbox::question`], [`Inbox::extend`] |
//! | an answer | [`Inbox::decide`], [`Inbox::decide_run`] |
//! | what could be allowed from now on | [`Inbox::rule_proposals`] |
//! | seeing what a command does before answering | [`Inbox::try_question`] |
//! | changes | [`Inbox::commit_changes`], [`Inbox::discard_changes`], [`Inbox::commit_draft`], [`Inbox::discard_draft`] |
//! | taking a request back | [`Inbox::withdraw`] |

mod block;
mod changes;
mod decide;
mod propose;

use crate::questions::answer_view;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use weighlock_backup::Archiver;
use weighlock_store::{Approval, ApprovalFilter, ApprovalState};

pub use self::decide::{Decision, DecisionKind};
pub use self::propose::{RuleChoice, RuleGroup, RuleProposals, ScopeView};
use crate::case::Cases;
use crate::copies::Copies;
use crate::core::Core;
use crate::drafts::Drafts;
use crate::error::Error;
use crate::life::Life;
use crate::limits::RuntimeLimits;
use crate::pause::Pauses;
use crate::principal::{Principal, Right};
use crate::questions::{Questions, is_about_changes};
use crate::rules::Rules;
use crate::runs::{Runs, Waiters};
use crate::time;
use crate::view::{ApprovalView, Run};

/// Which approvals to list.
#[derive(Debug, Clone, Default)]
pub struct InboxFilter {
    /// Only those in this state.
    pub state: Option<ApprovalState>,
    /// Only in this sandbox, by id.
    pub sandbox: Option<String>,
    /// Only of this requester.
    pub requested_by: Option<String>,
    /// The `next` of the previous page.
    pub cursor: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// Takes what people decide; see [`Engine::inbox`](crate::Engine::inbox).
pub struct Inbox {
    core: Arc<Core>,
    limits: Arc<RuntimeLimits>,
    pauses: Arc<Pauses>,
    rules: Arc<Rules>,
    archiver: Arc<Archiver>,
    waiters: Arc<Waiters>,
    runs: Arc<Runs>,
    cases: Arc<Cases>,
    questions: Arc<Questions>,
    copies: Arc<Copies>,
    drafts: Arc<Drafts>,
    life: Arc<Life>,
}

/// What the [`Inbox`] stands on.
pub(crate) struct InboxNeeds {
    pub(crate) core: Arc<Core>,
    pub(crate) limits: Arc<RuntimeLimits>,
    pub(crate) pauses: Arc<Pauses>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) archiver: Arc<Archiver>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) cases: Arc<Cases>,
    pub(crate) questions: Arc<Questions>,
    pub(crate) copies: Arc<Copies>,
    pub(crate) drafts: Arc<Drafts>,
    pub(crate) life: Arc<Life>,
}

impl Inbox {
    pub(crate) fn new(needs: InboxNeeds) -> Self {
        let InboxNeeds {
            core,
            limits,
            pauses,
            rules,
            archiver,
            waiters,
            runs,
            cases,
            questions,
            copies,
            drafts,
            life,
        } = needs;
        Self {
            core,
            limits,
            pauses,
            rules,
            archiver,
            waiters,
            runs,
            cases,
            questions,
            copies,
            drafts,
            life,
        }
    }
}

impl Inbox {
    /// Lists approvals: those that wait with the riskiest first and then the
    /// longest waiting, others newest first. Returns where to go on.
    pub fn list(
        &self,
        filter: InboxFilter,
        who: &Principal,
    ) -> Result<(Vec<ApprovalView>, Option<String>), Error> {
        let (found, cursor) = self.core.store.approvals().list(&ApprovalFilter {
            state: filter.state,
            visible: who.visible(),
            sandbox: filter.sandbox,
            requested_by: filter.requested_by,
            cursor: filter.cursor,
            limit: filter.limit,
        })?;
        let views = found
            .into_iter()
            .map(|approval| self.questions.card(approval));
        Ok((views.collect::<Result<_, _>>()?, cursor))
    }

    /// Returns how many questions wait that somebody may see.
    pub fn waiting(&self, who: &Principal) -> Result<u64, Error> {
        Ok(self.core.store.approvals().count_pending(&who.visible())?)
    }

    /// Returns one approval with everything that led to it, as it would be
    /// judged now. If that is something else than what was asked, the question
    /// is renewed.
    pub async fn question(
        self: &Arc<Self>,
        id: &str,
        who: &Principal,
    ) -> Result<ApprovalView, Error> {
        let mut approval = self.questions.find_approval(id, who)?;
        let mut explanation = None;
        if approval.state == ApprovalState::Pending && is_about_changes(&approval) {
            return self.question_of_changes(approval, who).await;
        }
        if approval.state == ApprovalState::Pending {
            match self.questions.look_again(&approval).await {
                Ok(now) => {
                    if now.is_another(&approval) {
                        self.questions.renew(&approval, &now).await?;
                    }
                    explanation = Some(now.explain());
                }
                Err(error @ Error::Store(_)) => return Err(error),
                // Nothing of it waits any more; or its directory is gone, say,
                // and a person can still see what was asked, and reject it.
                Err(_) => {}
            }
            approval = self.questions.find_approval(&approval.id, who)?;
        }
        let mut view = self.questions.card(approval)?;
        view.explanation = explanation.map(Box::new);
        view.answers = {
            self.core
                .store
                .approvals()
                .answers(&view.approval_id)?
                .into_iter()
        }
        .map(answer_view)
        .collect();
        Ok(view)
    }

    /// The same for one that is about changes: they are compared with the live
    /// tree as it is now.
    async fn question_of_changes(
        self: &Arc<Self>,
        mut approval: Approval,
        who: &Principal,
    ) -> Result<ApprovalView, Error> {
        let looked = match self.drafts.look_at_changes(&approval).await {
            Ok(looked) => Some(looked),
            Err(error @ Error::Store(_)) => return Err(error),
            // They cannot be read; a person can still see what was asked, and
            // reject it.
            Err(_) => None,
        };
        if let Some(looked) = &looked
            && self.drafts.renew_changes(&approval, looked).await?
        {
            approval = self.questions.find_approval(&approval.id, who)?;
        }
        let explanation = match self.questions.look_again(&approval).await {
            Ok(now) => Some(Box::new(now.explain())),
            Err(error @ Error::Store(_)) => return Err(error),
            Err(_) => None,
        };
        let mut view = self.questions.card(approval)?;
        view.explanation = explanation;
        if let (Some(effect), Some(looked)) = (&mut view.effect, &looked) {
            effect.conflicts = looked.conflict_infos();
            if let Err(Error::EarlierFirst { runs }) = self.drafts.check_order(&looked.row) {
                effect.after = runs;
            }
            let needed_by = self.drafts.built_on(&looked.row.run)?;
            let needed_by = needed_by.iter().map(|row| crate::id::short(&row.run));
            effect.needed_by = needed_by.collect();
        }
        view.answers = {
            self.core
                .store
                .approvals()
                .answers(&view.approval_id)?
                .into_iter()
        }
        .map(answer_view)
        .collect();
        Ok(view)
    }

    /// Gives people more time to answer.
    pub async fn extend(
        self: &Arc<Self>,
        id: &str,
        seconds: u64,
        who: &Principal,
    ) -> Result<ApprovalView, Error> {
        let approval = self.to_decide(id, "give more time", who).await?;
        let longest = self.limits.answer_time().as_secs().max(24 * 3600);
        let more = Duration::from_secs(seconds.min(longest));
        let Some(left) = self.questions.prolong(&approval.id, more) else {
            // The clock was first, even if it has not said so yet.
            self.questions.expire(&approval.id).await?;
            return Err(self.questions.how_it_ended(&approval.id, who)?);
        };
        let until = self.core.clock.micros() + left.as_micros() as i64;
        let detail = json!({ "approval": approval.id, "expires_at": time(until) });
        let entry = self
            .core
            .entry_about("approval.extended", who.name(), &approval, detail);
        let id = approval.id.clone();
        match self
            .core
            .store
            .approvals()
            .extend(id, until, vec![entry])
            .await?
        {
            Some(extended) => self.questions.card(extended),
            None => {
                self.questions.clear_deadline(&approval.id);
                Err(self.questions.how_it_ended(&approval.id, who)?)
            }
        }
    }

    /// Takes a request back that has not begun.
    pub async fn withdraw(self: &Arc<Self>, run: &Run, who: &Principal) -> Result<Run, Error> {
        let found = self.core.store.commands().named(&run.command_id)?;
        let command = { found.into_iter() }.next();
        let command =
            command.filter(|command| who.sees(&command.requested_by, command.sandbox.as_deref()));
        let command = command.ok_or_else(|| Error::NoSuchRun {
            id: run.command_id.clone(),
        })?;
        if command.requested_by != who.name() {
            who.check(Right::Operate)?;
        }
        let held = self.drafts.holds_changes(&command.id)?;
        match self.questions.withdraw_command(command, who).await? {
            true if held => {
                self.drafts.throw_away(&run.command_id, who.name()).await?;
                self.runs.find(&run.command_id, who)
            }
            true => self.runs.find(&run.command_id, who),
            false => Err(Error::NotWaiting {
                id: run.short_id.clone(),
            }),
        }
    }
}
