//! A thin client of the server, which it starts when none runs.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::http::request::Builder;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use weighlock_engine::ShortPath;
use weighlock_server::ProblemDocument;
pub(crate) use weighlock_server::escape;

pub(crate) use crate::failure::Failure;
use crate::paths::Paths;
use crate::start::{log_path, start};

/// What stands for somebody else than the user of this machine.
pub(crate) const TOKEN: &str = "WEIGHLOCK_TOKEN";

/// Another process may be starting the same server; it is ready by then.
const START_WITHIN: Duration = Duration::from_secs(15);

/// A connection to the server.
pub(crate) struct Client {
    connection: SendRequest<Full<Bytes>>,
    token: Option<String>,
}

impl Client {
    /// Connects, starting the server when none runs and it would be ours.
    pub(crate) async fn open(paths: &Paths) -> Result<Self, Failure> {
        if paths.is_foreign() {
            return Self::try_open(paths)
                .await?
                .ok_or_else(|| nobody_there(paths));
        }
        let deadline = Instant::now() + START_WITHIN;
        loop {
            if let Some(client) = Self::try_open(paths).await? {
                return Ok(client);
            }
            // Ours is ready then, or lost the race against another that soon
            // will be; or that one was about to end, and the next try helps.
            start(paths)?;
            if Instant::now() > deadline {
                return Err(Failure::new(
                    "the server was started but cannot be reached; nothing was done",
                    format!("see {}", log_path(paths).display()),
                ));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Connects to a server that runs, for what makes no sense with a new one.
    pub(crate) async fn open_running(paths: &Paths) -> Result<Self, Failure> {
        let found = Self::try_open(paths).await?;
        found.ok_or_else(|| match paths.is_foreign() {
            true => nobody_there(paths),
            false => Failure::new(
                format!(
                    "no server runs for {}; nothing was done",
                    paths.state_dir.display()
                ),
                "say which one is meant: --socket PATH, or --state-dir DIR; if it is this one, \
                 start it with `weighlock serve`",
            ),
        })
    }

    /// Connects if a server runs.
    pub(crate) async fn try_open(paths: &Paths) -> Result<Option<Self>, Failure> {
        let stream = match connect(&paths.socket).await {
            Ok(stream) => stream,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => {
                return Err(Failure::new(
                    format!("cannot connect to {}: {error}", paths.socket.display()),
                    "check who owns the socket and the state directory",
                ));
            }
        };
        check_peer(&stream, paths)?;
        let (connection, driver) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(driver);
        let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
        Ok(Some(Self { connection, token }))
    }

    /// Returns whether the server is known to have gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    pub(crate) async fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, Failure> {
        let response = self.send(Method::GET, path, Bytes::new()).await?;
        parse(response).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let response = self.send(Method::POST, path, json(body)).await?;
        parse(response).await
    }

    /// Says something to which there may be something to answer.
    pub(crate) async fn post_for<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Option<T>, Failure> {
        let response = self.send(Method::POST, path, json(body)).await?;
        match response.status() {
            StatusCode::NO_CONTENT => Ok(None),
            _ => parse(response).await.map(Some),
        }
    }

    /// Says something to which there is nothing to answer.
    pub(crate) async fn tell(&mut self, path: &str, body: &impl Serialize) -> Result<(), Failure> {
        let response = self.send(Method::POST, path, json(body)).await?;
        checked(response).await.map(drop)
    }

    pub(crate) async fn put<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let response = self.send(Method::PUT, path, json(body)).await?;
        parse(response).await
    }

    /// Changes what is there, if it is still what was read.
    pub(crate) async fn patch<T: DeserializeOwned>(
        &mut self,
        path: &str,
        version: i64,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let response = self.send_at(Method::PATCH, path, version, json(body));
        parse(response.await?).await
    }

    /// Replaces a resource if it still has the version that was read.
    pub(crate) async fn put_at<T: DeserializeOwned>(
        &mut self,
        path: &str,
        version: i64,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let response = self.send_at(Method::PUT, path, version, json(body));
        parse(response.await?).await
    }

    /// Takes away what is there, if it is still what was read.
    pub(crate) async fn remove_at(&mut self, path: &str, version: i64) -> Result<(), Failure> {
        let response = self.send_at(Method::DELETE, path, version, Bytes::new());
        checked(response.await?).await.map(drop)
    }

    pub(crate) async fn delete<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, Failure> {
        let response = self.send(Method::DELETE, path, Bytes::new()).await?;
        parse(response).await
    }

    /// Takes something away, of which nothing is left to tell.
    pub(crate) async fn remove(&mut self, path: &str) -> Result<(), Failure> {
        let response = self.send(Method::DELETE, path, Bytes::new()).await?;
        checked(response).await.map(drop)
    }

    /// Asks for something that comes as a stream.
    pub(crate) async fn stream(&mut self, path: &str) -> Result<Incoming, Failure> {
        let response = self.send(Method::GET, path, Bytes::new()).await?;
        Ok(checked(response).await?.into_body())
    }

    /// Asks for something that is taken as it is.
    pub(crate) async fn bytes(&mut self, path: &str) -> Result<Bytes, Failure> {
        let body = self.stream(path).await?.collect().await;
        Ok(body.map_err(broken)?.to_bytes())
    }

    /// Hands over bytes; returns whether they were wanted.
    pub(crate) async fn feed(&mut self, path: &str, bytes: Bytes) -> Result<bool, Failure> {
        let response = self.send(Method::POST, path, bytes).await?;
        if response.status() == StatusCode::CONFLICT {
            return Ok(false);
        }
        checked(response).await?;
        Ok(true)
    }

    /// Passes on what somebody else asks; returns the status and the answer. An
    /// error means that nobody knows whether it was done.
    pub(crate) async fn pass(
        &mut self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let mut request = self.request(method, path);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = self.dispatch(request, body).await?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(broken)?;
        Ok((status, body.to_bytes()))
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let request = self.request(method, path);
        self.dispatch(request, body).await
    }

    /// The same about what was read, if it is still that.
    async fn send_at(
        &mut self,
        method: Method,
        path: &str,
        version: i64,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let request = self.request(method, path);
        let request = request.header("if-match", tag(version));
        self.dispatch(request, body).await
    }

    fn request(&self, method: Method, path: &str) -> Builder {
        let request = Request::builder()
            .method(method)
            .uri(format!("/agent/terminal{path}"))
            .header("host", "localhost")
            .header("content-type", "application/json");
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    async fn dispatch(
        &mut self,
        request: Builder,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let request = request
            .body(Full::new(body))
            .map_err(|error| Failure::new(format!("not a valid request: {error}"), ""))?;
        self.connection.ready().await.map_err(broken)?;
        self.connection.send_request(request).await.map_err(broken)
    }
}

/// A version as HTTP writes it.
fn tag(version: i64) -> String {
    format!("\"{version}\"")
}

fn nobody_there(paths: &Paths) -> Failure {
    Failure::new(
        format!(
            "no server listens on {}; nothing was done",
            paths.socket.display()
        ),
        "start it there: weighlock serve --socket PATH; or leave --socket and WEIGHLOCK_SOCKET out",
    )
}

/// Runs the client's part of a verb.
pub(crate) fn block_on<T>(deed: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot begin: {error}"), ""))?;
    let done = runtime.block_on(deed);
    // A thread may still wait for standard input; nobody waits for it.
    runtime.shutdown_background();
    done
}

pub(crate) async fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let address = short(socket)?;
    UnixStream::connect(&address).await
}

/// Refuses a server that is neither ours nor one we were sent to, before it
/// gets a token or a command: who can write where the socket lies could have
/// put their own there. Root, the user that we are, and the owner of the
/// socket's directory or of the state directory are expected.
pub(crate) fn check_peer(stream: &UnixStream, paths: &Paths) -> Result<(), Failure> {
    let refuse = |what: String| {
        Failure::new(
            format!("{what}; nothing was sent"),
            "somebody else may pretend to be the server: check who owns that socket, or name the \
             right one with --socket PATH",
        )
    };
    let socket = paths.socket.display();
    let peer = stream.peer_cred().map_err(|error| {
        refuse(format!(
            "cannot tell which user listens on {socket}: {error}"
        ))
    })?;
    let owner = |dir: Option<&Path>| dir?.metadata().ok().map(|dir| dir.uid());
    // Through a link, which may lead into another directory.
    let real = paths.socket.canonicalize().ok();
    let dir = real.as_deref().unwrap_or(&paths.socket).parent();
    let expected = [
        Some(0),
        Some(rustix::process::geteuid().as_raw()),
        owner(dir),
        owner(Some(&paths.state_dir)),
    ];
    match expected.contains(&Some(peer.uid())) {
        true => Ok(()),
        false => Err(refuse(format!(
            "the user with id {} listens on {socket}, who owns neither its directory nor the state \
             directory",
            peer.uid()
        ))),
    }
}

/// A path to a socket that fits into an address.
pub(crate) fn short(socket: &Path) -> std::io::Result<ShortPath> {
    match (socket.parent(), socket.file_name()) {
        (Some(dir), Some(name)) => ShortPath::new(dir, name),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused
    )
}

fn json(body: &impl Serialize) -> Bytes {
    serde_json::to_vec(body)
        .expect("requests are always JSON")
        .into()
}

async fn parse<T: DeserializeOwned>(response: Response<Incoming>) -> Result<T, Failure> {
    let body = checked(response).await?.into_body();
    let body = body.collect().await.map_err(broken)?.to_bytes();
    serde_json::from_slice(&body).map_err(|error| {
        Failure::new(
            format!("cannot read the server's answer: {error}"),
            "restart the server if it is of another version",
        )
    })
}

async fn checked(response: Response<Incoming>) -> Result<Response<Incoming>, Failure> {
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    let body = response.into_body().collect().await.map_err(broken)?;
    match serde_json::from_slice::<ProblemDocument>(&body.to_bytes()) {
        Ok(problem) => Err(Failure {
            what: problem.detail.clone(),
            hint: problem.hint.clone(),
            problem: Some(Box::new(problem)),
        }),
        Err(_) => Err(Failure::new(
            format!("the server answered {status} and does not say why"),
            "look at `weighlock runs` before asking again: it may have been done",
        )),
    }
}

fn broken(error: hyper::Error) -> Failure {
    Failure::new(
        format!("the connection to the server broke: {error}"),
        "a run that was started goes on: `weighlock runs`",
    )
}
