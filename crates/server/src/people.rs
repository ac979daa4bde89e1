//! People and agents, their tokens, and the emergency brake.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;
use weighlock_api::{
    Me, NewPerson, NewToken, PauseList, PauseRequest, PeopleList, PersonPatch, PersonView,
    RotateRequest, TokenRequest,
};
use weighlock_engine::{Engine, Principal};

use crate::problem::Problem;
use crate::system::{Body, Id, IfMatch, Optional, TokenId, Who, tagged};

/// How long a token counts beside the one that takes its place.
const OVERLAP_SECONDS: u64 = 24 * 3600;

pub(crate) async fn me(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Json<Me>, Problem> {
    Ok(Json(about(&engine, &who)?))
}

/// Tells somebody who they are.
pub(crate) fn about(engine: &Engine, who: &Principal) -> Result<Me, Problem> {
    Ok(Me {
        principal_id: who.name().into(),
        role: who.role(),
        how: who.how().into(),
        sandboxes: who.sandboxes().map(<[String]>::to_vec),
        default_sandbox: who.default_sandbox().map(str::to_owned),
        pauses: engine.pauses().list(who),
        waiting: engine.inbox().waiting(who)?,
        version: env!("CARGO_PKG_VERSION").into(),
        features: engine.limits().features(who),
    })
}

pub(crate) async fn settings(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Json<Value>, Problem> {
    Ok(Json(engine.people().settings(&who)?))
}

pub(crate) fn settings_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getSettings")
        .summary("Get the caller's settings of the pages: any JSON object")
}

pub(crate) async fn save_settings(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Body(settings): Body<Value>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(engine.people().save_settings(settings, &who).await?))
}

pub(crate) fn save_settings_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("saveSettings")
        .summary("Save the caller's settings of the pages, at most 64 KiB")
}

pub(crate) fn me_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getMe").summary("Show who the caller is")
}

pub(crate) async fn list(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Json<PeopleList>, Problem> {
    Ok(Json(PeopleList {
        people: engine.people().list(&who)?,
    }))
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listPeople").summary("List people and agents")
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(name): Id,
) -> Result<Response, Problem> {
    let found = engine.people().find(&name, &who)?;
    Ok(tagged(StatusCode::OK, found.version, found))
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getPerson")
        .summary("Show a person or an agent")
        .response::<200, Json<PersonView>>()
}

pub(crate) async fn create(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Body(new): Body<NewPerson>,
) -> Result<Response, Problem> {
    let added = engine.people().add(new, &who).await?;
    Ok(tagged(StatusCode::CREATED, added.version, added))
}

pub(crate) fn create_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("addPerson")
        .summary("Add a person or an agent")
        .response::<201, Json<PersonView>>()
}

pub(crate) async fn change(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(name): Id,
    IfMatch(version): IfMatch,
    Body(patch): Body<PersonPatch>,
) -> Result<Response, Problem> {
    let changed = engine.people().change(&name, patch, version, &who).await?;
    Ok(tagged(StatusCode::OK, changed.version, changed))
}

pub(crate) fn change_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("changePerson")
        .summary("Change the role of a person or an agent, or deactivate them")
        .response::<200, Json<PersonView>>()
}

pub(crate) async fn token(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(name): Id,
    Optional(asked): Optional<TokenRequest>,
) -> Result<(StatusCode, Json<NewToken>), Problem> {
    let label = asked.label.unwrap_or_default();
    let made = engine
        .people()
        .add_token(&name, &label, asked.expires_in_seconds, &who);
    Ok((StatusCode::CREATED, Json(made.await?)))
}

pub(crate) fn token_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("createToken")
        .summary("Create a token; only this answer contains it")
        .response::<201, Json<NewToken>>()
}

pub(crate) async fn rotate(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    TokenId(name, id): TokenId,
    Optional(asked): Optional<RotateRequest>,
) -> Result<(StatusCode, Json<NewToken>), Problem> {
    let overlap = asked.overlap_seconds.unwrap_or(OVERLAP_SECONDS);
    let made = engine
        .people()
        .rotate_token(&name, &id, overlap, &who)
        .await?;
    Ok((StatusCode::CREATED, Json(made)))
}

pub(crate) fn rotate_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("rotateToken")
        .summary("Rotate a token: create a new one, while the old one stays valid for a time")
        .response::<201, Json<NewToken>>()
}

pub(crate) async fn revoke(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    TokenId(name, id): TokenId,
) -> Result<StatusCode, Problem> {
    engine.people().revoke_token(&name, &id, &who).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn revoke_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("revokeToken")
        .summary("Revoke a token, at once")
        .response_with::<204, (), _>(|res| res.description("It is revoked"))
}

pub(crate) async fn pauses(Shared(engine): Shared<Arc<Engine>>, Who(who): Who) -> Json<PauseList> {
    Json(PauseList {
        pauses: engine.pauses().list(&who),
    })
}

pub(crate) fn pauses_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listPauses").summary("List what is paused")
}

pub(crate) async fn pause(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Optional(asked): Optional<PauseRequest>,
) -> Result<Json<PauseList>, Problem> {
    let name = asked.principal.as_deref();
    let pauses = engine.pauses().pause(name, asked.reason, &who).await?;
    Ok(Json(PauseList { pauses }))
}

pub(crate) fn pause_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("pause")
        .summary("Pause: hold new runs of one principal, or of all")
        .description("Runs are held, not rejected, and start on resume.")
}

pub(crate) async fn resume(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Optional(asked): Optional<PauseRequest>,
) -> Result<Json<PauseList>, Problem> {
    let pauses = engine
        .life()
        .resume(asked.principal.as_deref(), &who)
        .await?;
    Ok(Json(PauseList { pauses }))
}

pub(crate) fn resume_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("resume")
        .summary("Resume: start held runs and accept new ones")
}
