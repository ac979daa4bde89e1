//! What could be allowed from now on, instead of being asked about again.

use std::sync::Arc;

pub use weighlock_api::{RuleChoice, RuleGroup, RuleProposals, ScopeView};
use weighlock_policy::{Effect, Part, Subject, Verdict, propose};
use weighlock_store::{Approval, ApprovalState, Filter, State};

use super::Inbox;
use crate::case::Case;
use crate::error::Error;
use crate::policy;
use crate::principal::Principal;
use crate::rules::past_command;
use crate::rules::written;
use crate::rules::{Past, PastCommand};

/// How many commands of the past are looked at: about a week of one agent.
const LOOK_BACK: usize = 500;

/// How many of those that match are named.
const NAMED: usize = 50;

/// For how many parts of one command something is offered. Each is compared with
/// all of the past, and nobody goes through more of them.
const MAX_GROUPS: usize = 20;

/// Parts that are told of as allowed already.
const MAX_ALLOWED: usize = 200;

impl Inbox {
    /// Returns what could be allowed from now on where a question is asked.
    pub async fn rule_proposals(
        self: &Arc<Self>,
        id: &str,
        who: &Principal,
    ) -> Result<RuleProposals, Error> {
        let approval = self.to_decide(id, "see what could be allowed", who).await?;
        if approval.state != ApprovalState::Pending {
            return Err(self.questions.how_it_ended(&approval.id, who)?);
        }
        let case = self.questions.look_again(&approval).await?;
        if let Some(why) = self.never_always(&approval, &case, who) {
            return Ok(RuleProposals {
                why: Some(why),
                ..RuleProposals::default()
            });
        }
        let (inbox, who) = (Arc::clone(self), who.clone());
        let proposed = tokio::task::spawn_blocking(move || inbox.propose(&case, &who));
        proposed.await.expect("proposing does not panic")
    }

    /// Says why nothing can be allowed beforehand.
    fn never_always(&self, approval: &Approval, case: &Case, who: &Principal) -> Option<String> {
        let approvals = &self.core.config.approvals;
        if !self.limits.allows_always() {
            return Some("Administrators have switched this off.".into());
        }
        if approval.needed > 1 {
            return Some("Two people have to approve this.".into());
        }
        if (approvals.four_eyes || approvals.two_for_high_risk) && !who.is_administrator() {
            return Some("Only administrators can add grants here.".into());
        }
        let judgement = &case.judged.judgement;
        if judgement.asked().len() > MAX_GROUPS {
            return Some("It does too many things for a grant.".into());
        }
        judgement.unforeseen(&case.request.command)
    }

    fn propose(&self, case: &Case, who: &Principal) -> Result<RuleProposals, Error> {
        let of = |state| Filter {
            state,
            limit: LOOK_BACK,
            ..Filter::default()
        };
        let past = self.rules.list_past(of(None), who)?;
        let mut refused = self.rules.list_past(of(Some(State::Rejected)), who)?;
        refused.extend(self.rules.list_past(of(Some(State::Blocked)), who)?);
        let judgement = &case.judged.judgement;
        let parts = judgement.facts.parts.iter().zip(&judgement.parts);
        let groups = judgement.asked().into_iter();
        let groups: Vec<RuleGroup> = groups
            .map(|part| group(case, part, &past, &refused))
            .collect();
        let offered = groups.iter().any(|group| !group.choices.is_empty());
        Ok(RuleProposals {
            offered,
            why: (!offered).then(|| "No rule can allow what this does.".into()),
            groups,
            allowed: parts
                .filter(|(part, decided)| decided.verdict == Verdict::Auto && !part.possible)
                .take(MAX_ALLOWED)
                .map(|(part, _)| text_of(case, part))
                .collect(),
            looked_at: past.len(),
            scopes: scopes(case, who),
            session: Some(case.session.clone()),
        })
    }
}

fn group(case: &Case, part: &Part, past: &[Past], refused: &[Past]) -> RuleGroup {
    let subject = Subject {
        text: &case.request.command,
        place: Some(&case.judged.place),
        ..Subject::default()
    };
    let choices: Vec<RuleChoice> = { propose(part, &subject, &policy::for_examples).into_iter() }
        .filter_map(|proposal| {
            let granted = policy::granted(&proposal.pattern)?;
            let met = |past: &&Past| past.is_met_by(&granted);
            let matched: Vec<&Past> = past.iter().filter(met).collect();
            Some(RuleChoice {
                matched: matched.len(),
                commands: named(matched.into_iter()),
                refused: named(refused.iter().filter(met)),
                pattern: proposal.pattern,
                label: proposal.label,
            })
        })
        .collect();
    RuleGroup {
        text: text_of(case, part),
        span: (part.span.start, part.span.end),
        program: (!part.program.is_empty()).then(|| part.program.clone()),
        does: part.does.clone(),
        selected: (!choices.is_empty() && !is_weighty(part)).then_some(0),
        choices,
    }
}

/// Returns whether it should be asked about each time, unless a person says
/// otherwise.
fn is_weighty(part: &Part) -> bool {
    let weighty = [Effect::Delete, Effect::Execute, Effect::Network];
    part.unknown.is_some() || weighty.iter().any(|&effect| part.effects.has(effect))
}

fn named<'a>(past: impl Iterator<Item = &'a Past>) -> Vec<PastCommand> {
    { past.take(NAMED) }
        .map(|past| past_command(&past.command))
        .collect()
}

fn text_of(case: &Case, part: &Part) -> String {
    written(&case.request.command, part).trim().to_owned()
}

/// For whom somebody may allow what was asked: administrators everywhere,
/// others where it was asked.
fn scopes(case: &Case, who: &Principal) -> Vec<ScopeView> {
    let sandbox = &case.known.sandbox;
    let scope = |label: String, agent: Option<&str>, within: bool| ScopeView {
        label,
        agent: agent.map(str::to_owned),
        sandbox: within.then(|| sandbox.id.clone()),
    };
    let mut scopes = vec![];
    if let Some(name) = case.agent() {
        scopes.push(scope(
            format!("{name} in {}", sandbox.name),
            Some(name),
            true,
        ));
        let anywhere = scope(format!("{name} everywhere"), Some(name), false);
        scopes.extend(who.is_administrator().then_some(anywhere));
    }
    scopes.push(scope(format!("Everyone in {}", sandbox.name), None, true));
    let everyone = scope("Everyone everywhere".into(), None, false);
    scopes.extend(who.is_administrator().then_some(everyone));
    scopes
}
