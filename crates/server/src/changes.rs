//! What runs changed on a copy: looking at it, applying it, taking it back.

use std::sync::Arc;

use aide::OperationInput;
use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::{FromRequestParts, Path, State as Shared};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{ApprovalView, ChangesInfo, Draft, Engine, FileDiff, Page, Run};

use crate::commands::{CommandView, view};
use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Body, Id, Params, Who, no_id, page};

/// Lines of a diff, unless said otherwise.
const LINES: u64 = 1000;

/// Which of the changed paths.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub(crate) struct ChangeListParams {
    /// From this one on: `next` of the page before.
    #[serde(default)]
    from: usize,
    /// How many, at most 500.
    limit: Option<usize>,
}

/// Which lines of a diff.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffParams {
    /// From this line of the diff on.
    #[serde(default)]
    offset: u64,
    /// How many lines, at most 5000; 1000 if not given.
    limit: Option<u64>,
    /// Show what seems to be a secret.
    #[serde(default)]
    reveal: bool,
}

/// Which of a run's or draft's changed paths.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "Place")]
pub(crate) struct ChangePathParams {
    /// The run or the session.
    id: String,
    /// The number of the changed path.
    index: usize,
}

impl<S: Send + Sync> FromRequestParts<S> for ChangePathParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let place = Path::<Self>::from_request_parts(parts, state).await;
        place.map(|Path(place)| place).map_err(|_| no_id())
    }
}

impl OperationInput for ChangePathParams {
    fn operation_input(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) {
        Path::<Self>::operation_input(ctx, operation);
    }
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DraftParams {
    /// Only of this session, by id.
    session: Option<String>,
}

/// What waits for a decision, session by session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DraftList {
    /// The drafts.
    pub drafts: Vec<Draft>,
}

/// What becomes of a session's draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettleDraft {
    /// Applied in order, or thrown away.
    pub changes: Settle,
    /// From the draft as it was seen; anything else is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The reason that the requester sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What becomes of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Settle {
    /// They are applied.
    Commit,
    /// They are thrown away.
    Discard,
}

/// The runs that something was done with, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunList {
    /// The runs.
    pub commands: Vec<Run>,
}

impl From<DiffParams> for Page {
    fn from(params: DiffParams) -> Self {
        Self {
            offset: params.offset,
            limit: params.limit.unwrap_or(LINES),
            reveal: params.reveal,
        }
    }
}

pub(crate) async fn list(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<ChangeListParams>,
) -> Result<Json<ChangesInfo>, Problem> {
    let limit = page(params.limit);
    blocking(move || {
        Ok(Json(engine.drafts().changes(
            &id,
            params.from,
            limit,
            &who,
        )?))
    })
    .await
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listChanges")
        .summary("What a run changed on a copy")
        .description(
            "Held until a person decides, or applied. `conflicts` says what in the live tree is \
             not as the run saw it: then nothing can be applied.",
        )
}

pub(crate) async fn diff(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    place: ChangePathParams,
    Params(params): Params<DiffParams>,
) -> Result<Json<FileDiff>, Problem> {
    blocking(move || {
        let diff = engine
            .drafts()
            .diff(&place.id, place.index, params.into(), &who)?;
        Ok(Json(diff))
    })
    .await
}

pub(crate) fn diff_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("diffChange")
        .summary("How one file changes, line by line")
        .description("What seems to be a secret is masked unless `reveal` is set.")
}

pub(crate) async fn patch(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Response, Problem> {
    blocking(move || Ok(as_patch(engine.drafts().patch(&id, &who)?))).await
}

pub(crate) fn patch_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getPatch")
        .summary("All that a run changed, as a patch in git's format")
        .response_with::<200, String, _>(|res| res.description("For `git apply`"))
}

pub(crate) async fn revert(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<CommandView>, Problem> {
    let mut done = engine.drafts().undo(&[id], &who).await?;
    let run = done.pop().expect("one for each that was named");
    blocking(move || Ok(Json(view(&engine, run)?))).await
}

pub(crate) fn revert_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("revertCommand")
        .summary("Take back what a run changed")
        .description(
            "Answers with the run that did it, which can be taken back in turn. 409 `conflict` if \
             something was changed since; then nothing is done.",
        )
}

pub(crate) async fn try_out(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<ApprovalView>, Problem> {
    Ok(Json(engine.inbox().try_question(&id, &who).await?))
}

pub(crate) fn try_out_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("previewApproval")
        .summary("Try what is asked about on a copy, offline")
        .description(
            "Answers at once; when it has ended, the question is about what it changed. Also for \
             trying again what was overtaken.",
        )
}

pub(crate) async fn drafts(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(params): Params<DraftParams>,
) -> Result<Json<DraftList>, Problem> {
    blocking(move || {
        let drafts = engine.drafts().list(params.session.as_deref(), &who)?;
        Ok(Json(DraftList { drafts }))
    })
    .await
}

pub(crate) fn drafts_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listDrafts")
        .summary("Changes that nobody has decided about, by session")
}

pub(crate) async fn draft(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<ChangeListParams>,
) -> Result<Json<ChangesInfo>, Problem> {
    let limit = page(params.limit);
    blocking(move || {
        let draft = engine
            .drafts()
            .draft_changes(&id, params.from, limit, &who)?;
        Ok(Json(draft))
    })
    .await
}

pub(crate) fn draft_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getDraft")
        .summary("All undecided changes of a session, as one")
}

pub(crate) async fn draft_diff(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    place: ChangePathParams,
    Params(params): Params<DiffParams>,
) -> Result<Json<FileDiff>, Problem> {
    blocking(move || {
        let diff = engine
            .drafts()
            .draft_diff(&place.id, place.index, params.into(), &who)?;
        Ok(Json(diff))
    })
    .await
}

pub(crate) fn draft_diff_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("diffDraft")
        .summary("How one file of a draft changes, line by line")
}

pub(crate) async fn draft_patch(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Response, Problem> {
    blocking(move || Ok(as_patch(engine.drafts().draft_patch(&id, &who)?))).await
}

pub(crate) fn draft_patch_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getDraftPatch")
        .summary("A session's draft as a patch in git's format")
        .response_with::<200, String, _>(|res| res.description("For `git apply`"))
}

pub(crate) async fn settle_draft(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(settle): Body<SettleDraft>,
) -> Result<Json<RunList>, Problem> {
    let commands = match settle.changes {
        Settle::Commit => {
            engine
                .inbox()
                .commit_draft(&id, settle.hash.as_deref(), &who)
                .await?
        }
        Settle::Discard => {
            engine
                .inbox()
                .discard_draft(&id, settle.reason, &who)
                .await?
        }
    };
    Ok(Json(RunList { commands }))
}

pub(crate) fn settle_draft_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("settleDraft")
        .summary("Apply or throw away a session's whole draft")
        .description("Applied in order, up to the first that cannot be.")
}

fn as_patch(patch: Vec<u8>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/x-patch; charset=utf-8")];
    (kind, patch).into_response()
}
