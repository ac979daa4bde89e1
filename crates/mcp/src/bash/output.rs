//! `TaskOutputInput`: what a task has written since it was asked for last.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_api::{ApiRequest, CommandView};

use super::truncate::truncate;
use super::{address, looked_for, millis};
use crate::api::{self, Failure, escape};
use crate::call::{Call, last_line};
use crate::reply::Reply;
use crate::request::{RunStage, notes};
use crate::tool::{Hints, Tool, answer, parse, schema};

/// How long is waited when nothing is said, and at the most.
const DEFAULT: Duration = Duration::from_secs(30);
const MOST_MILLIS: f64 = 600_000.0;

#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "TaskOutput")]
struct TaskOutputInput {
    /// The task ID to get output from
    task_id: String,
    /// Whether to wait for completion (default: true)
    #[serde(default)]
    block: Option<bool>,
    /// Max wait time in ms (default: 30000, max: 600000)
    #[serde(default)]
    #[schemars(range(min = 0, max = 600000))]
    timeout: Option<f64>,
}

/// Letters of the name that the server knows us by, which has at most 100
/// bytes.
const MOST_READER: usize = 25;

/// How a task is, and what it has written.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Got {
    task_id: String,
    /// `running`, `completed`, `failed`, `stopped`, or `waiting` for a person.
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// What it wrote since the last call, both streams as they came.
    output: String,
    /// The middle of that is left out.
    truncated: bool,
    /// There is more already: call again.
    more: bool,
    /// Why it is as it is, where that is to be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// A plain file with all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_file: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool {
        name: "TaskOutput",
        title: "Get the output of a task",
        description: "Get what a task has written since the last call, its status and its exit \
            code. Waits for its end, or for the person that it waits for, unless block is false.",
        input: schema::<TaskOutputInput>,
        output: Some(answer::<Got>),
        hints: Hints {
            reads: true,
            ..Hints::default()
        },
        deed: |call, arguments| {
            Box::pin(async move { output(call, parse(arguments)?).await.map_err(looked_for) })
        },
    }
}

async fn output(call: &Call, asked: TaskOutputInput) -> Result<Reply, Failure> {
    let id = address(&asked.task_id)?;
    let wait = millis(asked.timeout, MOST_MILLIS)?.map_or(DEFAULT, Duration::from_millis);
    let wait = match asked.block.unwrap_or(true) {
        true => call.patience(Some(wait)).unwrap_or(wait),
        false => Duration::ZERO,
    };
    let view = over(call, &id, Instant::now() + wait).await?;
    // Not only by who asks: their person may be the same, and reads as well.
    let reader: String = call.desk.session.chars().take(MOST_READER).collect();
    let reader = escape(&reader);
    let path = format!("/tasks/{id}/output?reader={reader}");
    let got: weighlock_api::TaskOutput = api::get(call.desk.api(), path).await?;
    let (output, truncated) = truncate(got.output);
    let message = notes(&view.run).join("\n");
    let got = Got {
        task_id: got.task.task_id,
        status: got.task.status,
        exit_code: got.task.exit_code,
        output,
        truncated,
        more: got.more,
        message: Some(message).filter(|message| !message.is_empty()),
        output_file: got.task.output_file,
    };
    Ok(Reply::json(&got))
}

/// Waits until a task is over, at the longest until a time.
async fn over(call: &Call, id: &str, until: Instant) -> Result<CommandView, Failure> {
    let api = call.desk.api();
    while let Some(step) = call.step(Some(until)) {
        let request = ApiRequest::run(id, Some(step.as_millis() as u64), None);
        let view: CommandView = tokio::select! {
            view = api::send(api, request) => view?,
            () = call.is_cancelled() => break,
        };
        if matches!(RunStage::of(&view.run), RunStage::Ended | RunStage::Refused) {
            return Ok(view);
        }
        call.tell(last_line(&view)).await;
    }
    api::get(api, format!("/commands/{id}")).await
}
