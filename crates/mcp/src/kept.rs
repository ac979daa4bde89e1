//! Answers that outlast their connections: messages that come while no client
//! is connected are kept until a client resumes the stream.
//!
//! The SDK's own sessions forget an answer as soon as it was sent, even if
//! nobody was there (rmcp 3.8).

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::future::ready;
use futures_util::stream::{BoxStream, once, poll_fn};
use futures_util::{Stream, StreamExt};
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::sync::{mpsc, watch};

use crate::twice::{self, UnderWay};

/// Streams of a session that are kept after their end, the newest, and bytes
/// of these.
const FINISHED: usize = 16;
const FINISHED_BYTES: usize = 1024 * 1024;

/// Events of one stream; the oldest go first, and the answer comes last.
const EVENTS: usize = 256;

/// Sessions in memory, with the streams of their answers.
pub(crate) struct MemorySessions {
    sessions: LocalSessionManager,
    own: Mutex<HashMap<SessionId, SessionStreams>>,
}

/// What is kept of one session.
#[derive(Default)]
struct SessionStreams {
    under_way: Arc<Mutex<UnderWay>>,
    streams: VecDeque<Written>,
}

/// What was written to one stream, as it grows.
type Written = Arc<watch::Sender<StreamEvents>>;

#[derive(Default)]
struct StreamEvents {
    /// So many are not there any more.
    gone: usize,
    list: VecDeque<ServerSseMessage>,
    /// As they are sent.
    bytes: usize,
    over: bool,
}

impl MemorySessions {
    pub(crate) fn new(sessions: LocalSessionManager) -> Self {
        Self {
            sessions,
            own: Mutex::default(),
        }
    }

    /// Tells which of these sessions are there, and forgets all others.
    pub(crate) async fn tidy(&self, retain: impl FnOnce(&dyn Fn(&str) -> bool)) {
        let there = self.sessions.sessions.read().await;
        retain(&|id| there.contains_key(id));
        self.own().retain(|id, _| there.contains_key(id));
    }

