//! Tasks: what goes on while nobody waits for it.

use std::sync::Arc;
use std::time::Duration;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use weighlock_api::{OutputParams, TaskList, TaskListParams, TaskOutput, TaskView};
use weighlock_engine::{Engine, OutputFrom};

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Id, Params, Who};

/// How long is waited when nothing is said, and at the most.
const TIMEOUT_MS: u64 = 30_000;
const MAX_TIMEOUT_MS: u64 = 600_000;

/// Bytes of a reader's name, which is kept in memory.
const MAX_READER: usize = 100;

pub(crate) async fn list(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(params): Params<TaskListParams>,
) -> Result<Json<TaskList>, Problem> {
    blocking(move || {
        let tasks = engine.runs().tasks(params.session.as_deref(), &who)?;
        Ok(Json(TaskList { tasks }))
    })
    .await
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listTasks")
        .summary("List background tasks, running and recently ended")
        .description(
            "Runs in the background, processes that a run has left running, and runs whose caller \
             no longer waits: with owner, limits, processes, memory and the ports they listen on.",
        )
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<TaskView>, Problem> {
    blocking(move || {
        let run = engine.runs().find(&id, &who)?;
        Ok(Json(engine.runs().task_view(run)))
    })
    .await
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getTask").summary("Show a task")
}

pub(crate) async fn output(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<OutputParams>,
) -> Result<Json<TaskOutput>, Problem> {
    let run = engine.runs().find(&id, &who)?;
    let time = params.timeout_ms.unwrap_or(TIMEOUT_MS).min(MAX_TIMEOUT_MS);
    let wait = params.block.then(|| Duration::from_millis(time));
    let reader = params.reader.as_deref().unwrap_or_default();
    if reader.len() > MAX_READER {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid_query",
            "the reader's name is too long".into(),
            "give at most 100 bytes",
        ));
    }
    let from = params
        .from
        .map_or(OutputFrom::LastCall(reader), OutputFrom::Byte);
    Ok(Json(
        engine.runs().task_output(&run, from, wait, &who).await?,
    ))
}

pub(crate) fn output_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getTaskOutput")
        .summary("Read what a task has written since the last call")
        .description("With `block`, returns once the task has ended or time is up.")
}
