//! Sessions: requests that belong together.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use weighlock_api::{CloseRequest, SessionList, SessionListParams, SessionView};
use weighlock_engine::Engine;

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Id, Optional, Params, Who, page};

pub(crate) async fn list(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(params): Params<SessionListParams>,
) -> Result<Json<SessionList>, Problem> {
    let limit = page(params.limit);
    blocking(move || {
        if let Some(name) = &params.name {
            let found = engine
                .sessions()
                .find_called(name, params.sandbox.as_deref(), &who)?;
            let sessions = found.into_iter().collect();
            return Ok(Json(SessionList {
                sessions,
                cursor: None,
            }));
        }
        let (sessions, cursor) = engine
            .sessions()
            .list(params.cursor.as_deref(), limit, &who)?;
        Ok(Json(SessionList { sessions, cursor }))
    })
    .await
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listSessions").summary("List sessions, newest first")
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<SessionView>, Problem> {
    Ok(Json(engine.sessions().find(&id, &who)?))
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getSession").summary("Show a session")
}

pub(crate) async fn close(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Optional(how): Optional<CloseRequest>,
) -> Result<Json<SessionView>, Problem> {
    Ok(Json(
        engine.life().close_session(&id, how.runs, &who).await?,
    ))
}

pub(crate) fn close_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("closeSession")
        .summary("Close a session")
        .description(
            "Waiting requests in it are withdrawn, running commands are ended or continue, and \
             its grants expire.",
        )
}
