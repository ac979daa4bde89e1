//! The inbox: questions that wait for a person, and deciding them.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use weighlock_api::{
    ApprovalList, ApprovalListParams, ApprovalState, ApprovalStatusFilter, ApprovalView,
    DecisionRequest, ExtendRequest, RuleProposals, Through,
};
use weighlock_engine::{Decision, Engine, InboxFilter};

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Body, Id, Optional, Params, Who, page};

/// How much more time there is for an answer when nothing is said.
const EXTEND_SECONDS: u64 = 600;

pub(crate) async fn list(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(params): Params<ApprovalListParams>,
) -> Result<Json<ApprovalList>, Problem> {
    let filter = InboxFilter {
        state: match params.status.unwrap_or(ApprovalStatusFilter::Pending) {
            ApprovalStatusFilter::Pending => Some(ApprovalState::Pending),
            ApprovalStatusFilter::Approved => Some(ApprovalState::Approved),
            ApprovalStatusFilter::Rejected => Some(ApprovalState::Rejected),
            ApprovalStatusFilter::Expired => Some(ApprovalState::Expired),
            ApprovalStatusFilter::Withdrawn => Some(ApprovalState::Withdrawn),
            ApprovalStatusFilter::Blocked => Some(ApprovalState::Blocked),
            ApprovalStatusFilter::All => None,
        },
        sandbox: params.sandbox,
        requested_by: params.agent,
        cursor: params.cursor,
        limit: page(params.limit),
    };
    blocking(move || {
        let (approvals, cursor) = engine.inbox().list(filter, &who)?;
        Ok(Json(ApprovalList {
            approvals,
            cursor,
            waiting: engine.inbox().waiting(&who)?,
        }))
    })
    .await
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listApprovals")
        .summary("What waits for a person")
        .description(
            "High risk first, then longest waiting; decided ones newest first. An agent sees only \
             its own.",
        )
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<ApprovalView>, Problem> {
    Ok(Json(engine.inbox().question(&id, &who).await?))
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getApproval")
        .summary("One question with everything that led to it")
        .description("As it would be judged now: if that has changed, so has the fingerprint.")
}

pub(crate) async fn decide(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(asked): Body<DecisionRequest>,
) -> Result<Json<ApprovalView>, Problem> {
    let rules = asked.rules.into_iter();
    let decision = Decision {
        kind: asked.kind,
        fingerprint: Some(asked.fingerprint),
        reason: asked.reason,
        through: asked.through.map(|Through::Elicitation| "elicitation"),
        command: asked.command,
        grants: rules
            .map(|rule| (rule.pattern.clone(), rule.scope(), rule.until))
            .collect(),
        blocks: asked.blocks,
    };
    Ok(Json(engine.inbox().decide(&id, decision, &who).await?))
}

pub(crate) fn decide_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("decideApproval")
        .summary("Answer a question")
        .description(
            "Returns when the approved command has started. 409 `already_decided` with the \
             outcome if it was decided or expired before, 409 `payload_changed` with the new \
             question if what would run is not what was shown.",
        )
}

pub(crate) async fn rules(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<RuleProposals>, Problem> {
    Ok(Json(engine.inbox().rule_proposals(&id, &who).await?))
}

pub(crate) fn rules_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getRuleProposals")
        .summary("What could be allowed from now on, instead of being asked about again")
        .description(
            "For each part that is asked about, patterns for `rules` of `approve_always`, the \
             narrowest first, with the commands of the past that each is about. 409 \
             `already_decided` if nothing waits any more.",
        )
}

pub(crate) async fn extend(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Optional(more): Optional<ExtendRequest>,
) -> Result<Json<ApprovalView>, Problem> {
    let seconds = more.seconds.unwrap_or(EXTEND_SECONDS);
    Ok(Json(engine.inbox().extend(&id, seconds, &who).await?))
}

pub(crate) fn extend_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("extendApproval")
        .summary("Give people more time to answer")
}
