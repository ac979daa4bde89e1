//! The durable inbox: questions that wait for a person, and their answers.

mod begin;
mod bind;
mod block;
mod card;
mod clock;
mod decide;
mod kept;
mod propose;
mod wait;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use weighlock_policy::Verdict;
use weighlock_store::{
    Approval, ApprovalFilter, ApprovalState, Ask, Asked, Command, Entry, Risk, State,
};

use self::card::answer_view;
pub(crate) use self::card::{body as card_of, of_the_request};
pub(crate) use self::clock::Deadlines;
pub use self::decide::{Decision, DecisionKind};
pub(crate) use self::kept::Kept;
pub use self::propose::{RuleChoice, RuleGroup, RuleProposals, ScopeView};
pub(crate) use self::wait::Waiters;
use crate::engine::Engine;
use crate::error::{Error, brief};
use crate::principal::{Principal, Right};
use crate::quota::tell_text;
use crate::run::{Case, Outcome};
use crate::time;
use crate::view::{ApprovalView, Reason, Run, explained};

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

impl Engine {
    /// Puts a question into the inbox; identical ones share a place there. It
    /// may be about a command that is on record, and was held until now.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        case: Case,
        held: Option<Command>,
    ) -> Result<Outcome, Error> {
        let wait = case.request.wait_for_answer()?;
        let now = self.core.clock.micros();
        let id = self.core.ids.next_as("ap", now);
        let approval = self.approval(&case, id, now);
        let fresh = self.unrun(&case, State::Waiting);
        let command = match held {
            None => fresh,
            Some(held) => Command {
                id: held.id,
                created_at: held.created_at,
                ..fresh
            },
        };
        let mut detail = json!({ "cwd": command.cwd, "agent": case.request.agent,
                           "risk": approval.risk, "reasons": reasons_of(&approval),
                           "fingerprint": approval.fingerprint });
        tell_text(&mut detail, &command.command);
        let who = case.request.principal.name();
        let entry = self.core.entry_of("run.waiting", who, &command, detail);
        let request = Kept::from(&case).to_json();
        self.core.charge(who, request.len() as u64);
        self.core.charge_entry(who, &approval.body);
        let id = command.id.clone();
        let ask = Ask {
            command,
            request,
            key: case.key(),
            max_pending: self.core.config.approvals.max_pending,
            approval,
        };
        // Whoever hangs up now has asked nevertheless, and the clock must know.
        let (engine, session) = (Arc::clone(self), case.session.clone());
        let (of, who) = (id.clone(), case.request.principal.clone());
        let asked = tokio::spawn(async move {
            let asked = engine.put(ask, entry).await?;
            engine.leave_closed(&of, &session, &who).await?;
            Ok::<_, Error>(asked)
        });
        // Many wait at once, and what is known about a command can be large.
        drop(case);
        let asked = asked.await.expect("asking does not panic")?;
        self.taken(wait, &id, asked).await
    }

    /// Puts a question, or joins one that is asked already, and its clock.
    async fn put(&self, ask: Ask, entry: Entry) -> Result<Asked, Error> {
        let id = ask.approval.id.clone();
        let asked = self.core.store.ask(ask, move |command, question, new| {
            command.detail = explained(command, waiting(&question.id, question.expires_at));
            entries(entry, question, new)
        });
        let asked = asked.await?;
        if asked == Asked::New {
            self.deadlines.set(&id, self.limits.answer_time());
        }
        Ok(asked)
    }

    /// Goes on with a request that has not begun, or says why it was not taken.
    pub(crate) async fn taken(
        &self,
        wait: Option<Duration>,
        id: &str,
        asked: Asked,
    ) -> Result<Outcome, Error> {
        match asked {
            Asked::New | Asked::Joined(_) => self.again(wait, id, true).await,
            Asked::Before { command_id, same } => self.again(wait, &command_id, same).await,
            Asked::TooMany => Err(Error::TooManyWaiting {
                waiting: self.core.config.approvals.max_pending,
            }),
            Asked::Over => Err(Error::NotWaiting { id: id.to_owned() }),
        }
    }

    fn approval(&self, case: &Case, id: String, now: i64) -> Approval {
        let risk = card::risk(case);
        Approval {
            id,
            state: ApprovalState::Pending,
            fingerprint: case.judged.fingerprint.clone(),
            requested_by: case.request.principal.name().into(),
            sandbox: case.known.sandbox.id.clone(),
            risk,
            version: 1,
            created_at: now,
            expires_at: now + self.limits.answer_time().as_micros() as i64,
            decided_at: None,
            decided_by: None,
            count: 1,
            needed: self.needed(risk),
            body: card::body(case),
        }
    }

    /// Returns how many people have to approve.
    pub(crate) fn needed(&self, risk: Risk) -> u32 {
        let two = risk == Risk::High && self.core.config.approvals.two_for_high_risk;
        if two { 2 } else { 1 }
    }

    /// Lists approvals: those that wait with the riskiest first and then the
    /// longest waiting, others newest first. Returns where to go on.
    pub fn inbox(
        &self,
        filter: InboxFilter,
        who: &Principal,
    ) -> Result<(Vec<ApprovalView>, Option<String>), Error> {
        let (found, cursor) = self.core.store.approvals(&ApprovalFilter {
            state: filter.state,
            visible: who.visible(),
            sandbox: filter.sandbox,
            requested_by: filter.requested_by,
            cursor: filter.cursor,
            limit: filter.limit,
        })?;
        let views = found.into_iter().map(|approval| self.card(approval));
        Ok((views.collect::<Result<_, _>>()?, cursor))
    }

    /// Returns how many questions wait that somebody may see.
    pub fn waiting(&self, who: &Principal) -> Result<u64, Error> {
        Ok(self.core.store.count_pending(&who.visible())?)
    }

    /// Returns one approval with everything that led to it, as it would be
    /// judged now. If that is something else than what was asked, the question
    /// is renewed.
    pub async fn question(
        self: &Arc<Self>,
        id: &str,
        who: &Principal,
    ) -> Result<ApprovalView, Error> {
        let mut approval = self.find_approval(id, who)?;
        let mut explanation = None;
        if approval.state == ApprovalState::Pending && is_about_changes(&approval) {
            return self.question_of_changes(approval, who).await;
        }
        if approval.state == ApprovalState::Pending {
            match self.look_again(&approval).await {
                Ok(now) => {
                    if now.is_another(&approval) {
                        self.renew(&approval, &now).await?;
                    }
                    explanation = Some(now.explain());
                }
                Err(error @ Error::Store(_)) => return Err(error),
                // Nothing of it waits any more; or its directory is gone, say,
                // and a person can still see what was asked, and reject it.
                Err(_) => {}
            }
            approval = self.find_approval(&approval.id, who)?;
        }
        let mut view = self.card(approval)?;
        view.explanation = explanation.map(Box::new);
        view.answers = { self.core.store.answers(&view.approval_id)?.into_iter() }
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
        let looked = match self.look_at_changes(&approval).await {
            Ok(looked) => Some(looked),
            Err(error @ Error::Store(_)) => return Err(error),
            // They cannot be read; a person can still see what was asked, and
            // reject it.
            Err(_) => None,
        };
        if let Some(looked) = &looked
            && self.renew_changes(&approval, looked).await?
        {
            approval = self.find_approval(&approval.id, who)?;
        }
        let explanation = match self.look_again(&approval).await {
            Ok(now) => Some(Box::new(now.explain())),
            Err(error @ Error::Store(_)) => return Err(error),
            Err(_) => None,
        };
        let mut view = self.card(approval)?;
        view.explanation = explanation;
        if let (Some(effect), Some(looked)) = (&mut view.effect, &looked) {
            effect.conflicts = looked.conflict_infos();
            if let Err(Error::EarlierFirst { runs }) = self.check_order(&looked.row) {
                effect.after = runs;
            }
            let needed_by = self.built_on(&looked.row.run)?;
            let needed_by = needed_by.iter().map(|row| crate::id::short(&row.run));
            effect.needed_by = needed_by.collect();
        }
        view.answers = { self.core.store.answers(&view.approval_id)?.into_iter() }
            .map(answer_view)
            .collect();
        Ok(view)
    }

    pub(crate) fn find_approval(&self, id: &str, who: &Principal) -> Result<Approval, Error> {
        let mut found = match id.strip_prefix("ap_") {
            // Every id begins like that.
            Some("") => vec![],
            _ => self.core.store.approvals_named(id)?,
        };
        found.retain(|approval| who.sees(&approval.requested_by, Some(&approval.sandbox)));
        match (found.pop(), found.pop()) {
            (None, _) => Err(Error::NoSuchApproval { id: brief(id) }),
            (Some(_), Some(_)) => Err(Error::Ambiguous { id: brief(id) }),
            (Some(approval), None) => Ok(approval),
        }
    }

    /// Judges the request behind a question once more.
    pub(crate) async fn look_again(self: &Arc<Self>, of: &Approval) -> Result<Case, Error> {
        let runs = self.core.store.runs_of(&of.id)?;
        let waiting = { runs.iter() }.find(|(_, state)| *state == State::Waiting);
        let gone = || Error::NoSuchApproval { id: of.id.clone() };
        let (id, _) = waiting.ok_or_else(gone)?;
        let kept = self.core.store.pending_request(id)?.ok_or_else(gone)?;
        self.case(self.revive(&kept)?).await
    }

    /// Puts the question as it is now in the place of the one that was asked.
    pub(crate) async fn renew(self: &Arc<Self>, was: &Approval, now: &Case) -> Result<(), Error> {
        let renewed = self.approval(now, was.id.clone(), self.core.clock.micros());
        let renewed = Approval {
            created_at: was.created_at,
            expires_at: was.expires_at,
            ..renewed
        };
        self.put_renewed(was, renewed).await
    }

    /// Puts one question in the place of another.
    pub(crate) async fn put_renewed(&self, was: &Approval, renewed: Approval) -> Result<(), Error> {
        let detail = json!({ "approval": was.id, "was": was.fingerprint,
                             "fingerprint": renewed.fingerprint });
        let entry = self
            .core
            .entry_about("approval.renewed", "weighlock", was, detail);
        let was = (was.id.clone(), was.fingerprint.clone());
        self.core
            .store
            .renew(was.0, was.1, renewed, vec![entry])
            .await?;
        Ok(())
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
        let Some(left) = self.deadlines.prolong(&approval.id, more) else {
            // The clock was first, even if it has not said so yet.
            self.expire(&approval.id).await?;
            return Err(self.how_it_ended(&approval.id, who)?);
        };
        let until = self.core.clock.micros() + left.as_micros() as i64;
        let detail = json!({ "approval": approval.id, "expires_at": time(until) });
        let entry = self
            .core
            .entry_about("approval.extended", who.name(), &approval, detail);
        let id = approval.id.clone();
        match self.core.store.extend(id, until, vec![entry]).await? {
            Some(extended) => self.card(extended),
            None => {
                self.deadlines.clear(&approval.id);
                Err(self.how_it_ended(&approval.id, who)?)
            }
        }
    }

    /// Takes a request back that has not begun.
    pub async fn withdraw(self: &Arc<Self>, run: &Run, who: &Principal) -> Result<Run, Error> {
        let found = self.core.store.named(&run.command_id)?;
        let command = { found.into_iter() }.next();
        let command =
            command.filter(|command| who.sees(&command.requested_by, command.sandbox.as_deref()));
        let command = command.ok_or_else(|| Error::NoSuchRun {
            id: run.command_id.clone(),
        })?;
        if command.requested_by != who.name() {
            who.check(Right::Operate)?;
        }
        let held = self.holds_changes(&command.id)?;
        match self.withdraw_command(command, who).await? {
            true if held => {
                self.throw_away(&run.command_id, who.name()).await?;
                self.find(&run.command_id, who)
            }
            true => self.find(&run.command_id, who),
            false => Err(Error::NotWaiting {
                id: run.short_id.clone(),
            }),
        }
    }

    /// Takes a command back; returns whether it still waited.
    pub(crate) async fn withdraw_command(
        &self,
        command: Command,
        who: &Principal,
    ) -> Result<bool, Error> {
        let was = command.state;
        if !matches!(was, State::Waiting | State::Held) || command.approved_by.is_some() {
            return Ok(false);
        }
        let told = json!({ "approval": command.approval });
        let entry = self
            .core
            .entry_of("run.withdrawn", who.name(), &command, told);
        let question = Entry {
            kind: "approval.withdrawn",
            run: None,
            ..entry.clone()
        };
        let reason = withdrawn(who, command.started_at.is_some());
        let command = self.ended_unbegun(command, State::Withdrawn, reason);
        let id = command.id.clone();
        let done = match was {
            State::Waiting => {
                let entries = |closed: Option<&Approval>| {
                    let closed = closed.map(|_| question);
                    closed.into_iter().chain([entry]).collect()
                };
                let closed = self
                    .core
                    .store
                    .withdraw(command, who.name().into(), entries)
                    .await?;
                if let Some(Some(approval)) = &closed {
                    self.deadlines.clear(&approval.id);
                }
                closed.is_some()
            }
            _ => {
                self.core
                    .store
                    .end_unbegun(command, was, vec![entry])
                    .await?
            }
        };
        self.waiters.tell(&id);
        Ok(done)
    }

    /// A command as it is once it will not begin any more.
    pub(crate) fn ended_unbegun(
        &self,
        mut command: Command,
        state: State,
        reason: Reason,
    ) -> Command {
        command.detail = explained(&command, reason);
        command.state = state;
        command.updated_at = self.core.clock.micros();
        command.ended_at = Some(command.updated_at);
        command.open = false;
        command
    }
}

