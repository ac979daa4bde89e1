//! Webhooks: URLs at which people are notified. Nothing is decided by them.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::Response;
use axum::{Extension, Json};
use weighlock_api::{
    NoticeList, Tested, WebhookList, WebhookPatch, WebhookView, WebhookWithSecret,
};
use weighlock_engine::{Attempt, Engine, Outbound};

use crate::problem::Problem;
use crate::system::{Body, Id, IfMatch, Who, tagged};

pub(crate) async fn list(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Json<WebhookList>, Problem> {
    Ok(Json(WebhookList {
        webhooks: engine.webhooks().list(&who).await?,
    }))
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listWebhooks")
        .summary("List the caller's webhooks; for administrators, everybody's")
}

pub(crate) async fn create(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Body(patch): Body<WebhookPatch>,
) -> Result<Response, Problem> {
    let made = engine.webhooks().add(patch, &who).await?;
    Ok(tagged(StatusCode::CREATED, made.webhook.version, made))
}

pub(crate) fn create_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("addWebhook")
        .summary("Add a webhook; only this answer contains a generated secret")
        .response::<201, Json<WebhookWithSecret>>()
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Response, Problem> {
    let found = engine.webhooks().get(&id, &who).await?;
    Ok(tagged(StatusCode::OK, found.version, found))
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getWebhook")
        .summary("Show a webhook, without its secrets")
        .response::<200, Json<WebhookView>>()
}

pub(crate) async fn change(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    IfMatch(version): IfMatch,
    Body(patch): Body<WebhookPatch>,
) -> Result<Response, Problem> {
    let changed = engine.webhooks().change(&id, patch, version, &who).await?;
    Ok(tagged(StatusCode::OK, changed.version, changed))
}

pub(crate) fn change_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("changeWebhook")
        .summary("Change a webhook; omitted fields stay")
        .response::<200, Json<WebhookView>>()
}

pub(crate) async fn remove(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<StatusCode, Problem> {
    engine.webhooks().remove(&id, &who).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn remove_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("removeWebhook")
        .summary("Delete a webhook")
        .response_with::<204, (), _>(|res| res.description("The webhook is deleted"))
}

pub(crate) async fn secret(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<(StatusCode, Json<WebhookWithSecret>), Problem> {
    let made = engine.webhooks().renew_secret(&id, &who).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

pub(crate) fn secret_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("renewWebhookSecret")
        .summary("Replace the secret by a generated one; only this answer contains it")
        .response::<201, Json<WebhookWithSecret>>()
}

pub(crate) async fn test(
    Shared(engine): Shared<Arc<Engine>>,
    Extension(outbound): Extension<Arc<Outbound>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<Tested>, Problem> {
    let attempt = engine.webhooks().test(&id, &outbound, &who).await?;
    Ok(Json(Tested {
        delivered: attempt == Attempt::Accepted,
        trouble: match attempt {
            Attempt::Accepted => None,
            Attempt::Gone => Some("answered 410; the webhook was deactivated".into()),
            Attempt::Failed { reason, .. } => Some(reason),
        },
    }))
}

pub(crate) fn test_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("testWebhook")
        .summary("Send a test message and wait for the result, at most ten seconds")
}

pub(crate) async fn notices(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<NoticeList>, Problem> {
    Ok(Json(NoticeList {
        notices: engine.webhooks().notices(&id, &who).await?,
    }))
}

pub(crate) fn notices_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listNotices")
        .summary("List the newest notices of a webhook, sent or not: at most 50")
}
