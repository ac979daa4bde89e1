//! Waiting for what runs do.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, header};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use weighlock_api::{WaitRequest, WaitView};
use weighlock_engine::{Engine, Waited, Waiting};

use crate::problem::Problem;
use crate::system::{Body, Who};

/// How long is waited when nothing is said, and at the most.
const TIMEOUT_MS: u64 = 30_000;
const MAX_TIMEOUT_MS: u64 = 600_000;

pub(crate) async fn wait(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    headers: HeaderMap,
    Body(asked): Body<WaitRequest>,
) -> Result<Response, Problem> {
    let waiting = engine.runs().wait_for(&asked.wanted, asked.all, &who)?;
    let time = asked.timeout_ms.unwrap_or(TIMEOUT_MS).min(MAX_TIMEOUT_MS);
    let time = Duration::from_millis(time);
    let events = { headers.get(header::ACCEPT) }
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if events {
        return Ok(as_events(waiting, time));
    }
    let wanted = asked.wanted.len();
    let waited = waiting.finish(Some(time)).await?;
    Ok(Json(view(waited, asked.all, wanted)).into_response())
}

pub(crate) fn wait_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("wait")
        .summary("Wait for one, or all, of several conditions of runs")
        .description(
            "Returns once the conditions are met, or time is up. Conditions met before the call \
             count, so that nothing is missed. With `Accept: text/event-stream`, each condition \
             that is met is sent at once as a `met` event, and the end as `done` or `timeout`.",
        )
        .response::<200, Json<WaitView>>()
}

fn view(waited: Waited, all: bool, wanted: usize) -> WaitView {
    let met = waited.met.iter().filter(|met| met.met).count();
    WaitView {
        met: match all {
            true => met == wanted,
            false => met > 0,
        },
        timed_out: waited.timed_out,
        happened: waited.met,
        runs: waited.runs,
    }
}

/// Tells of each thing as it happens.
fn as_events(waiting: Waiting, time: Duration) -> Response {
    let until = tokio::time::Instant::now() + time;
    let stream = futures_util::stream::unfold(Some(waiting), move |waiting| async move {
        let mut waiting = waiting?;
        let next = tokio::time::timeout_at(until, waiting.next()).await;
        let (name, data, left) = match next {
            Ok(Ok(Some(met))) => ("met", serde_json::to_string(&met), Some(waiting)),
            Ok(Ok(None)) => ("done", Ok("{}".to_owned()), None),
            Ok(Err(error)) => {
                let problem = Problem::from(error);
                ("error", serde_json::to_string(problem.document()), None)
            }
            Err(_) => ("timeout", Ok("{}".to_owned()), None),
        };
        let data = data.expect("what happened is plain data");
        let event = SseEvent::default().event(name).data(data);
        Some((Ok::<_, Infallible>(event), left))
    });
    Sse::new(stream)
        .keep_alive(KeepAlive::new())
        .into_response()
}
