//! Output as it comes, with absolute offsets: as server-sent events for every
//! run, and as a WebSocket for terminals, where somebody can type too.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aide::transform::TransformOperation;
use axum::extract::State as Shared;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;
use weighlock_api::{Run, ViewerMessage, ViewerParams, short_id};
use weighlock_engine::{
    Engine, Follow, Hand, Item, Place, Sent, Sight, Size, Stream, Typed, Until, whole_characters,
};

use crate::auth::Guest;
use crate::problem::Problem;
use crate::system::{Id, Params, of_kinds};

/// How often something is sent when nothing happens, so that both ends notice
/// a line that is gone.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// A viewer that sends or takes nothing for so long is gone.
const GONE_AFTER: Duration = Duration::from_secs(30);

/// How often it is looked whether input is hidden, and how many watch: as
/// quickly as somebody begins to type a password.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// How long they have to hang up when there is no more to be said.
const GOODBYE: Duration = Duration::from_secs(5);

/// How long an authorization holds while much is sent.
const WELCOME_FOR: Duration = Duration::from_secs(1);

/// Bytes on their way to a viewer who has not said that they came.
const WINDOW: u64 = 256 * 1024;

/// Bytes of one message from a viewer.
const MAX_MESSAGE: usize = 256 * 1024;

/// Bytes of the offset before output.
pub const OFFSET_BYTES: usize = 8;

pub(crate) async fn follow(
    Shared(engine): Shared<Arc<Engine>>,
    guest: Guest,
    Id(id): Id,
    headers: HeaderMap,
    Params(params): Params<ViewerParams>,
) -> Result<Response, Problem> {
    let run = engine.runs().find(&id, &guest.who)?;
    let last = headers.get("last-event-id");
    let last = last.and_then(|id| id.to_str().ok()?.parse().ok());
    let from = last.or(params.from).unwrap_or(0);
    let telling = Telling {
        follow: engine.outputs().follow(run.clone(), from, Until::Closed),
        engine,
        run,
        guest,
        looked: Instant::now(),
        ready: VecDeque::new(),
        cut: Default::default(),
        over: false,
    };
    let stream = futures_util::stream::unfold(telling, |mut telling| async move {
        let event = telling.next().await?;
        Some((Ok::<_, Infallible>(event), telling))
    });
    let alive = KeepAlive::new().interval(ALIVE_EVERY);
    Ok(Sse::new(stream).keep_alive(alive).into_response())
}

pub(crate) fn follow_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("streamOutput")
        .summary("Stream the output as events")
        .description(
            "Server-sent events. `output`: `offset`, `bytes`, `stream`, `text`; `gap`: `from`, \
             `to`, for output that is not kept; `end`: the run, once nothing of it is left. The \
             id of each event is the offset to continue from, by `Last-Event-ID` or `from`. A \
             slow reader does not slow the run. Bytes that are not text are replaced; \
             `…/output/raw` has them.",
        )
        .response_with::<200, String, _>(|res| of_kinds(res, &["text/event-stream"]))
}

/// A stream of events under way.
struct Telling {
    engine: Arc<Engine>,
    run: Run,
    guest: Guest,
    follow: Follow,
    looked: Instant,
    ready: VecDeque<SseEvent>,
    cut: [PartialChar; 2],
    over: bool,
}

/// The beginning of a character of one stream, whose rest is still to come.
#[derive(Default)]
struct PartialChar {
    /// Of its first byte.
    offset: u64,
    bytes: Vec<u8>,
}

