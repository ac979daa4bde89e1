//! The endpoint for clients over HTTP: resumable streams, for authenticated
//! clients.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use rmcp::model::Extensions;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio::time::timeout;
use weighlock_api::{ApiRequest, ApiResponse, Waiting};

use crate::api::Api;
use crate::desk::ClientDesk;
use crate::handler::Handler;
use crate::kept::MemorySessions;
use crate::lines::MOST;
use crate::misread;
use crate::options::{Options, Toolset};
use crate::sessions::{Presence, SessionTable, until_sent};

/// The header that names a client's session.
const SESSION: &str = "mcp-session-id";

/// How long a session may be silent; it is opened anew then.
const SILENT: Duration = Duration::from_secs(3600);

/// How long a client may be away until nobody waits for it: the server has
/// ended by then what it left.
const AWAY: Duration = Duration::from_secs(15);

/// How long a message may take to come, as long as over REST.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// The REST interface of a server, called in its own process with the identity
/// of somebody whose request has come in.
pub trait LocalRest: Clone + Send + Sync + 'static {
    /// Returns the name of the principal who has sent a request; none where
    /// the server does not know them.
    fn caller(&self, head: &Parts) -> Option<String>;

    /// Passes on what the sender of `head` asks, if they would still be let in.
    fn call<'a>(&'a self, head: &'a Parts, request: Request) -> BoxFuture<'a, Response>;
}

/// Adds the address for agents.
pub fn door<R: LocalRest>(rest: R) -> Router {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SILENT);
    let sessions = Arc::new(MemorySessions::new(sessions));
    let local = rest.clone();
    let handler = Handler::new(move |known| desk(&local, known));
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MOST);
    let service =
        StreamableHttpService::new(move || Ok(handler.clone()), Arc::clone(&sessions), config);
    let door = Arc::new(Door {
        caller: Box::new(move |head| rest.caller(head)),
        service,
        manager: sessions,
        sessions: SessionTable::default(),
    });
    Router::new()
        .route("/mcp", axum::routing::any(answer))
        .with_state(door)
}

/// Returns who sends a request, if they are known.
type FindCaller = Box<dyn Fn(&Parts) -> Option<String> + Send + Sync>;

struct Door {
    /// See [`LocalRest::caller`].
    caller: FindCaller,
    service: StreamableHttpService<Handler, MemorySessions>,
    manager: Arc<MemorySessions>,
    sessions: SessionTable,
}

/// What a client says in the address that it was given.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct QueryOptions {
    /// Toolsets, with commas between them.
    toolset: Option<String>,
    agent: Option<String>,
    session: Option<String>,
    sandbox: Option<String>,
    cwd: Option<String>,
    ask: bool,
    require_description: bool,
}

async fn answer(State(door): State<Arc<Door>>, request: Request) -> Response {
    let (mut head, body) = request.into_parts();
    let Some(who) = (door.caller)(&head) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    if let Err(why) = options(&head) {
        return (StatusCode::BAD_REQUEST, why).into_response();
    }
    let declared = head.headers.get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|bytes| bytes > MOST as u64) {
        // Before any of it has come.
        return ([(header::CONNECTION, "close")], too_large()).into_response();
    }
    let Some(place) = door.sessions.place(&who) else {
        let why = "too many calls are under way; wait for one of them";
        return (StatusCode::TOO_MANY_REQUESTS, why).into_response();
    };
    let connection = match named(&head) {
        Some(id) => match door.sessions.enter(id, &who) {
            Some(presence) => {
                head.extensions.insert(presence.clone());
                Some(presence.connect())
            }
            // As if there were none: it is not theirs.
            None => return (StatusCode::NOT_FOUND, "there is no such session").into_response(),
        },
        None => None,
    };
    let body = match timeout(BODY_WITHIN, axum::body::to_bytes(body, MOST)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return too_large().into_response(),
        Err(_) => {
            let why = "the message did not come in time; nothing was done";
            return (StatusCode::REQUEST_TIMEOUT, why).into_response();
        }
    };
    // Nothing else begins a session.
    let begins = connection.is_none() && misread::is_greeting(&body);
    if begins && !door.makes_room(&who).await {
        let why = "too many sessions are open; end one with DELETE";
        return (StatusCode::TOO_MANY_REQUESTS, why).into_response();
    }
    let response = door.pass(head, body).await;
    if let Some(id) = { response.headers().get(SESSION) }.and_then(|id| id.to_str().ok()) {
        door.sessions.add(id, &who);
    }
    response.map(|body| until_sent(body, (place, connection)))
}

fn too_large() -> (StatusCode, String) {
    let why = format!("a message has at most {MOST} bytes; nothing was done");
    (StatusCode::PAYLOAD_TOO_LARGE, why)
}

