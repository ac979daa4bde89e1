//! Sandboxes: directories that commands may use, and how they are guarded.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use weighlock_api::{
    Checks, FolderAnswer, FolderParams, Guard, NewSandbox, SandboxInfo, SandboxList, SandboxPatch,
};
use weighlock_engine::Engine;

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Body, Id, IfMatch, Params, Who, tagged};

pub(crate) async fn folders(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(params): Params<FolderParams>,
) -> Result<Json<FolderAnswer>, Problem> {
    blocking(move || {
        Ok(Json(FolderAnswer {
            folder: engine
                .sandboxes()
                .look_at_folder(params.path.as_deref(), &who)?,
            guard: Guard::default(),
        }))
    })
    .await
}

pub(crate) fn folders_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getFolder")
        .summary("Directories that could become a sandbox")
        .description(
            "Only below the allowed roots; the answer does not reveal whether other paths exist. \
             For administrators.",
        )
}

pub(crate) async fn list(Shared(engine): Shared<Arc<Engine>>, Who(who): Who) -> Json<SandboxList> {
    Json(SandboxList {
        sandboxes: engine.sandboxes().list(&who),
    })
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listSandboxes").summary("List sandboxes")
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Response, Problem> {
    let found = engine.sandboxes().find(&id, &who)?;
    Ok(tagged(StatusCode::OK, found.version, found))
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getSandbox")
        .summary("One sandbox")
        .response::<200, Json<SandboxInfo>>()
}

pub(crate) async fn create(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Body(new): Body<NewSandbox>,
) -> Result<Response, Problem> {
    let made = engine.sandboxes().add(new, &who).await?;
    Ok(tagged(StatusCode::CREATED, made.version, made))
}

pub(crate) fn create_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("createSandbox")
        .summary("Set a sandbox up")
        .description(
            "The directory must exist below an allowed root. It is pinned: another that comes to \
             its place is not used.",
        )
        .response::<201, Json<SandboxInfo>>()
}

pub(crate) async fn change(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    IfMatch(version): IfMatch,
    Body(patch): Body<SandboxPatch>,
) -> Result<Response, Problem> {
    let changed = engine.sandboxes().change(&id, patch, version, &who).await?;
    Ok(tagged(StatusCode::OK, changed.version, changed))
}

pub(crate) fn change_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("changeSandbox")
        .summary("Change a sandbox, or deactivate it")
        .description("Omitted fields stay. A sandbox that is not active refuses new runs.")
        .response::<200, Json<SandboxInfo>>()
}

pub(crate) async fn remove(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    IfMatch(version): IfMatch,
) -> Result<StatusCode, Problem> {
    engine.sandboxes().remove(&id, version, &who).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn remove_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("deleteSandbox")
        .summary("Take a sandbox away")
        .description("Its runs stay on record; the directory is not touched.")
        .response_with::<204, (), _>(|res| res.description("Gone"))
}

pub(crate) async fn protection(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<Checks>, Problem> {
    Ok(Json(engine.doctor().protection(&id, &who).await?))
}

pub(crate) fn protection_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getProtection")
        .summary("Show how this machine protects a sandbox")
        .description("Each wall, as tried just now, and what is missing.")
}
