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
use serde::Deserialize;
use weighlock_api::{
    ApprovalView, ChangeListParams, ChangesInfo, CommandView, DiffParams, DraftList, DraftParams,
    RunList, Settle, SettleDraft,
};
use weighlock_engine::{Engine, FileDiff, Page};

use crate::commands::view;
use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Body, Id, Params, Who, no_id, page};

/// Lines of a diff, unless said otherwise.
const LINES: u64 = 1000;

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

fn page_of(params: &DiffParams) -> Page {
    Page {
        offset: params.offset,
        limit: params.limit.unwrap_or(LINES),
        reveal: params.reveal,
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
        .summary("Show what a run changed on a copy")
        .description(
            "Held until a person decides, or applied. `conflicts` lists files that have changed \
             since the run read them; while there are any, nothing can be applied.",
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
            .diff(&place.id, place.index, page_of(&params), &who)?;
        Ok(Json(diff))
    })
    .await
}

pub(crate) fn diff_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("diffChange")
        .summary("Show the diff of one file")
        .description("Likely secrets are masked unless `reveal` is set.")
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
        .summary("Export the changes of a run as a patch in git's format")
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
        .summary("Undo the changes of a run")
        .description(
            "Returns the undo as a run, which can be undone too. 409 `conflict` if a file was \
             changed since; then nothing is done.",
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
        .summary("Run the command of a question on a copy, offline")
        .description(
            "Returns at once. When the run has ended, the question is about its changes. Also \
             runs it again when its changes are outdated.",
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
        .summary("List undecided changes, by session")
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
        .summary("Show all undecided changes of a session as one draft")
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
            .draft_diff(&place.id, place.index, page_of(&params), &who)?;
        Ok(Json(diff))
    })
    .await
}

pub(crate) fn draft_diff_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("diffDraft")
        .summary("Show the diff of one file of a draft")
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
        .summary("Export a session's draft as a patch in git's format")
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
        .summary("Apply or discard a session's whole draft")
        .description("Changes are applied in order, up to the first that cannot be applied.")
}

fn as_patch(patch: Vec<u8>) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/x-patch; charset=utf-8")];
    (kind, patch).into_response()
}
