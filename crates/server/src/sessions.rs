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
    /// The `next` of the previous page.
    cursor: Option<String>,
    /// How many, at most 500.
    limit: Option<usize>,
    /// Only your open session with this name.
    name: Option<String>,
    /// With `name`: in this sandbox, by id or name; by default in your default
    /// sandbox.
    sandbox: Option<String>,
}

/// How to close a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CloseRequest {
    /// What to do with its runs; the default comes from the settings.
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
    op.id("getSession").summary("Show a session")
}

pub(crate) async fn close(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Optional(how): Optional<CloseRequest>,
) -> Result<Json<SessionView>, Problem> {
    Ok(Json(engine.close_session(&id, how.runs, &who).await?))
}

pub(crate) fn close_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("closeSession")
        .summary("Close a session")
        .description(
            "Waiting requests in it are withdrawn, running commands are ended or continue, and \
             its grants expire.",
        )
}
