//! What a run said: by lines, by search, and raw.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aide::transform::TransformOperation;
use axum::Json;
use axum::body::Body as HttpBody;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use weighlock_api::{
    FindParams, FollowMode, FoundLines, Frame, LeftOutView, LineView, LinesParams, LinesView,
    OutputAudience, RawParams, Run, SpanView, StreamName,
};
use weighlock_engine::{Colour, Engine, Follow, Item, Line, Stream, StyledSpan, Until};

use crate::auth::Guest;
use crate::problem::Problem;
use crate::system::{Id, Params, Who};

/// How many lines there are when nothing is asked, and at the most.
const LINES: usize = 1000;
const MAX_LINES: usize = 10_000;

/// The kind of an answer in frames.
const FRAMES: &str = "application/vnd.weighlock.frames";

pub(crate) async fn lines(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<LinesParams>,
) -> Result<Json<LinesView>, Problem> {
    blocking(move || {
        let run = engine.runs().find(&id, &who)?;
        let count = params.lines.unwrap_or(LINES).min(MAX_LINES);
        let from = params.from.unwrap_or(1);
        Ok(Json(match params.view {
            None => {
                let found = engine.outputs().lines(&run, from, count)?;
                LinesView {
                    lines: found.lines.into_iter().map(line).collect(),
                    missing: found.missing,
                    total: run.detail.output.lines,
                    left_out: vec![],
                }
            }
            Some(OutputAudience::Full) => whole(&engine, &run, from, count)?,
            Some(OutputAudience::Agent) => shown(&engine, &run, from, count)?,
        }))
    })
    .await
}

/// Output as a person would see it.
fn whole(engine: &Engine, run: &Run, from: u64, count: usize) -> Result<LinesView, Problem> {
    let found = engine.outputs().styled_lines(run, from, count)?;
    let lines = found.lines.into_iter().map(|(read, shown)| LineView {
        text: shown.text,
        spans: shown.spans.into_iter().map(span_view).collect(),
        ..line(Line {
            bytes: vec![],
            ..read
        })
    });
    Ok(LinesView {
        lines: lines.collect(),
        missing: found.missing,
        total: run.detail.output.lines,
        left_out: left_out(engine, run)?,
    })
}

/// Returns the output as the requester was shown it.
fn shown(engine: &Engine, run: &Run, from: u64, count: usize) -> Result<LinesView, Problem> {
    let lines = engine.outputs().shown_lines(run)?;
    let total = lines.len() as u64;
    let skipped = usize::try_from(from.saturating_sub(1)).unwrap_or(usize::MAX);
    let lines = (1_u64..).zip(lines).skip(skipped).take(count);
    let lines = lines.map(|(number, (stream, line))| LineView {
        line: number,
        offset: 0,
        ms: 0,
        stream: name(stream).into(),
        text: line.text,
        cut: false,
        spans: line.spans.into_iter().map(span_view).collect(),
    });
    Ok(LinesView {
        lines: lines.collect(),
        missing: None,
        total,
        left_out: left_out(engine, run)?,
    })
}

fn left_out(engine: &Engine, run: &Run) -> Result<Vec<LeftOutView>, Problem> {
    let left = engine.outputs().left_out(run)?.into_iter();
    let left = left.map(|left| LeftOutView {
        stream: name(left.stream).into(),
        from: left.from,
        to: left.to,
        chars: left.chars,
    });
    Ok(left.collect())
}

fn span_view(span: StyledSpan) -> SpanView {
    let look = span.look;
    let colour = |colour| match colour {
        Colour::Palette(index) => index.to_string(),
        Colour::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
    };
    SpanView {
        start: span.start,
        end: span.end,
        fg: look.foreground.map(colour),
        bg: look.background.map(colour),
        bold: look.bold,
        dim: look.dim,
        italic: look.italic,
        underline: look.underline,
        inverse: look.inverse,
        strike: look.struck,
    }
}

pub(crate) fn lines_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getOutput")
        .summary("Read output by line numbers, during and after the run")
}

pub(crate) async fn find(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<FindParams>,
) -> Result<Json<FoundLines>, Problem> {
    let limit = params.limit.unwrap_or(LINES).clamp(1, MAX_LINES);
    blocking(move || {
        let run = engine.runs().find(&id, &who)?;
        let found = engine
            .outputs()
            .search(&run, &params.q, params.from.unwrap_or(1), limit)?;
        Ok(Json(FoundLines {
            more: found.len() == limit,
            lines: found.into_iter().map(line).collect(),
        }))
    })
    .await
}

