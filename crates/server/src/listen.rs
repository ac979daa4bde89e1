//! Opens the listeners, accepts connections, and closes in order.
//!
//! The loop is our own because `axum::serve` has no limits: a client that
//! connects and sends nothing would keep a connection for ever.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use weighlock_engine::{Engine, HttpClient, Outbound, Shares};

use crate::api::{Within, app};
use crate::auth::Peer;
use crate::lobby::{CountedConnection, Lobby};
use crate::pages::Pages;
use crate::problem::Problem;
use crate::traces;

/// How long requests under way may take once the server was asked to end.
/// Most wait for a run, and a run goes on without us.
const FINISH_WITHIN: Duration = Duration::from_millis(500);

/// Connections at once over TCP of those who are known, who share them. The
/// descriptors that are left are for the socket, and for runs.
const TCP_CONNECTIONS: usize = 256;

/// Connections at once of strangers, over TCP and over the socket. Anyone on this
/// machine can open them without a token.
const STRANGERS: usize = 256;

/// Connections of one user at once over the socket. Beside each run there are
/// one or two, and a handful for each agent; more is a program gone wrong, and
/// the descriptors are for runs.
const USER_CONNECTIONS: usize = 1024;

/// How many connections over a user's limit get an answer at once; others are
/// closed.
const TOLD_CONNECTIONS: usize = 16;

/// How long a connection over TCP may be without a request that is whole, from
/// its beginning or from the last answer.
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// Bytes of a request before its body. The longest address that the parser
/// takes is 64 KiB, and nobody sends more than a few.
const HEAD_BYTES: usize = 64 * 1024;

/// How long to wait when nobody can be let in, most likely because there are
/// no descriptors: without this, the loop would spin until there are.
const ACCEPT_AGAIN: Duration = Duration::from_secs(1);

/// What the server listens on.
pub struct Doors {
    /// For local users.
    pub socket: UnixListener,
    /// For everyone with a token.
    pub tcp: Option<TcpListener>,
    /// Names, beside this machine's own, by which a proxy reaches TCP.
    pub hosts: Vec<String>,
    /// Where the pages are, instead of in the program: while they are
    /// developed.
    pub ui_dir: Option<PathBuf>,
    /// How messages to webhooks are delivered.
    pub outbound: Outbound,
    /// The OpenTelemetry collector that gets spans, if any.
    pub traces: Option<String>,
    /// A further door, which reaches the service from within.
    pub within: fn(Within) -> Router,
}

/// Serves until `stop` resolves.
pub async fn serve(
    engine: Arc<Engine>,
    doors: Doors,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (closing, closed) = watch::channel(false);
    let (delivering, exporting) = (Arc::clone(&engine), Arc::clone(&engine));
    let judging = Arc::clone(&engine);
    let client = HttpClient::new(doors.outbound.ca_file.clone());
    let host = HttpService {
        app: TowerToHyperService::new(app(
            Arc::clone(&engine),
            doors.hosts,
            Pages { dir: doors.ui_dir },
            doors.outbound.clone(),
            doors.within,
        )),
        engine,
        closed,
    };
    let mut open = JoinSet::new();
    if let Some(endpoint) = doors.traces {
        open.spawn(traces::export(exporting, endpoint, client));
    }
    open.spawn(async move { delivering.webhooks().deliver(doors.outbound).await });
    open.spawn(async move { judging.rules().release_memory().await });
    if let Some(tcp) = doors.tcp {
        open.spawn(host.clone().open_tcp(tcp));
    }
    open.spawn(host.open_socket(doors.socket));
    stop.await;
    open.shutdown().await;
    let _ = closing.send(true);
    // Every connection holds the other end until it is over.
    let _ = tokio::time::timeout(FINISH_WITHIN, closing.closed()).await;
    Ok(())
}

/// Answers those who come in.
#[derive(Clone)]
struct HttpService {
    app: TowerToHyperService<Router>,
    engine: Arc<Engine>,
    closed: watch::Receiver<bool>,
}

impl HttpService {
    async fn open_tcp(self, listener: TcpListener) {
        let way = self.way(Some(HEAD_WITHIN));
        let shares = Shares::new("connections", TCP_CONNECTIONS);
        let lobby = Lobby::new(STRANGERS);
        loop {
            let (stream, _) = next(|context| listener.poll_accept(context)).await;
            // Held back by the kernel, small answers take up to 40 ms.
            let _ = stream.set_nodelay(true);
            let visit = loop {
                match lobby.enter(&shares) {
                    Ok(visit) => break visit,
                    Err(after) => tokio::time::sleep(after).await,
                }
            };
            self.attend(&way, stream, Peer::Tcp, visit, None);
        }
    }

