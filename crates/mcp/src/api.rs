//! The way to the server: over its socket, or from within it.

use std::fmt;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use weighlock_server::ProblemDocument;
pub(crate) use weighlock_server::escape;

use crate::say::to_agent;

/// One request to the server's REST door.
#[derive(Debug, Clone)]
pub struct Ask {
    /// What is done.
    pub method: Method,
    /// Below the address that everything is below, with its query.
    pub path: String,
    /// JSON, or nothing.
    pub body: Bytes,
    /// Made twice, it is done once.
    pub key: Option<String>,
}

impl Ask {
    /// Whether it may be made again if nobody knows whether it was done.
    pub fn is_repeatable(&self) -> bool {
        self.method == Method::GET || self.key.is_some() || self.path == "/wait"
    }

    /// Whether it is for somebody without whom a run does not go on.
    pub(crate) fn is_attended(&self) -> bool {
        self.path.ends_with("&attend=true")
    }

    /// Whether the answer may take as long as somebody is willing to wait.
    pub(crate) fn is_patient(&self) -> bool {
        self.path == "/wait" || self.path.contains("wait_ms=")
    }
}

/// The server's answer.
#[derive(Debug, Clone)]
pub struct ApiResponse {
    /// As HTTP counts.
    pub status: u16,
    /// JSON, or nothing.
    pub body: Bytes,
}

/// Who passes requests on, as one and the same principal.
pub trait Api: Send + Sync + 'static {
    /// Passes one on. An error says why there is no answer, and what to do.
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<ApiResponse, (String, String)>>;
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Stable word.
    pub(crate) code: String,
    /// What failed.
    pub(crate) what: String,
    /// What to do.
    pub(crate) hint: String,
}

impl Failure {
    pub(crate) fn new(code: &str, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            what: what.into(),
            hint: hint.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} ({})", self.what, self.code)?;
        match self.hint.is_empty() {
            true => Ok(()),
            false => write!(to, "\n{}", self.hint),
        }
    }
}

/// Asks for what there is at an address.
pub(crate) async fn get<T: DeserializeOwned>(api: &dyn Api, path: String) -> Result<T, Failure> {
    parse(send(api, Method::GET, path, Bytes::new(), None).await?)
}

/// Asks for what there is at an address, as it is.
pub(crate) async fn bytes(api: &dyn Api, path: String) -> Result<Bytes, Failure> {
    checked(send(api, Method::GET, path, Bytes::new(), None).await?)
}

/// Has something done.
pub(crate) async fn post<T: DeserializeOwned>(
    api: &dyn Api,
    path: String,
    body: &impl Serialize,
) -> Result<T, Failure> {
    parse(send(api, Method::POST, path, json(body), None).await?)
}

/// Has something done once, however often it has to be asked for.
pub(crate) async fn post_once<T: DeserializeOwned>(
    api: &dyn Api,
    path: String,
    body: &impl Serialize,
) -> Result<T, Failure> {
    parse(send(api, Method::POST, path, json(body), Some(random())).await?)
}

/// Has something taken away.
pub(crate) async fn delete(api: &dyn Api, path: String) -> Result<(), Failure> {
    checked(send(api, Method::DELETE, path, Bytes::new(), None).await?).map(drop)
}

/// An address is not longer than this: what makes it so is no id or pattern.
const LONGEST: usize = 32 * 1024;

async fn send(
    api: &dyn Api,
    method: Method,
    path: String,
    body: Bytes,
    key: Option<String>,
) -> Result<ApiResponse, Failure> {
    if path.len() > LONGEST {
        return Err(Failure::new(
            "invalid_arguments",
            "an id, a name or a pattern is too long; nothing was done",
            "Give a shorter one.",
        ));
    }
    let ask = Ask {
        method,
        path,
        body,
        key,
    };
    let answer = api.ask(ask).await;
    answer.map_err(|(what, hint)| Failure::new("server_unreachable", what, hint))
}

fn json(body: &impl Serialize) -> Bytes {
    serde_json::to_vec(body)
        .expect("requests are always JSON")
        .into()
}

fn parse<T: DeserializeOwned>(answer: ApiResponse) -> Result<T, Failure> {
    let body = checked(answer)?;
    let body: &[u8] = if body.is_empty() { b"null" } else { &body };
    serde_json::from_slice(body).map_err(|error| {
        Failure::new(
            "server_not_understood",
            format!("cannot read the server's answer: {error}"),
            "Restart the server if it is of another version.",
        )
    })
}

fn checked(answer: ApiResponse) -> Result<Bytes, Failure> {
    if (200..300).contains(&answer.status) {
        return Ok(answer.body);
    }
    Err(
        match serde_json::from_slice::<ProblemDocument>(&answer.body) {
            Ok(problem) => {
                let hint = match problem.code.as_str() {
                    "no_such_run" | "not_found" => "Give the id of an earlier answer.".into(),
                    "run_ended" => "See how it ended.".into(),
                    _ => to_agent(&problem.hint),
                };
                Failure::new(&problem.code, problem.detail, hint)
            }
            Err(_) => Failure::new(
                "server_failed",
                format!("the server answered {}", answer.status),
                "",
            ),
        },
    )
}

/// Returns the beginning of a foreign text, which may be megabytes long.
pub(crate) fn brief(text: &str) -> String {
    let mut brief: String = text.chars().take(100).collect();
    if brief.len() < text.len() {
        brief.push('…');
    }
    brief
}

/// A name that nobody else has.
pub(crate) fn random() -> String {
    let bytes = random_bytes::<16>();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes that nobody can guess.
pub(crate) fn random_bytes<const COUNT: usize>() -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes).expect("the kernel has randomness");
    bytes
}
