//! Recordings of runs and terminals, and their marks.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use aide::transform::TransformOperation;
use axum::Json;
use axum::body::Body as HttpBody;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::Semaphore;
use weighlock_api::{RecordingIndex, RecordingParams, Run};
use weighlock_engine::Engine;

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Id, Params, Who, of_kinds};

/// The kind of a recording.
const CAST: &str = "application/x-asciicast";

/// Recordings are made one by one.
static MAKING: Semaphore = Semaphore::const_new(1);

/// How much of a recording is read at a time.
const STEP: u64 = 256 * 1024;

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<RecordingParams>,
) -> Result<Response, Problem> {
    let run = engine.runs().find(&id, &who)?;
    send(engine, run, params).await
}

pub(crate) async fn show_of_terminal(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<RecordingParams>,
) -> Result<Response, Problem> {
    let run = engine.runs().find_terminal(&id, &who)?;
    send(engine, run, params).await
}

async fn send(engine: Arc<Engine>, run: Run, params: RecordingParams) -> Result<Response, Problem> {
    let at = params.at.map(Duration::try_from_secs_f64).transpose();
    let at = at.map_err(|_| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid_query",
            "`at` is not a time".into(),
            "give seconds from the beginning",
        )
    })?;
    // Whoever goes away meanwhile has none made.
    let _turn = MAKING.acquire().await;
    let made = blocking(move || Ok(engine.recordings().open(&run, at, params.reveal)?)).await?;
    let head = (!made.head.is_empty()).then(|| Ok(Bytes::from(made.head)));
    let rest = futures_util::stream::unfold(made.file, |file| async move {
        let step = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![];
            let read = (&file).take(STEP).read_to_end(&mut bytes);
            (read.map(|_| Bytes::from(bytes)), file)
        });
        let (read, file) = step.await.ok()?;
        let more = !matches!(&read, Ok(bytes) if bytes.is_empty());
        more.then_some((read, file))
    });
    let body = HttpBody::from_stream(futures_util::stream::iter(head).chain(rest));
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, CAST)], body).into_response())
}

pub(crate) fn show_docs(
    name: &'static str,
) -> impl Fn(TransformOperation<'_>) -> TransformOperation<'_> {
    move |op| {
        op.id(name)
            .summary("Get the recording as an asciicast")
            .description(
                "Marks for commands, take-overs, gaps and the end. Likely secrets that were \
                 written in one piece are masked, unless `reveal` is set.",
            )
            .response_with::<200, String, _>(|res| of_kinds(res, &[CAST]))
    }
}

pub(crate) async fn index(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<RecordingIndex>, Problem> {
    let run = engine.runs().find(&id, &who)?;
    let _turn = MAKING.acquire().await;
    blocking(move || Ok(Json(engine.recordings().read_index(&run)?))).await
}

pub(crate) async fn index_of_terminal(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<RecordingIndex>, Problem> {
    let run = engine.runs().find_terminal(&id, &who)?;
    let _turn = MAKING.acquire().await;
    blocking(move || Ok(Json(engine.recordings().read_index(&run)?))).await
}

pub(crate) fn index_docs(
    name: &'static str,
) -> impl Fn(TransformOperation<'_>) -> TransformOperation<'_> {
    move |op| {
        op.id(name)
            .summary("List the marks of a recording, and the times from which it can be played")
    }
}