pub(crate) fn find_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("findOutput").summary("Search the output")
}

pub(crate) async fn raw(
    Shared(engine): Shared<Arc<Engine>>,
    guest: Guest,
    Id(id): Id,
    Params(params): Params<RawParams>,
) -> Result<Response, Problem> {
    let run = engine.runs().find(&id, &guest.who)?;
    let until = match params.follow {
        FollowMode::No => Until::Now,
        FollowMode::Ended => Until::Ended,
        FollowMode::Closed => Until::Closed,
    };
    let kind = if params.frames {
        FRAMES
    } else {
        "application/octet-stream"
    };
    let state = Sending {
        follow: engine.outputs().follow(run, params.from, until),
        left: params.limit.unwrap_or(u64::MAX),
        params,
        guest,
        looked: Instant::now(),
    };
    let stream = futures_util::stream::unfold(state, |mut state| async move {
        state.next().await.map(|piece| (piece, state))
    });
    let body = HttpBody::from_stream(stream);
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, kind)], body).into_response())
}

pub(crate) fn raw_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getRawOutput")
        .summary("Read the exact bytes, or follow them as they come")
        .description(
            "With `frames`, each piece has a header of 8 bytes: kind (1 stdout, 2 stderr, \
             3 gap), three zeros, length in network order. A gap is 8 bytes: how many bytes \
             of the output are not kept.",
        )
        .response_with::<200, Vec<u8>, _>(|mut res| {
            let content = &mut res.inner().content;
            if let Some(bytes) = content.values().next().cloned() {
                content.insert(FRAMES.into(), bytes);
            }
            res.description("The bytes, or frames of them")
        })
}

/// A raw answer under way.
struct Sending {
    follow: Follow,
    left: u64,
    params: RawParams,
    guest: Guest,
    /// When we last made sure that the reader may read.
    looked: Instant,
}

/// How long an authorization holds while much is sent.
const WELCOME_FOR: Duration = Duration::from_secs(1);

impl Sending {
    async fn next(&mut self) -> Option<std::io::Result<Bytes>> {
        loop {
            if self.left == 0 {
                return None;
            }
            let items = match self.follow.next().await {
                Ok(items) => items?,
                Err(error) => return Some(Err(std::io::Error::other(error))),
            };
            if self.looked.elapsed() >= WELCOME_FOR {
                if !self.guest.is_welcome().await {
                    return Some(Err(std::io::ErrorKind::PermissionDenied.into()));
                }
                self.looked = Instant::now();
            }
            let mut bytes = vec![];
            for item in items {
                self.add(item, &mut bytes);
            }
            if !bytes.is_empty() {
                return Some(Ok(bytes.into()));
            }
        }
    }

    fn add(&mut self, item: Item, to: &mut Vec<u8>) {
        match item {
            Item::Gap { from, to: end } if self.params.frames => {
                Frame::Gap.write(to, &(end - from).to_be_bytes());
            }
            Item::Gap { .. } => {}
            Item::Piece(mut piece) => {
                let wanted = match self.params.stream {
                    None => true,
                    Some(StreamName::Stdout) => piece.stream == Stream::Stdout,
                    Some(StreamName::Stderr) => piece.stream == Stream::Stderr,
                };
                if !wanted || self.left == 0 {
                    return;
                }
                piece
                    .bytes
                    .truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.left -= piece.bytes.len() as u64;
                match (self.params.frames, piece.stream) {
                    (false, _) => to.extend_from_slice(&piece.bytes),
                    (true, Stream::Stdout) => Frame::Stdout.write(to, &piece.bytes),
                    (true, Stream::Stderr) => Frame::Stderr.write(to, &piece.bytes),
                }
            }
        }
    }
}

fn line(line: Line) -> LineView {
    LineView {
        line: line.number,
        offset: line.offset,
        ms: line.micros / 1000,
        stream: name(line.stream).into(),
        text: String::from_utf8_lossy(&line.bytes).into_owned(),
        cut: line.cut,
        spans: vec![],
    }
}

fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    }
}

/// Runs what may take long where it holds up nobody else.
pub(crate) async fn blocking<T: Send + 'static>(
    deed: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(deed)
        .await
        .expect("handlers do not panic")
}
