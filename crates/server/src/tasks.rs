//! Tasks: what goes on while nobody waits for it.

use std::sync::Arc;
use std::time::Duration;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{Engine, TaskOutput, TaskView};

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Id, Params, Who};

/// How long is waited when nothing is said, and at the most.
const TIMEOUT_MS: u64 = 30_000;
const MAX_TIMEOUT_MS: u64 = 600_000;

/// The tasks that there are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskList {
    /// The oldest first.
    pub tasks: Vec<TaskView>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    /// Only of this session, by id.
    session: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputParams {
    /// Wait until the task has ended.
    #[serde(default)]
    block: bool,
    /// How long to wait for that, in milliseconds: 30 seconds when not given,
    /// 10 minutes at the most.
    timeout_ms: Option<u64>,
    /// Byte to begin at; where the last call of the same principal ended when
    /// not given.
    from: Option<u64>,
}

pub(crate) async fn list(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(params): Params<ListParams>,
) -> Result<Json<TaskList>, Problem> {
    blocking(move || {
        let tasks = engine.tasks(params.session.as_deref(), &who)?;
        Ok(Json(TaskList { tasks }))
    })
    .await
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listTasks")
        .summary("What goes on while nobody waits, and what has ended lately")
        .description(
            "Runs in the background, what a run has left running, and runs whose caller waits no \
             longer: with owner, limits, processes, memory and the ports they listen on.",
        )
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<TaskView>, Problem> {
    blocking(move || {
        let run = engine.find(&id, &who)?;
        Ok(Json(engine.task_view(run)))
    })
    .await
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getTask").summary("One task")
}

pub(crate) async fn output(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<OutputParams>,
) -> Result<Json<TaskOutput>, Problem> {
    let run = engine.find(&id, &who)?;
    let time = params.timeout_ms.unwrap_or(TIMEOUT_MS).min(MAX_TIMEOUT_MS);
    let wait = params.block.then(|| Duration::from_millis(time));
    Ok(Json(
        engine.task_output(&run, params.from, wait, &who).await?,
    ))
}

pub(crate) fn output_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getTaskOutput")
        .summary("What a task has written since the last call")
        .description("With `block`, once it has ended or time is up.")
}
