//! A thin client of the server, which it starts when none runs.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use weighlock_engine::ShortPath;
use weighlock_server::ProblemDocument;

use crate::paths::{Paths, default_base};

/// Another process may be starting the same server; it is ready by then.
const START_WITHIN: Duration = Duration::from_secs(15);

/// What went wrong, and what to do: as the command line says it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) what: String,
    pub(crate) hint: String,
    /// What the server answered, if it did.
    pub(crate) problem: Option<Box<ProblemDocument>>,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            hint: hint.into(),
            problem: None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", crate::text::safe(&self.what))?;
        if !self.hint.is_empty() {
            writeln!(f, "hint: {}", crate::text::safe(&self.hint))?;
        }
        Ok(())
    }
}

impl From<weighlock_engine::Error> for Failure {
    fn from(error: weighlock_engine::Error) -> Self {
        let problem = error.problem();
        Self::new(problem.detail, problem.hint)
    }
}

/// A connection to the server.
pub(crate) struct Client {
    connection: SendRequest<Full<Bytes>>,
}

impl Client {
    /// Connects, starting the server when none runs.
    pub(crate) async fn open(paths: &Paths) -> Result<Self, Failure> {
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
        let (connection, driver) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(driver);
        Ok(Some(Self { connection }))
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

    pub(crate) async fn put<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let response = self.send(Method::PUT, path, json(body)).await?;
        parse(response).await
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

    /// Hands over bytes; returns whether they were wanted.
    pub(crate) async fn feed(&mut self, path: &str, bytes: Bytes) -> Result<bool, Failure> {
        let response = self.send(Method::POST, path, bytes).await?;
        if response.status() == StatusCode::CONFLICT {
            return Ok(false);
        }
        checked(response).await?;
        Ok(true)
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let request = Request::builder()
            .method(method)
            .uri(format!("/agent/terminal{path}"))
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|error| Failure::new(format!("not a valid request: {error}"), ""))?;
        self.connection.ready().await.map_err(broken)?;
        self.connection.send_request(request).await.map_err(broken)
    }
}

/// Makes a part of an address from any text.
pub(crate) fn escape(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
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

async fn connect(socket: &Path) -> std::io::Result<UnixStream> {
    let address = short(socket)?;
    UnixStream::connect(&address).await
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

/// Starts a server in the background and waits until it is ready or gave up.
fn start(paths: &Paths) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(
            format!(
                "cannot start the server in {}: {error}; nothing was done",
                paths.state_dir.display()
            ),
            "start it by hand to see more: weighlock serve",
        )
    };
    std::fs::create_dir_all(&paths.state_dir).map_err(cannot)?;
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(log_path(paths))
        .map_err(cannot)?;
    let before = log.metadata().map_or(0, |log| log.len());
    let mut server = Command::new("/proc/self/exe")
        .arg0("weighlock")
        .arg("serve")
        .arg("--state-dir")
        .arg(&paths.state_dir)
        .arg("--base")
        .arg(default_base()?)
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    let mut ready = String::new();
    if let Some(stdout) = server.stdout.take() {
        // The server closes it when it is ready or gives up.
        let _ = BufReader::new(stdout).read_line(&mut ready);
    }
    if ready.trim() == "ready" {
        return Ok(());
    }
    let said = std::fs::read(log_path(paths)).unwrap_or_default();
    let said =
        String::from_utf8_lossy(said.get(before as usize..).unwrap_or_default()).into_owned();
    // Somebody else's server is as good as ours.
    if said.contains("another server uses") {
        return Ok(());
    }
    let (_, last) = said
        .rsplit_once("error: ")
        .unwrap_or(("", "it said nothing"));
    let default = "start it by hand to see more: weighlock serve";
    let (what, hint) = last.split_once("\nhint: ").unwrap_or((last, default));
    let what = what.trim();
    Err(Failure::new(
        format!("the server does not start: {what}; nothing was done"),
        hint.trim(),
    ))
}

fn log_path(paths: &Paths) -> std::path::PathBuf {
    paths.state_dir.join("server.log")
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
            format!("the server's answer is not understood: {error}"),
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
        Err(_) => Err(Failure::new(format!("the server answered {status}"), "")),
    }
}

fn broken(error: hyper::Error) -> Failure {
    Failure::new(
        format!("the connection to the server broke: {error}"),
        "a run that was started goes on: `weighlock runs`",
    )
}
