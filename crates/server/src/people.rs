//! People and agents, their tokens, and the emergency brake.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weighlock_engine::{
    Engine, Features, NewPerson, NewToken, PauseView, PersonPatch, PersonView, Principal, Role,
};

use crate::problem::Problem;
use crate::system::{Body, Id, IfMatch, Optional, TokenId, Who, tagged};

/// How long a token counts beside the one that takes its place.
const OVERLAP_SECONDS: u64 = 24 * 3600;

/// Who the caller is, and what concerns them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Me {
    /// The name.
    pub principal_id: String,
    /// What they may do.
    pub role: Role,
    /// By what we know them: `socket`, `token`, `signed_in` or `library`.
    pub how: String,
    /// Sandboxes in which the role counts, by id; everywhere if absent.
    pub sandboxes: Option<Vec<String>>,
    /// The sandbox that counts when none is named, by id.
    pub default_sandbox: Option<String>,
    /// What is paused.
    pub pauses: Vec<PauseView>,
    /// How many questions wait that they may see.
    pub waiting: u64,
    /// The server's version.
    pub version: String,
    /// What they may do, and what there is.
    pub features: Features,
}

/// All people and agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PeopleList {
    /// By name.
    pub people: Vec<PersonView>,
}

/// A token to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TokenRequest {
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it ends by itself; never if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
}

/// A request to replace a token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RotateRequest {
    /// How long the old one still counts: a day if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap_seconds: Option<u64>,
}

/// Which principals to pause or resume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PauseRequest {
    /// One principal; everyone if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PauseList {
    /// Everyone first.
    pub pauses: Vec<PauseView>,
}

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
        .summary("What the caller has set for the pages: any JSON object")
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
        .summary("Keep what the caller sets for the pages, at most 64 KiB")
}

pub(crate) fn me_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getMe").summary("Who the caller is")
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
    op.id("listPeople").summary("People and agents")
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
        .summary("One person or agent")
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
        .summary("Change somebody's role, or let them in no more")
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
        .summary("Make a token; it is shown this once")
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
        .summary("Make a token in the place of another, which counts a while longer")
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
        .summary("Take a token away, at once")
        .response_with::<204, (), _>(|res| res.description("It counts no more"))
}

pub(crate) async fn pauses(Shared(engine): Shared<Arc<Engine>>, Who(who): Who) -> Json<PauseList> {
    Json(PauseList {
        pauses: engine.pauses().list(&who),
    })
}

pub(crate) fn pauses_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listPauses").summary("What is paused")
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
        .summary("Hold new runs: of one principal, or all")
        .description("They are held, not rejected, and go on when resumed.")
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
        .summary("Let work go on, and what was held start")
}