impl Telling {
    async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.over {
                return None;
            }
            let items = self.follow.next().await.ok()?;
            // After the wait: they may not be welcome any more.
            if self.looked.elapsed() >= WELCOME_FOR {
                if !self.guest.is_welcome().await {
                    return None;
                }
                self.looked = Instant::now();
            }
            match items {
                Some(items) => items.into_iter().for_each(|item| self.tell(item)),
                None => {
                    self.tell_cut();
                    let over = self.engine.runs().closed(&self.run, Duration::MAX).await;
                    let run = over.unwrap_or_else(|_| self.run.clone());
                    self.over = true;
                    self.ready.push_back(event("end", None, &json!(run)));
                }
            }
        }
    }

    fn tell(&mut self, item: Item) {
        let piece = match item {
            Item::Piece(piece) => piece,
            Item::Gap { from, to } => {
                self.tell_cut();
                let told = json!({ "from": from, "to": to });
                self.ready.push_back(event("gap", Some(to), &told));
                return;
            }
        };
        let cut = &mut self.cut[piece.stream as usize];
        if cut.bytes.is_empty() {
            cut.offset = piece.offset;
        }
        cut.bytes.extend_from_slice(&piece.bytes);
        let (offset, whole) = (cut.offset, whole_characters(&cut.bytes));
        let bytes: Vec<u8> = cut.bytes.drain(..whole).collect();
        let end = piece.offset + piece.bytes.len() as u64;
        cut.offset = end - cut.bytes.len() as u64;
        if !bytes.is_empty() {
            self.tell_output(piece.stream, offset, &bytes, end);
        }
    }

    /// Tells of characters whose rest never came.
    fn tell_cut(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let PartialChar { offset, bytes } = std::mem::take(&mut self.cut[stream as usize]);
            if !bytes.is_empty() {
                self.tell_output(stream, offset, &bytes, offset + bytes.len() as u64);
            }
        }
    }

    fn tell_output(&mut self, stream: Stream, offset: u64, bytes: &[u8], end: u64) {
        let name = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        let told = json!({ "offset": offset, "bytes": bytes.len(), "stream": name,
                           "text": String::from_utf8_lossy(bytes) });
        // Whoever comes back gets a cut character whole.
        let cut = self.cut.iter().filter(|cut| !cut.bytes.is_empty());
        let next = cut.map(|cut| cut.offset).min().unwrap_or(end);
        let output = event("output", Some(next), &told);
        self.ready.push_back(output);
    }
}

fn event(name: &str, id: Option<u64>, data: &Value) -> SseEvent {
    let event = SseEvent::default().event(name).data(data.to_string());
    match id {
        Some(id) => event.id(id.to_string()),
        None => event,
    }
}

pub(crate) async fn watch(
    Shared(engine): Shared<Arc<Engine>>,
    guest: Guest,
    Id(id): Id,
    Params(params): Params<ViewerParams>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let run = engine.runs().find_terminal(&id, &guest.who)?;
    let upgrade = upgrade.map_err(|rejection| {
        Problem::new(
            StatusCode::UPGRADE_REQUIRED,
            "upgrade_required",
            format!("this URL is a WebSocket: {}", rejection.body_text()),
            "connect as a WebSocket, or read `…/commands/{id}/stream`",
        )
    })?;
    let seat = guest.viewing().map_err(|no| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too_many_viewers",
            no.to_string(),
            "close viewers you do not need, and try again",
        )
    })?;
    let upgrade = upgrade.max_message_size(MAX_MESSAGE);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let watching = Watching {
            socket,
            guest,
            looked: Instant::now(),
            heard: Instant::now(),
            hand: None,
            around: None,
            sent: 0,
            came: 0,
            _seat: seat,
            run,
            engine,
        };
        watching.serve(params.from).await;
    }))
}

pub(crate) fn watch_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("watchTerminal")
        .summary("Watch and control a terminal over a WebSocket")
        .description(
            "Output comes as binary messages: 8 bytes of offset in network order, then the bytes. \
             All else is JSON with a `type`: `snapshot` (`offset`, `columns`, `rows`, `data` to \
             write to an empty terminal, `skipped` bytes), `gap`, `resize`, `control` (who types, \
             and whether that is `yours`), `around` (how many are `watching`, and to who types \
             whether input is `hidden`), `held`, `error` and, last, `exit`. Send `input`, \
             `resize`, `take`, `give` (with a `note`, or `drop` to discard held input) and, every \
             64 KiB, `ack` with the `offset` of the output received: without it the server stops \
             sending, and sends a snapshot later. Binary messages are keys.",
        )
        .response_with::<101, (), _>(|res| res.description("A WebSocket"))
}

