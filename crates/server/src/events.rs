//! What happens, as it happens: an event stream.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use aide::transform::TransformOperation;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use weighlock_api::{Event, EventStreamParams};
use weighlock_engine::Engine;

use crate::auth::Guest;
use crate::problem::Problem;
use crate::system::{Params, of_kinds};

/// How often something is sent when nothing happens, so that both ends notice
/// a line that is gone.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

pub(crate) async fn stream(
    Shared(engine): Shared<Arc<Engine>>,
    guest: Guest,
    headers: HeaderMap,
    Params(params): Params<EventStreamParams>,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id");
    let last = last.and_then(|id| id.to_str().ok()?.parse().ok());
    let events = engine.audit().events(last.or(params.after), &guest.who)?;
    let stream = futures_util::stream::unfold((events, guest), |(mut events, guest)| async move {
        let event = events.next().await?;
        // Whoever is let in no more, or as something else, hears nothing more.
        let told = guest.is_welcome().await.then(|| told(&event))?;
        Some((Ok::<_, Infallible>(told), (events, guest)))
    });
    // Without a first word nobody hears that the line is open.
    let open = futures_util::stream::once(async { Ok(SseEvent::default().comment("open")) });
    let stream = futures_util::StreamExt::chain(open, stream);
    let alive = KeepAlive::new().interval(ALIVE_EVERY);
    Ok(Sse::new(stream).keep_alive(alive).into_response())
}

fn told(event: &Event) -> SseEvent {
    let data = serde_json::to_string(event).expect("an event is plain data");
    SseEvent::default()
        .id(event.id.to_string())
        .event(&event.event)
        .data(data)
}

pub(crate) fn stream_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("streamEvents")
        .summary("Stream events as they happen")
        .description(
            "Server-sent events: `approval.created`, `approval.updated`, `approval.closed`, \
             `run.created`, `run.updated`, `principal.paused`, `principal.resumed`, \
             `policy.changed`; and `reset` when the client missed so much that it should reload \
             everything. The data of each is an object with `id`, `event`, `time`, `kind`, \
             `actor`, `command_id`, `approval_id` and `sandbox_id`. Each caller sees only what \
             they may see.",
        )
        .response_with::<200, String, _>(|res| of_kinds(res, &["text/event-stream"]))
}