impl Door {
    /// Passes a message on; again without the rest if that cannot be read.
    async fn pass(&self, head: Parts, body: Bytes) -> Response {
        let request = Request::from_parts(head.clone(), Body::from(body.clone()));
        let response = self.service.handle(request).await.map(Body::new);
        if response.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE {
            return response;
        }
        let Some(message) = misread::without_rest(&body) else {
            return response;
        };
        let body = serde_json::to_vec(&message).expect("messages are always JSON");
        let request = Request::from_parts(head, Body::from(body));
        self.service.handle(request).await.map(Body::new)
    }

    /// Sees to it that somebody can have one session more, if that can be.
    async fn makes_room(&self, who: &str) -> bool {
        if self.sessions.room_for(who) == Ok(None) {
            return true;
        }
        let retain = |is_there: &dyn Fn(&str) -> bool| self.sessions.retain(is_there);
        self.manager.tidy(retain).await;
        match self.sessions.room_for(who) {
            Ok(None) => true,
            Ok(Some(oldest)) => {
                let _ = self.manager.close_session(&oldest.as_str().into()).await;
                self.sessions.retain(|id| id != oldest);
                true
            }
            Err(()) => false,
        }
    }
}

/// The session that a client says it has.
fn named(head: &Parts) -> Option<&str> {
    head.headers.get(SESSION)?.to_str().ok()
}

fn options(head: &Parts) -> Result<Options, String> {
    let Query(choice) = Query::<QueryOptions>::try_from_uri(&head.uri)
        .map_err(|error| format!("{error}; give toolset, agent, session, sandbox or cwd"))?;
    let toolsets = choice.toolset.unwrap_or_default();
    Ok(Options {
        toolsets: { toolsets.split(',').filter(|name| !name.is_empty()) }
            .map(str::parse::<Toolset>)
            .collect::<Result<_, _>>()?,
        agent: choice.agent,
        session: Some(choice.session.unwrap_or_else(|| match named(head) {
            Some(id) => format!("mcp-{id}"),
            None => "mcp".into(),
        })),
        sandbox: choice.sandbox,
        cwd: choice.cwd,
        ask: choice.ask,
        require_description: choice.require_description,
    })
}

/// Returns the desk for the sender of a message.
fn desk<R: LocalRest>(rest: &R, known: &Extensions) -> Arc<ClientDesk> {
    let head = known.get::<Parts>().cloned();
    let options = head.as_ref().and_then(|head| options(head).ok());
    let inside = LocalService {
        rest: rest.clone(),
        head,
    };
    ClientDesk::new(Box::new(inside), options.unwrap_or_default())
}

/// The REST service, called with the identity of a message's sender.
struct LocalService<R> {
    rest: R,
    head: Option<Parts>,
}

impl<R: LocalRest> Api for LocalService<R> {
    fn ask(&self, request: ApiRequest) -> BoxFuture<'_, Result<ApiResponse, (String, String)>> {
        Box::pin(async move {
            let nobody = || ("nobody has sent this".to_owned(), String::new());
            let head = self.head.as_ref().ok_or_else(nobody)?;
            match head.extensions.get::<Presence>() {
                Some(presence) if request.waiting != Waiting::Brief => {
                    self.attend(head, presence, request).await
                }
                _ => self.pass(head, request).await,
            }
        })
    }
}

impl<R: LocalRest> LocalService<R> {
    /// Asks for what is worth waiting for only while the client is there. Who
    /// comes back in time waits again.
    async fn attend(
        &self,
        head: &Parts,
        presence: &Presence,
        request: ApiRequest,
    ) -> Result<ApiResponse, (String, String)> {
        while timeout(AWAY, presence.is_back()).await.is_ok() {
            tokio::select! {
                answer = self.pass(head, request.clone()) => return answer,
                () = presence.is_gone() => {}
            }
        }
        match request.waiting {
            // It has ended by now, or its end is near.
            Waiting::Attended => self.pass(head, request).await,
            _ => Err(("the client is gone".into(), String::new())),
        }
    }

    async fn pass(&self, head: &Parts, ask: ApiRequest) -> Result<ApiResponse, (String, String)> {
        let mut request = Request::builder()
            .method(ask.method.word())
            .uri(ask.path)
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(key) = ask.key {
            request = request.header("idempotency-key", key);
        }
        let request = request.body(Body::from(ask.body));
        let request = request.map_err(|error| (error.to_string(), String::new()))?;
        let response = self.rest.call(head, request).await;
        let status = response.status().as_u16();
        let body: Result<Bytes, _> = response
            .into_body()
            .collect()
            .await
            .map(|all| all.to_bytes());
        let body = body.map_err(|error| (error.to_string(), String::new()))?;
        let body = body.into();
        Ok(ApiResponse { status, body })
    }
}