/// Somebody at a terminal.
struct Watching {
    engine: Arc<Engine>,
    run: Run,
    guest: Guest,
    socket: WebSocket,
    looked: Instant,
    /// When they said something last, if only that they are there.
    heard: Instant,
    /// The keyboard, once they have taken it.
    hand: Option<Hand>,
    /// What they were told about what is around them.
    around: Option<Around>,
    /// Output was sent up to this offset.
    sent: u64,
    /// And came up to this one.
    came: u64,
    _seat: Place,
}

/// What is around somebody at a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Around {
    /// They and others.
    watching: usize,
    /// What they type is not shown, and not on record.
    hidden: bool,
}

/// They are gone, or not welcome any more.
struct Gone;

impl Watching {
    async fn serve(mut self, from: Option<u64>) {
        let mut viewer = self.engine.terminals().watch(&self.run, from);
        self.sent = from.unwrap_or(0);
        self.came = self.sent;
        let mut alive = tokio::time::interval(ALIVE_EVERY);
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let room = WINDOW.saturating_sub(self.sent.saturating_sub(self.came));
            let went_on = tokio::select! {
                said = self.socket.recv() => match said {
                    Some(Ok(message)) => self.hear(message).await,
                    _ => Err(Gone),
                },
                sight = viewer.next(room as usize) => match sight {
                    Ok(Some(sight)) => self.show(sight).await,
                    Ok(None) => Err(Gone),
                    Err(error) => {
                        let _ = self.fail(error.into()).await;
                        Err(Gone)
                    }
                },
                _ = alive.tick() => match self.heard.elapsed() < GONE_AFTER {
                    true => self.send(Message::Ping(Bytes::new())).await,
                    false => Err(Gone),
                },
                _ = look.tick() => self.look_around().await,
            };
            if went_on.is_err() || !self.is_welcome().await {
                return self.part().await;
            }
        }
    }

    /// Says goodbye, and waits until they do. Gone at once, what we said last
    /// could be lost with what they say now.
    async fn part(mut self) {
        self.hand = None;
        let _ = self.send(Message::Close(None)).await;
        let heard = async { while let Some(Ok(_)) = self.socket.recv().await {} };
        let _ = tokio::time::timeout(GOODBYE, heard).await;
    }

    async fn is_welcome(&mut self) -> bool {
        if self.looked.elapsed() < WELCOME_FOR {
            return true;
        }
        self.looked = Instant::now();
        self.guest.is_welcome().await
    }

    async fn show(&mut self, sight: Sight) -> Result<(), Gone> {
        // They may have been shown nothing for a while.
        if !self.is_welcome().await {
            return Err(Gone);
        }
        let message = match sight {
            Sight::Output { offset, bytes } => {
                self.sent = offset + bytes.len() as u64;
                let mut message = Vec::with_capacity(OFFSET_BYTES + bytes.len());
                message.extend_from_slice(&offset.to_be_bytes());
                message.extend_from_slice(&bytes);
                return self.send(Message::Binary(message.into())).await;
            }
            Sight::Snapshot {
                offset,
                size,
                bytes,
                skipped,
            } => {
                (self.sent, self.came) = (offset, offset);
                json!({ "type": "snapshot", "offset": offset, "columns": size.columns,
                        "rows": size.rows, "skipped": skipped,
                        "data": String::from_utf8_lossy(&bytes) })
            }
            Sight::Gap { from, to } => {
                // Nobody can say that it came.
                self.sent = to;
                self.came += to - from;
                json!({ "type": "gap", "from": from, "to": to })
            }
            Sight::Resized(size) => {
                json!({ "type": "resize", "columns": size.columns, "rows": size.rows })
            }
            Sight::Control(control) => {
                let yours = self.hand.as_ref().is_some_and(Hand::is_held);
                if !yours {
                    self.hand = None;
                }
                let mut told = json!(control);
                told["type"] = "control".into();
                told["yours"] = yours.into();
                told
            }
            Sight::Exit(run) => json!({ "type": "exit", "run": run }),
        };
        self.say(message).await
    }

    /// Tells how many watch, and whether what is typed is hidden, when that is
    /// not as it was.
    async fn look_around(&mut self) -> Result<(), Gone> {
        let around = Around {
            watching: self.engine.terminals().watching(&self.run),
            hidden: self.hand.is_some() && self.engine.terminals().hides_input(&self.run).await,
        };
        if self.around.replace(around) == Some(around) {
            return Ok(());
        }
        let mut told = json!(around);
        told["type"] = "around".into();
        self.say(told).await
    }

    async fn say(&mut self, message: Value) -> Result<(), Gone> {
        self.send(Message::Text(message.to_string().into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Gone> {
        let sent = tokio::time::timeout(GONE_AFTER, self.socket.send(message)).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            _ => Err(Gone),
        }
    }

    async fn fail(&mut self, problem: Problem) -> Result<(), Gone> {
        let mut told = json!(problem.document());
        told["type"] = "error".into();
        self.say(told).await
    }

    async fn hear(&mut self, message: Message) -> Result<(), Gone> {
        self.heard = Instant::now();
        let said = match message {
            Message::Text(text) => match serde_json::from_str(&text) {
                Ok(said) => said,
                Err(error) => return self.fail(not_understood(&error)).await,
            },
            Message::Binary(bytes) => {
                let done = self.press(&bytes).await;
                return self.answer(done).await;
            }
            Message::Close(_) => return Err(Gone),
            Message::Ping(_) | Message::Pong(_) => return Ok(()),
        };
        let done = match said {
            ViewerMessage::Ack { offset } => {
                self.came = self.came.max(offset.min(self.sent));
                return Ok(());
            }
            ViewerMessage::Input { data } => self.press(data.as_bytes()).await,
            ViewerMessage::Resize { columns, rows } => match &self.hand {
                Some(hand) => hand
                    .resize(Size { columns, rows })
                    .await
                    .map_err(Problem::from),
                // Watching never changes the terminal.
                None => Ok(()),
            }
            .map(|()| None),
            ViewerMessage::Take { columns, rows } => {
                let size = columns
                    .zip(rows)
                    .map(|(columns, rows)| Size { columns, rows });
                let taken = self
                    .engine
                    .terminals()
                    .take_keyboard(&self.run, size, &self.guest.who);
                match taken.await {
                    Ok(hand) => {
                        self.hand = Some(hand);
                        Ok(None)
                    }
                    Err(error) => Err(error.into()),
                }
            }
            ViewerMessage::Give { note, drop } => match self.hand.take() {
                Some(hand) => hand.give(note, drop).await.map_err(Problem::from),
                None => Ok(()),
            }
            .map(|()| None),
        };
        self.answer(done).await
    }

    async fn answer(&mut self, done: Result<Option<Value>, Problem>) -> Result<(), Gone> {
        match done {
            Ok(None) => Ok(()),
            Ok(Some(told)) => self.say(told).await,
            Err(problem) => self.fail(problem).await,
        }
    }

    /// Types: with the keyboard as it is, and without it like anybody else.
    async fn press(&mut self, bytes: &[u8]) -> Result<Option<Value>, Problem> {
        if let Some(hand) = &self.hand {
            hand.press(bytes).await?;
            return Ok(None);
        }
        let typed = Typed {
            text: Some(String::from_utf8_lossy(bytes).into_owned()),
            ..Typed::default()
        };
        let sent = {
            self.engine
                .terminals()
                .type_in(&self.run, &typed, &self.guest.who)
        }
        .await?;
        Ok(match sent {
            Sent::Typed(news) => news.map(|text| json!({ "type": "held", "text": text })),
            Sent::Held(text) => Some(json!({ "type": "held", "text": text })),
            Sent::Asked(run) => Some(json!({ "type": "held", "text": asked(&run) })),
        })
    }
}

/// What is said about a command that a person is asked about.
pub(crate) fn asked(run: &Run) -> String {
    let approval = { run.approval_id.as_deref() }.map_or("an approval".into(), short_id);
    format!(
        "Waiting for approval ({approval}). A person has been asked. It is typed when they agree. \
         Poll the run or continue with other work."
    )
}

fn not_understood(error: &serde_json::Error) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "invalid_body",
        format!("cannot read the message: {error}"),
        "say `input`, `resize`, `take`, `give` or `ack`",
    )
}
