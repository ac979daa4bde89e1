//! `TaskStop`: ends a task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_api::{CommandView, StopRequest};

use super::{address, looked_for, task};
use crate::api::{self, Failure};
use crate::call::Call;
use crate::reply::Reply;
use crate::request::notes;
use crate::tool::{Hints, Tool, answer, parse, schema};

#[derive(Deserialize, JsonSchema)]
struct TaskStop {
    /// The ID of the task to stop
    task_id: String,
}

/// What was stopped.
#[derive(Debug, Serialize, JsonSchema)]
struct Stopped {
    task_id: String,
    /// `stopped`; or `failed`, if it had not begun and was taken back.
    status: String,
    /// In words.
    message: String,
    command: String,
}

pub(super) fn tool() -> Tool {
    Tool {
        name: "TaskStop",
        title: "Stop a task",
        description: "End a task and everything it has started, or take it back while it waits \
            for a person.",
        input: schema::<TaskStop>,
        output: Some(answer::<Stopped>),
        hints: Hints {
            destroys: true,
            idempotent: true,
            ..Hints::default()
        },
        deed: |call, arguments| {
            Box::pin(async move { stop(call, parse(arguments)?).await.map_err(looked_for) })
        },
    }
}

async fn stop(call: &Call, asked: TaskStop) -> Result<Reply, Failure> {
    let path = format!("/commands/{}/stop", address(&asked.task_id)?);
    let view: CommandView = api::post(call.desk.api(), path, &StopRequest::default()).await?;
    let task = task(call, &view.run).await?;
    let stopped = Stopped {
        task_id: task.task_id,
        status: task.status,
        message: notes(&view.run).join("\n"),
        command: task.command,
    };
    Ok(Reply::json(&stopped))
}
