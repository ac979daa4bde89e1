//! The inbox: questions that wait for a person, and deciding them.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{
    ApprovalState, ApprovalView, Decision, DecisionKind, Engine, InboxFilter, RuleProposals,
};

use crate::output::blocking;
use crate::policies::NewGrant;
use crate::problem::Problem;
use crate::system::{Body, Id, Optional, Params, Who, page};

/// How much more time there is for an answer when nothing is said.
const EXTEND_SECONDS: u64 = 600;

/// A page of approvals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalList {
    /// Without explanations and answers.
    pub approvals: Vec<ApprovalView>,
    /// Ask for the next page with this; absent on the last.
    pub cursor: Option<String>,
    /// How many wait in all.
    pub waiting: u64,
}

/// Which approvals to list.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub(crate) struct ApprovalListParams {
    /// Only those in this state; `pending` when not given, `all` for all.
    status: Option<ApprovalStatusFilter>,
    /// Only in this sandbox, by id.
    sandbox: Option<String>,
    /// Only of this requester.
    agent: Option<String>,
    /// From the page before.
    cursor: Option<String>,
    /// How many, at most 500.
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Status")]
enum ApprovalStatusFilter {
    Pending,
    Approved,
    Rejected,
    Expired,
    Withdrawn,
    Blocked,
    All,
}

/// What a person decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "kind": "reject", "fingerprint": "0123456789abcdef01234567",
    "reason": "Keep build/reports, delete only build/cache.",
}))]
pub struct DecisionRequest {
    /// Yes or no.
    pub kind: DecisionKind,
    /// From the approval: names exactly what was seen.
    pub fingerprint: String,
    /// The reason that the requester sees, word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What has put the question, where it was not a door of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Through>,
    /// The text to run instead, for `approve_edited`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What is allowed from now on, for `approve_always`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<NewGrant>,
    /// What is blocked from now on, for everybody, with `reject`: patterns as
    /// rules have them. For administrators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<String>,
}

/// What puts questions to people for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Through {
    /// An agent's client, asked by the protocol that it speaks.
    Elicitation,
}

/// More time for an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExtendRequest {
    /// How much more: 600 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

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
            "High risk first, then longest waiting; what is decided, newest first. An agent sees \
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
            "Answers when what was approved is started. 409 `already_decided` with the outcome if \
             somebody or a clock was faster, 409 `payload_changed` with the new question if what \
             would run is not what was shown.",
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
