//! What a viewer and the server say to each other.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::net::UnixStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use weighlock_api::{ControlView, ProblemDocument, Run, TerminalView, ViewerMessage};
use weighlock_engine::Size;
use weighlock_server::OFFSET_BYTES;

use crate::client::{self, Client, Failure, TOKEN, escape};
use crate::paths::Paths;
use crate::text::safe;

/// How long the server has to do what it was told last.
const LAST_WORD: Duration = Duration::from_secs(2);

/// A line to the server.
pub(super) struct TerminalSocket(WebSocketStream<UnixStream>);

/// What comes over it.
pub(super) enum ServerMessage {
    Output {
        offset: u64,
        bytes: Vec<u8>,
    },
    Snapshot {
        offset: u64,
        size: Size,
        data: String,
        skipped: u64,
    },
    Resized(Size),
    Control {
        control: ControlView,
        yours: bool,
    },
    Said(String),
    /// What we asked for was not done.
    Refused(String),
    Exit(String),
}

/// A message as it is written.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireMessage {
    Snapshot {
        offset: u64,
        columns: u16,
        rows: u16,
        data: String,
        skipped: u64,
    },
    Gap {
        from: u64,
        to: u64,
    },
    Resize {
        columns: u16,
        rows: u16,
    },
    Control {
        yours: bool,
        #[serde(flatten)]
        control: ControlView,
    },
    Held {
        text: String,
    },
    Error {
        detail: String,
    },
    Exit {
        run: Box<Run>,
    },
}

impl TerminalSocket {
    pub(super) async fn open(paths: &Paths, name: &str) -> Result<Self, Failure> {
        // It starts the server if none runs, and says best what is wrong.
        let mut client = Client::open(paths).await?;
        let path = format!("/terminals/{}", escape(name));
        let terminal: TerminalView = client.get(&path).await?;
        if terminal.status == "waiting" {
            return Err(Failure::new(
                format!("{} waits for approval; nothing runs in it yet", safe(name)),
                "`weighlock inbox` shows what waits",
            ));
        }
        let stream = client::connect(&paths.socket).await;
        let stream = stream.map_err(|error| broken(&error))?;
        client::check_peer(&stream, paths)?;
        let uri = format!("ws://localhost/agent/terminal{path}/stream");
        let mut request = uri.into_client_request().map_err(|error| broken(&error))?;
        if let Ok(token) = std::env::var(TOKEN)
            && let Ok(token) = HeaderValue::from_str(&format!("Bearer {token}"))
        {
            request.headers_mut().insert("authorization", token);
        }
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((line, _)) => Ok(Self(line)),
            Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => {
                let body = answer.body().as_deref().unwrap_or_default();
                Err(match serde_json::from_slice::<ProblemDocument>(body) {
                    Ok(problem) => Failure::new(problem.detail, problem.hint),
                    Err(_) => Failure::new(format!("the server answered {}", answer.status()), ""),
                })
            }
            Err(error) => Err(broken(&error)),
        }
    }

    /// Waits for the next thing that the server says.
    pub(super) async fn next(&mut self) -> Result<ServerMessage, Failure> {
        loop {
            let message = self.0.next().await;
            let message = message.ok_or_else(gone)?.map_err(|error| broken(&error))?;
            match message {
                Message::Binary(bytes) if bytes.len() >= OFFSET_BYTES => {
                    let (offset, bytes) = bytes.split_at(OFFSET_BYTES);
                    let offset = u64::from_be_bytes(offset.try_into().expect("8 bytes"));
                    let bytes = bytes.to_vec();
                    return Ok(ServerMessage::Output { offset, bytes });
                }
                Message::Text(text) => {
                    // What a newer server says besides does not concern us.
                    if let Ok(written) = serde_json::from_str(&text) {
                        return Ok(heard(written));
                    }
                }
                Message::Close(_) => return Err(gone()),
                _ => {}
            }
        }
    }

    /// Says something. Whether the line is broken is heard from the other end,
    /// after what that has said before.
    pub(super) async fn say(&mut self, message: &ViewerMessage) {
        let text = serde_json::to_string(message).expect("plain data");
        let _ = self.0.send(Message::Text(text.into())).await;
    }

    /// Types.
    pub(super) async fn press(&mut self, bytes: &[u8]) {
        let _ = self.0.send(Message::Binary(bytes.to_vec().into())).await;
    }

    /// Hangs up, once the server has heard everything. Gone at once, it could
    /// fail to say something first, and would not listen any more.
    pub(super) async fn close(&mut self) {
        let _ = self.0.close(None).await;
        let heard = async { while let Some(Ok(_)) = self.0.next().await {} };
        let _ = tokio::time::timeout(LAST_WORD, heard).await;
    }
}

fn heard(written: WireMessage) -> ServerMessage {
    match written {
        WireMessage::Snapshot {
            offset,
            columns,
            rows,
            data,
            skipped,
        } => ServerMessage::Snapshot {
            offset,
            size: Size { columns, rows },
            data,
            skipped,
        },
        WireMessage::Gap { from, to } => {
            ServerMessage::Said(format!("{} bytes are not kept", to.saturating_sub(from)))
        }
        WireMessage::Resize { columns, rows } => ServerMessage::Resized(Size { columns, rows }),
        WireMessage::Control { yours, control } => ServerMessage::Control { control, yours },
        WireMessage::Held { text } => ServerMessage::Said(text),
        WireMessage::Error { detail } => ServerMessage::Refused(detail),
        WireMessage::Exit { run } => ServerMessage::Exit(match (run.exit_code, run.signal) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => run.state.word().to_owned(),
        }),
    }
}

fn gone() -> Failure {
    Failure::new(
        "the connection to the server broke; the terminal continues",
        "attach to it again: `weighlock term list`",
    )
}

fn broken(error: &dyn std::error::Error) -> Failure {
    Failure::new(
        format!("the connection to the server broke: {error}"),
        "the terminal continues; attach to it again: `weighlock term list`",
    )
}
