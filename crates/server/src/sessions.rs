//! Sessions: requests that belong together.

use std::sync::Arc;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{Engine, OnClose, SessionView};

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Id, Optional, Params, Who, page};

/// A page of sessions, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// The sessions.
    pub sessions: Vec<SessionView>,
    /// Ask for the next page with this; absent on the last.
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub(crate) struct SessionListParams {
    /// From the page before.
    cursor: Option<String>,
    /// How many, at most 500.
    limit: Option<usize>,
    /// Only the open one that your own requests belong to when they name it so.
    name: Option<String>,
    /// With `name`: in this sandbox, by id or name; your default one otherwise.
    sandbox: Option<String>,
}

/// How to close a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CloseRequest {
    /// What becomes of its runs; what the settings say if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<OnClose>,
}

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
    op.id("getSession").summary("One session")
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
            "What waits in it is withdrawn, what runs is ended or goes on, and what was allowed \
             for it counts no more.",
        )
}