impl Case {
    /// Returns whether it is something else than a person was asked about.
    /// What needs no person any more, or is never run, is nothing to ask about.
    fn is_another(&self, asked: &Approval) -> bool {
        self.judged.judgement.verdict == Verdict::Ask
            && self.judged.fingerprint != asked.fingerprint
    }
}

/// Returns whether a question is about changes that a command made on a copy.
pub(crate) fn is_about_changes(approval: &Approval) -> bool {
    approval.body.get("effect").is_some()
}

fn entries(waiting: Entry, question: &Approval, new: bool) -> Vec<Entry> {
    let mut asked = waiting.clone();
    asked.kind = if new {
        "approval.asked"
    } else {
        "approval.joined"
    };
    let mut both = [waiting, asked];
    for entry in &mut both {
        entry.detail["approval"] = question.id.as_str().into();
        entry.detail["expires_at"] = time(question.expires_at).into();
    }
    both.into()
}

/// What a requester is told while a person is being asked.
fn waiting(approval: &str, expires_at: i64) -> Reason {
    let expires = time(expires_at);
    let clock = expires.get(11..16).unwrap_or(&expires);
    Reason::new(
        "pending_approval",
        format!(
            "Waiting for approval ({}). A person has been asked. It expires at {clock} UTC. Poll \
             the run or continue with other work.",
            crate::id::short(approval)
        ),
    )
}

fn withdrawn(who: &Principal, has_run: bool) -> Reason {
    let nothing = match has_run {
        true => "It ran on a copy; its changes were discarded, and nothing was applied.",
        false => "Nothing was run.",
    };
    Reason::new(
        "withdrawn",
        format!("Withdrawn by {}. {nothing}", who.name()),
    )
}

fn reasons_of(approval: &Approval) -> serde_json::Value {
    let reasons = approval.body["reasons"].as_array();
    reasons
        .into_iter()
        .flatten()
        .map(|reason| reason["text"].clone())
        .collect()
}
