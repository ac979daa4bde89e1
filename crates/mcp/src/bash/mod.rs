//! `Bash`, and `TaskOutput`, `TaskStop` and `TaskList` for what it leaves
//! running.

mod command;
mod list;
mod output;
mod stop;
mod truncate;

use weighlock_engine::{Run, TaskView};

use crate::api::{self, Failure, escape};
use crate::call::Call;
use crate::tool::Tool;

pub(crate) fn tools() -> Vec<Tool> {
    vec![command::tool(), output::tool(), stop::tool(), list::tool()]
}

/// Returns a run as a task.
async fn task(call: &Call, run: &Run) -> Result<TaskView, Failure> {
    api::get(call.desk.api(), format!("/tasks/{}", run.command_id)).await
}

/// What is not there is looked for in the list of tasks.
fn looked_for(failure: Failure) -> Failure {
    match failure.code.as_str() {
        "no_such_run" | "not_found" => Failure {
            hint: "TaskList shows them all.".into(),
            ..failure
        },
        _ => failure,
    }
}

/// Makes the id of a task a part of an address.
fn address(task_id: &str) -> Result<String, Failure> {
    match task_id.is_empty() {
        false => Ok(escape(task_id)),
        true => Err(Failure::new(
            "invalid_arguments",
            "`task_id` is empty; nothing was done",
            "Give the task_id of an earlier answer, or see TaskList.",
        )),
    }
}

/// Reads a time in milliseconds, of which there is a longest.
fn millis(given: Option<f64>, most: f64) -> Result<Option<u64>, Failure> {
    match given {
        Some(millis) if !(0.0..=most).contains(&millis) => Err(Failure::new(
            "invalid_arguments",
            format!("`timeout`: {millis} is not between 0 and {most}; nothing was done"),
            format!("Give milliseconds, {most} at the most."),
        )),
        // A part of one is a time, too.
        Some(millis) => Ok(Some(millis.ceil() as u64)),
        None => Ok(None),
    }
}
