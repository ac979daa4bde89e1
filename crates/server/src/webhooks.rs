//! Webhooks: where people are told of what waits. Nothing is decided by them.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{Engine, NoticeView, Posted, WebhookView, WebhookWish, WithSecret};

use crate::outward::{self, Outward};
use crate::problem::Problem;
use crate::system::{Body, Id, IfMatch, Who, tagged};

/// Webhooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookList {
    /// Oldest first.
    pub webhooks: Vec<WebhookView>,
}

/// What a webhook was told, and is to be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NoticeList {
    /// Newest first.
    pub notices: Vec<NoticeView>,
}

/// How a test went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tested {
    /// The receiver has taken it.
    pub delivered: bool,
    /// Why not.
    pub trouble: Option<String>,
}

pub(crate) async fn list(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Json<WebhookList>, Problem> {
    Ok(Json(WebhookList {
        webhooks: engine.webhooks(&who).await?,
    }))
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listWebhooks")
        .summary("The caller's webhooks; for administrators, everybody's")
}

pub(crate) async fn create(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Body(wish): Body<WebhookWish>,
) -> Result<Response, Problem> {
    let made = engine.add_webhook(wish, &who).await?;
    Ok(tagged(StatusCode::CREATED, made.webhook.version, made))
}

pub(crate) fn create_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("addWebhook")
        .summary("Be told elsewhere of what waits; a secret that is made is shown this once")
        .response::<201, Json<WithSecret>>()
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Response, Problem> {
    let found = engine.one_webhook(&id, &who).await?;
    Ok(tagged(StatusCode::OK, found.version, found))
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getWebhook")
        .summary("One webhook, without what is secret of it")
        .response::<200, Json<WebhookView>>()
}

pub(crate) async fn change(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    IfMatch(version): IfMatch,
    Body(wish): Body<WebhookWish>,
) -> Result<Response, Problem> {
    let changed = engine.change_webhook(&id, wish, version, &who).await?;
    Ok(tagged(StatusCode::OK, changed.version, changed))
}

pub(crate) fn change_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("changeWebhook")
        .summary("Change what is given; the rest stays")
        .response::<200, Json<WebhookView>>()
}

pub(crate) async fn remove(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<StatusCode, Problem> {
    engine.remove_webhook(&id, &who).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn remove_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("removeWebhook")
        .summary("Be told no more")
        .response_with::<204, (), _>(|res| res.description("It is forgotten"))
}

pub(crate) async fn secret(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<(StatusCode, Json<WithSecret>), Problem> {
    let made = engine.new_webhook_secret(&id, &who).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

pub(crate) fn secret_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("renewWebhookSecret")
        .summary("Make another secret in the place of this one; it is shown this once")
        .response::<201, Json<WithSecret>>()
}

pub(crate) async fn test(
    Shared(engine): Shared<Arc<Engine>>,
    Extension(outward): Extension<Arc<Outward>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<Tested>, Problem> {
    let parcel = engine.test_parcel(&id, &outward.address, &who).await?;
    let how = outward::post(&parcel, &outward).await;
    outward::note(&engine, parcel, &how).await;
    Ok(Json(Tested {
        delivered: how == Posted::Taken,
        trouble: match how {
            Posted::Taken => None,
            Posted::Gone => Some("answered 410; the webhook was switched off".into()),
            Posted::Failed { why, .. } => Some(why),
        },
    }))
}

pub(crate) fn test_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("testWebhook")
        .summary("Send a message that says that it arrives; waits at most ten seconds")
}

pub(crate) async fn notices(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<NoticeList>, Problem> {
    Ok(Json(NoticeList {
        notices: engine.notices_of(&id, &who).await?,
    }))
}

pub(crate) fn notices_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listNotices")
        .summary("What a webhook was told lately, and is to be told: at most 50")
}
