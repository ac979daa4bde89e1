//! Questions that wait for a person: asked once, shown as they are now, and
//! closed by an answer, by whoever asked, or by the clock.
//!
//! | subject | methods |
//! |---|---|
//! | asking | [`Questions::ask`], [`Questions::taken`] |
//! | a question again, as it is now | [`Questions::look_again`], [`Questions::renew`] |
//! | taking one back | [`Questions::withdraw_command`], [`Questions::leave_closed`] |
//! | ending one without an answer | [`Questions::expire`], [`Questions::close_question`] |
//! | as a person sees it | [`Questions::card`] |
//!
//! Answers are taken by the inbox, which stands on this.

mod card;
mod clock;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use weighlock_store::{Approval, ApprovalState, Ask, Asked, Command, Entry, Risk, State};

pub(crate) use self::card::{answer_view, body as card_of, of_the_request, risk};
pub(crate) use self::clock::Deadlines;
use crate::case::{Case, Cases, PendingRequest};
use crate::core::Core;
use crate::error::{Error, brief};
use crate::limits::RuntimeLimits;
use crate::principal::Principal;
use crate::quota::tell_text;
use crate::runs::{Outcome, Runs, Waiters};
use crate::sandboxes::Sandboxes;
use crate::session::Sessions;
use crate::time;
use crate::view::{Reason, explained};

/// Asks people, and keeps what is asked until it is answered.
pub(crate) struct Questions {
    core: Arc<Core>,
    limits: Arc<RuntimeLimits>,
    sandboxes: Arc<Sandboxes>,
    sessions: Arc<Sessions>,
    waiters: Arc<Waiters>,
    runs: Arc<Runs>,
    cases: Arc<Cases>,
    /// When each question ends.
    deadlines: Arc<Deadlines>,
}

/// What [`Questions`] stand on.
pub(crate) struct QuestionsNeeds {
    pub(crate) core: Arc<Core>,
    pub(crate) limits: Arc<RuntimeLimits>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) cases: Arc<Cases>,
}

impl Questions {
    pub(crate) fn new(needs: QuestionsNeeds) -> Self {
        let QuestionsNeeds {
            core,
            limits,
            sandboxes,
            sessions,
            waiters,
            runs,
            cases,
        } = needs;
        Self {
            deadlines: Arc::default(),
            core,
            limits,
            sandboxes,
            sessions,
            waiters,
            runs,
            cases,
        }
    }
}

impl Questions {
    /// Takes back what has just begun to wait in a session that was closed
    /// meanwhile: whoever closed it may not have seen it.
    pub(crate) async fn leave_closed(
        &self,
        command: &str,
        session: &str,
        who: &Principal,
    ) -> Result<(), Error> {
        if self.sessions.is_closed(session)?
            && let Some(command) = self.core.store.commands().named(command)?.pop()
        {
            self.withdraw_command(command, who).await?;
        }
        Ok(())
    }

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
        let fresh = self.cases.unrun(&case, State::Waiting);
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
        let request = PendingRequest::from(&case).to_json();
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
        let (questions, session) = (Arc::clone(self), case.session.clone());
        let (of, who) = (id.clone(), case.request.principal.clone());
        let asked = tokio::spawn(async move {
            let asked = questions.put(ask, entry).await?;
            questions.leave_closed(&of, &session, &who).await?;
            Ok::<_, Error>(asked)
        });
        // Many wait at once, and what is known about a command can be large.
        drop(case);
        let asked = asked.await.expect("asking does not panic")?;
        self.taken(wait, &id, asked).await
    }

    /// Puts a question, or joins one that is asked already, and its clock.
    pub(crate) async fn put(&self, ask: Ask, entry: Entry) -> Result<Asked, Error> {
        let id = ask.approval.id.clone();
        let asked = self
            .core
            .store
            .approvals()
            .ask(ask, move |command, question, new| {
                command.detail = explained(command, waiting(&question.id, question.expires_at));
                entries(entry, question, new)
            });
        let asked = asked.await?;
        if asked == Asked::New {
            self.set_deadline(&id);
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
            Asked::New | Asked::Joined(_) => self.runs.again(wait, id, true).await,
            Asked::Before { command_id, same } => self.runs.again(wait, &command_id, same).await,
            Asked::TooMany => Err(Error::TooManyWaiting {
                waiting: self.core.config.approvals.max_pending,
            }),
            Asked::Over => Err(Error::NotWaiting { id: id.to_owned() }),
        }
    }

    pub(crate) fn approval(&self, case: &Case, id: String, now: i64) -> Approval {
        let risk = risk(case);
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
            body: card_of(case),
        }
    }

    /// Returns how many people have to approve.
    pub(crate) fn needed(&self, risk: Risk) -> u32 {
        let two = risk == Risk::High && self.core.config.approvals.two_for_high_risk;
        if two { 2 } else { 1 }
    }

    pub(crate) fn find_approval(&self, id: &str, who: &Principal) -> Result<Approval, Error> {
        let mut found = match id.strip_prefix("ap_") {
            // Every id begins like that.
            Some("") => vec![],
            _ => self.core.store.approvals().named(id)?,
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
        let runs = self.core.store.approvals().runs_of(&of.id)?;
        let waiting = { runs.iter() }.find(|(_, state)| *state == State::Waiting);
        let gone = || Error::NoSuchApproval { id: of.id.clone() };
        let (id, _) = waiting.ok_or_else(gone)?;
        let kept = self.core.store.pending().request(id)?.ok_or_else(gone)?;
        self.cases.case(self.cases.revive(&kept)?).await
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

    /// Replaces a question by its renewed form.
    pub(crate) async fn put_renewed(&self, was: &Approval, renewed: Approval) -> Result<(), Error> {
        let detail = json!({ "approval": was.id, "was": was.fingerprint,
                             "fingerprint": renewed.fingerprint });
        let entry = self
            .core
            .entry_about("approval.renewed", "weighlock", was, detail);
        let was = (was.id.clone(), was.fingerprint.clone());
        self.core
            .store
            .approvals()
            .renew(was.0, was.1, renewed, vec![entry])
            .await?;
        Ok(())
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
                    .approvals()
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
                    .pending()
                    .end(command, was, vec![entry])
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

    /// Returns how a question ended.
    pub(crate) fn how_it_ended(&self, id: &str, who: &Principal) -> Result<Error, Error> {
        let approval = self.find_approval(id, who)?;
        Ok(Error::Closed {
            approval: Box::new(self.card(approval)?),
        })
    }

    /// Returns what the question is now.
    pub(crate) fn changed(&self, id: &str, who: &Principal) -> Result<Error, Error> {
        let approval = self.find_approval(id, who)?;
        Ok(Error::PayloadChanged {
            approval: Some(Box::new(self.card(approval)?)),
        })
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
