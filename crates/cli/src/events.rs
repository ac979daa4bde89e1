//! What happens on the server, as it happens.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use weighlock_api::Event;

use crate::client::{Client, Failure};
use crate::paths::Paths;

/// How long to wait before a server that went away is looked for again: one
/// that takes its place has that time.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How often it is looked for.
const TRIES: usize = 30;

/// Events that are buffered before a caller asks for them. A client that falls
/// further behind gets a `reset` from the server.
const AHEAD: usize = 64;

/// Events, across restarts of the server.
pub(crate) struct EventFeed {
    told: Receiver<Result<Event, Failure>>,
    _telling: JoinSet<()>,
}

impl EventFeed {
    /// Tells everything from now on.
    pub(crate) async fn open(paths: &Paths) -> Result<Self, Failure> {
        let stream = SseStream::open(paths, None).await?;
        let (tell, told) = channel(AHEAD);
        // In a task of its own: whoever waits for something else, too, must not
        // keep it from coming back.
        let mut telling = JoinSet::new();
        telling.spawn(tell_all(paths.clone(), stream, tell));
        Ok(Self {
            told,
            _telling: telling,
        })
    }

    /// Waits for the next event. After a `reset` everything may be different.
    /// Dropping the future loses no event.
    pub(crate) async fn next(&mut self) -> Result<Event, Failure> {
        let ended = || Err(Failure::new("the server tells nothing any more", ""));
        self.told.recv().await.unwrap_or_else(ended)
    }

    /// Drops the buffered events, for a caller that reloads everything anyway.
    pub(crate) fn skip(&mut self) {
        while self.told.try_recv().is_ok() {}
    }
}

async fn tell_all(paths: Paths, mut stream: SseStream, tell: Sender<Result<Event, Failure>>) {
    let mut last = None;
    loop {
        while let Some(event) = stream.next().await {
            last = Some(event.id);
            if tell.send(Ok(event)).await.is_err() {
                return;
            }
        }
        let opened = reopen(&paths, last).await;
        let news = match opened {
            Ok(opened) => {
                stream = opened;
                Ok(reset(last.unwrap_or_default()))
            }
            Err(failure) => Err(failure),
        };
        let over = news.is_err();
        if tell.send(news).await.is_err() || over {
            return;
        }
    }
}

async fn reopen(paths: &Paths, last: Option<u64>) -> Result<SseStream, Failure> {
    let mut tries = 0;
    loop {
        tokio::time::sleep(AGAIN_AFTER).await;
        tries += 1;
        match SseStream::open(paths, last).await {
            // An answer is an answer, whatever it is.
            Err(failure) if failure.problem.is_none() && tries < TRIES => {}
            opened => return opened,
        }
    }
}

fn reset(id: u64) -> Event {
    Event {
        id,
        event: "reset".into(),
        time: jiff::Timestamp::now().to_string(),
        kind: "reset".into(),
        actor: "weighlock".into(),
        command_id: None,
        approval_id: None,
        sandbox_id: None,
    }
}

/// Server-sent events out of a stream of bytes.
struct SseStream {
    body: Incoming,
    buffer: Vec<u8>,
}

impl SseStream {
    async fn open(paths: &Paths, after: Option<u64>) -> Result<Self, Failure> {
        let mut client = Client::open(paths).await?;
        let path = match after {
            Some(after) => format!("/events?after={after}"),
            None => "/events".into(),
        };
        Ok(Self {
            body: client.stream(&path).await?,
            buffer: vec![],
        })
    }

    /// Returns the next one; none when the line broke.
    async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(block) = take(&mut self.buffer) {
                if let Some(event) = read(&block) {
                    return Some(event);
                }
            }
            let piece = self.body.frame().await?.ok()?;
            if let Ok(bytes) = piece.into_data() {
                self.buffer.extend_from_slice(&bytes);
            }
        }
    }
}

/// Takes what stands before the next empty line.
fn take(buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
    let rest = buffer.split_off(end + 2);
    Some(std::mem::replace(buffer, rest))
}

/// Reads one event; none for what only says that the line is alive.
fn read(block: &[u8]) -> Option<Event> {
    let text = String::from_utf8_lossy(block);
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    serde_json::from_str(&data.collect::<Vec<_>>().join("\n")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_apart_wherever_they_are_cut() {
        let told = r#"id: 7
event: run.updated
data: {"id":7,"event":"run.updated","time":"","kind":"run.ended","actor":"a","command_id":null,"approval_id":null,"sandbox_id":null}

"#;
        let mut buffer = format!(": alive\n\n{told}id: 8").into_bytes();
        assert_eq!(read(&take(&mut buffer).unwrap()), None);
        assert_eq!(read(&take(&mut buffer).unwrap()).unwrap().id, 7);
        assert_eq!(take(&mut buffer), None);
        assert_eq!(buffer, b"id: 8");
    }
}