    fn own(&self) -> MutexGuard<'_, HashMap<SessionId, SessionStreams>> {
        lock(&self.own)
    }

    fn under_way(&self, id: &SessionId) -> Arc<Mutex<UnderWay>> {
        let mut own = self.own();
        Arc::clone(&own.entry(id.clone()).or_default().under_way)
    }

    /// Makes room for what comes of a request, unless another with its id is
    /// under way: an error is that id.
    fn begin(
        &self,
        id: &SessionId,
        message: &mut ClientJsonRpcMessage,
    ) -> Result<StreamWriter, RequestId> {
        let mut own = self.own();
        let own = own.entry(id.clone()).or_default();
        lock(&own.under_way).received(message)?;
        let written = Written::default();
        own.streams.push_back(Arc::clone(&written));
        forget_oldest(&mut own.streams);
        Ok(StreamWriter {
            written,
            under_way: Arc::clone(&own.under_way),
            request: match message {
                ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
                _ => None,
            },
        })
    }

    /// Finds the stream that an event was in, and the number of the next.
    fn find(&self, id: &SessionId, event: &str) -> Option<(Written, usize)> {
        let own = self.own();
        let mut streams = own.get(id)?.streams.iter();
        streams.find_map(|written| {
            let events = written.borrow();
            let is_it = |one: &ServerSseMessage| one.event_id.as_deref() == Some(event);
            let at = events.list.iter().position(is_it)?;
            Some((Arc::clone(written), events.gone + at + 1))
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|lock| lock.into_inner())
}

/// Writes to a stream; without it, that is over.
struct StreamWriter {
    written: Written,
    under_way: Arc<Mutex<UnderWay>>,
    /// The request that it is for, by our number.
    request: Option<RequestId>,
}

impl StreamWriter {
    /// Keeps what comes, whether or not anybody reads it.
    fn keep(self, mut from: BoxStream<'static, ServerSseMessage>) -> Written {
        let written = Arc::clone(&self.written);
        tokio::spawn(async move {
            while let Some(event) = from.next().await {
                if let Some(event) = self.as_theirs(event) {
                    self.written.send_modify(|events| events.add(event));
                }
            }
        });
        written
    }

    /// Returns the message to send, or none if the client has cancelled it. A
    /// client may reuse an id once it has the answer.
    fn as_theirs(&self, mut event: ServerSseMessage) -> Option<ServerSseMessage> {
        if let Some(message) = &mut event.message {
            let wanted = lock(&self.under_way).sent(Arc::make_mut(message));
            return wanted.then_some(event);
        }
        Some(event)
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        if let Some(request) = &self.request {
            lock(&self.under_way).forget(request);
        }
        self.written.send_modify(|events| events.over = true);
    }
}

/// Drops the oldest finished streams beyond the limits.
fn forget_oldest(streams: &mut VecDeque<Written>) {
    let (mut count, mut bytes) = (0, 0);
    // The newest come first here.
    for at in (0..streams.len()).rev() {
        let events = streams[at].borrow();
        if !events.over {
            continue;
        }
        count += 1;
        bytes += events.bytes;
        drop(events);
        if count > FINISHED || bytes > FINISHED_BYTES {
            streams.remove(at);
        }
    }
}

impl StreamEvents {
    fn add(&mut self, event: ServerSseMessage) {
        if self.list.len() >= EVENTS {
            self.list.pop_front();
            self.gone += 1;
        }
        self.bytes += size(&event);
        self.list.push_back(event);
    }

    /// Returns the first from a number on that is there, and the number after.
    fn get(&self, number: usize) -> Option<(ServerSseMessage, usize)> {
        let number = number.max(self.gone);
        let event = self.list.get(number - self.gone)?;
        Some((event.clone(), number + 1))
    }
}

/// How long a message is when it is sent.
fn size(event: &ServerSseMessage) -> usize {
    struct ByteCounter(usize);
    impl io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCounter(0);
    if let Some(message) = &event.message {
        // Counting cannot fail.
        let _ = serde_json::to_writer(&mut count, message.as_ref());
    }
    count.0
}

/// Reads a stream from one of its events on, to its end.
fn read(
    written: &Written,
    mut next: usize,
) -> impl Stream<Item = ServerSseMessage> + Send + Sync + use<> {
    let mut written = written.subscribe();
    let (to, mut from) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let there = |events: &StreamEvents| events.get(next).is_some() || events.over;
            let found = written.wait_for(there).await;
            let Some((event, after)) = found.ok().and_then(|events| events.get(next)) else {
                return;
            };
            next = after;
            if to.send(event).await.is_err() {
                return;
            }
        }
    });
    poll_fn(move |context| from.poll_recv(context))
}

impl SessionManager for MemorySessions {
    type Error = <LocalSessionManager as SessionManager>::Error;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.sessions.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.sessions.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.sessions.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.own().remove(id);
        self.sessions.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let feed = match self.begin(id, &mut message) {
            Ok(feed) => feed,
            Err(id) => {
                let refusal = ServerSseMessage::from_message(twice::refusal(id));
                return Ok(once(ready(refusal)).left_stream());
            }
        };
        let stream = self.sessions.create_stream(id, message).await?;
        Ok(read(&feed.keep(stream.boxed()), 0).right_stream())
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        let received = lock(&self.under_way(id)).received(&mut message);
        match received {
            Ok(true) => self.sessions.accept_message(id, message).await,
            // Requests come with a stream; and this is about none that is there.
            Ok(false) | Err(_) => Ok(()),
        }
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.sessions.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        match self.find(id, &last_event_id) {
            Some((written, next)) => Ok(read(&written, next).left_stream()),
            None => {
                let stream = self.sessions.resume(id, last_event_id).await?;
                Ok(stream.right_stream())
            }
        }
    }
}
