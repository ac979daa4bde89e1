//! Tasks: what goes on while nobody waits for it.

use std::sync::Arc;
use std::time::Duration;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{Engine, OutputFrom, TaskOutput, TaskView};

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Id, Params, Who};

/// How long is waited when nothing is said, and at the most.
const TIMEOUT_MS: u64 = 30_000;
const MAX_TIMEOUT_MS: u64 = 600_000;

/// Bytes of a reader's name, which is kept in memory.
const MAX_READER: usize = 100;

/// The tasks that there are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskList {
    /// The oldest first.
    pub tasks: Vec<TaskView>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub(crate) struct TaskListParams {
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
    /// Byte to begin at; where the last call of the same reader ended when not
    /// given.
    from: Option<u64>,
    /// Tells several readers of the same principal apart.
    #[schemars(length(max = 100))]
    reader: Option<String>,
}

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
        let run = engine.runs().find(&id, &who)?;
        Ok(Json(engine.runs().task_view(run)))
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
        .summary("What a task has written since the last call")
        .description("With `block`, once it has ended or time is up.")
}