    async fn open_socket(self, listener: UnixListener) {
        // `weighlock run` keeps a connection beside a run for as long as that
        // takes. A stranger must show a token, and soon.
        let (patient, hasty) = (self.way(None), self.way(Some(HEAD_WITHIN)));
        let full = Way {
            app: TowerToHyperService::new(Router::new().fallback(too_many)),
            ..self.way(Some(HEAD_WITHIN))
        };
        let told = Arc::new(Semaphore::new(TOLD_CONNECTIONS));
        let (strangers, lobby) = (shares(), Lobby::new(STRANGERS));
        let mut known = HashMap::new();
        loop {
            let (stream, _) = next(|context| listener.poll_accept(context)).await;
            let peer = Peer::of(&stream);
            // Without a place they are sent away: others must not wait behind
            // them.
            let Some(uid) = self.known(peer) else {
                if let Ok(visit) = lobby.enter(&strangers) {
                    self.attend(&hasty, stream, peer, visit, None);
                }
                continue;
            };
            // Agents of a user may come by the same socket, each with a token.
            let (places, shares) = known
                .entry(uid)
                .or_insert_with(|| (user_places(), shares()));
            let found = [(&patient, &*places), (&full, &told)];
            let found = found.into_iter().find_map(|(way, places)| {
                let place = Arc::clone(places).try_acquire_owned().ok()?;
                Some((way, place))
            });
            if let Some((way, place)) = found {
                let visit = CountedConnection::of_user(shares);
                self.attend(way, stream, peer, visit, Some(place));
            }
        }
    }

    fn way(&self, head_within: Option<Duration>) -> Way {
        Way {
            http: http(head_within),
            app: self.app.clone(),
        }
    }

    /// Who it is, where the kernel's word is enough.
    fn known(&self, peer: Peer) -> Option<u32> {
        let Peer::User { uid, .. } = peer else {
            return None;
        };
        let is_known = self
            .engine
            .people()
            .find_user(uid, None)
            .is_ok_and(|who| who.is_some());
        is_known.then_some(uid)
    }

    /// Answers on one connection for as long as it lasts, in a task of its own.
    fn attend<S>(
        &self,
        way: &Way,
        stream: S,
        peer: Peer,
        visit: CountedConnection,
        place: Option<OwnedSemaphorePermit>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let app = way.app.clone();
        let visit = Arc::new(visit);
        let visitor = Arc::clone(&visit);
        let answer = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(Arc::clone(&visitor));
            app.call(request)
        });
        let connection = way.http.serve_connection(TokioIo::new(stream), answer);
        let connection = connection.with_upgrades();
        let mut closed = self.closed.clone();
        tokio::spawn(async move {
            let _place = place;
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                // Another stranger has come.
                () = visit.must_leave() => return,
                () = is_true(&mut closed) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection broke");
            }
        });
    }
}

/// How those are answered who come in by one door.
struct Way {
    http: http1::Builder,
    app: TowerToHyperService<Router>,
}

fn user_places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(USER_CONNECTIONS))
}

fn shares() -> Arc<Shares> {
    Shares::new("connections", USER_CONNECTIONS)
}

/// The answer to a user who has too many connections.
async fn too_many() -> impl IntoResponse {
    let problem = Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_requests",
        format!("you have {USER_CONNECTIONS} connections open; nothing was done"),
        "end programs that keep them: runs in the foreground, watchers and agents do",
    );
    let close = (header::CONNECTION, "close");
    ([close, (header::CACHE_CONTROL, "no-store")], problem)
}

/// How HTTP is spoken. More than 100 header lines get a 431 by default, and
/// asking for that number would move them from the stack to the heap.
fn http(head_within: Option<Duration>) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(head_within)
        .max_header_size(HEAD_BYTES);
    http
}

/// Waits for the next one who comes in, whatever happens to others.
async fn next<T>(mut accept: impl FnMut(&mut Context<'_>) -> Poll<io::Result<T>>) -> T {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    loop {
        let error = match poll_fn(&mut accept).await {
            Ok(came) => return came,
            Err(error) => error,
        };
        // Some leave before the door is open.
        let left = [ConnectionAborted, ConnectionRefused, ConnectionReset];
        if !left.contains(&error.kind()) {
            tracing::error!(%error, "cannot let anybody in");
            tokio::time::sleep(ACCEPT_AGAIN).await;
        }
    }
}

async fn is_true(closed: &mut watch::Receiver<bool>) {
    let _ = closed.wait_for(|&closed| closed).await;
}
