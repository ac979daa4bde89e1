//! `stop`: ends a run, or closes a terminal.

use schemars::JsonSchema;
use serde::Deserialize;
use weighlock_api::{ApiRequest, CommandView, StopRequest};

use super::looked_for;
use super::told::Told;
use crate::api::{self, Failure, escape};
use crate::call::Call;
use crate::reply::Reply;
use crate::tool::{Hints, Tool, answer, parse, schema};

/// It is closed by force before.
const CLOSED_WITHIN_MS: u64 = 5000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Stop")]
struct StopInput {
    /// A run's id, or a terminal's name.
    id: String,
}

pub(super) fn tool() -> Tool {
    Tool {
        name: "stop",
        title: "Stop",
        description: "End a run and everything it started, withdraw one that waits for a person, \
            or close a terminal.",
        input: schema::<StopInput>,
        output: Some(answer::<Told>),
        hints: Hints {
            destroys: true,
            idempotent: true,
            ..Hints::default()
        },
        deed: |call, arguments| {
            Box::pin(async move {
                let done = stop(call, parse(arguments)?).await;
                done.map_err(|failure| looked_for(call, failure))
            })
        },
    }
}

async fn stop(call: &Call, asked: StopInput) -> Result<Reply, Failure> {
    let id = call.desk.resolve(&asked.id).await?;
    let is_terminal = id != asked.id;
    let view = match is_terminal && close(call, &id).await.is_ok() {
        true => {
            let request = ApiRequest::run(&id, Some(CLOSED_WITHIN_MS), None);
            api::send(call.desk.api(), request).await?
        }
        // Or one that was never opened.
        false => end(call, &id).await?,
    };
    Ok(Told::new(view).reply().failing(false))
}

/// A shell heeds the end of its line, where it would not heed being asked.
async fn close(call: &Call, id: &str) -> Result<(), Failure> {
    api::delete(call.desk.api(), format!("/terminals/{id}")).await
}

async fn end(call: &Call, id: &str) -> Result<CommandView, Failure> {
    let path = format!("/commands/{}", escape(id));
    let how = StopRequest::default();
    let stopped = api::post(call.desk.api(), format!("{path}/stop"), &how).await;
    match stopped {
        // As it was meant to be.
        Err(failure) if failure.code == "run_ended" => api::get(call.desk.api(), path).await,
        stopped => stopped,
    }
}
