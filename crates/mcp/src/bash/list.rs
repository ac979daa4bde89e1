//! `TaskListInput`: the session's tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use weighlock_api::TaskView;

use crate::api::{self, Failure, escape};
use crate::call::Call;
use crate::reply::Reply;
use crate::tool::{Hints, Tool, answer, parse};

#[derive(Deserialize)]
struct TaskListInput {}

/// The tasks there are.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Listed")]
struct TaskListAnswer {
    /// The oldest first: what goes on, and what has ended lately.
    tasks: Vec<ListedTask>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Task")]
struct ListedTask {
    task_id: String,
    /// `running`, `completed`, `failed`, `stopped`, or `waiting` for a person.
    status: String,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_file: Option<String>,
}

pub(super) fn tool() -> Tool {
    Tool {
        name: "TaskList",
        title: "List tasks",
        description: "List the tasks of this session: what runs in the background, and what has \
            ended lately.",
        // Some clients want to see that there are none.
        input: || json!({ "type": "object", "properties": {} }),
        output: Some(answer::<TaskListAnswer>),
        hints: Hints {
            reads: true,
            idempotent: true,
            ..Hints::default()
        },
        deed: |call, arguments| Box::pin(async move { list(call, parse(arguments)?).await }),
    }
}

async fn list(call: &Call, _: TaskListInput) -> Result<Reply, Failure> {
    let mut listed = TaskListAnswer::default();
    if let Some(session) = call.desk.session_id().await? {
        let path = format!("/tasks?session={}", escape(&session));
        let found: weighlock_api::TaskList = api::get(call.desk.api(), path).await?;
        listed.tasks = found.tasks.into_iter().map(ListedTask::from).collect();
    }
    Ok(Reply::json(&listed))
}

impl From<TaskView> for ListedTask {
    fn from(task: TaskView) -> Self {
        Self {
            task_id: task.task_id,
            status: task.status,
            command: task.command,
            description: task.description,
            exit_code: task.exit_code,
            started_at: task.started_at,
            output_file: task.output_file,
        }
    }
}
