//! The way to the server: over its socket, or from within it.

use std::fmt;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
pub(crate) use weighlock_api::escape;
use weighlock_api::{ApiRequest, ApiResponse, Method, ProblemDocument};

use crate::say::to_agent;

/// Who passes requests on, as one and the same principal.
pub trait Api: Send + Sync + 'static {
    /// Passes one on. An error says why there is no answer, and what to do.
    fn ask(&self, request: ApiRequest) -> BoxFuture<'_, Result<ApiResponse, (String, String)>>;
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
    send(api, ApiRequest::get(path)).await
}

/// Asks for what there is at an address, as it is.
pub(crate) async fn bytes(api: &dyn Api, path: String) -> Result<Vec<u8>, Failure> {
    checked(pass(api, ApiRequest::get(path)).await?)
}

/// Has something done.
pub(crate) async fn post<T: DeserializeOwned>(
    api: &dyn Api,
    path: String,
    body: &impl Serialize,
) -> Result<T, Failure> {
    send(api, ApiRequest::post(path, body)).await
}

/// Has something done once, however often it has to be asked for.
pub(crate) async fn post_once<T: DeserializeOwned>(
    api: &dyn Api,
    path: String,
    body: &impl Serialize,
) -> Result<T, Failure> {
    send(api, ApiRequest::post(path, body).with_key(random())).await
}

/// Has something taken away.
pub(crate) async fn delete(api: &dyn Api, path: String) -> Result<(), Failure> {
    checked(pass(api, ApiRequest::new(Method::Delete, path)).await?).map(drop)
}

/// Sends a request, and reads its answer.
pub(crate) async fn send<T: DeserializeOwned>(
    api: &dyn Api,
    request: ApiRequest,
) -> Result<T, Failure> {
    parse(pass(api, request).await?)
}

/// An address is not longer than this: what makes it so is no id or pattern.
const LONGEST: usize = 32 * 1024;

async fn pass(api: &dyn Api, request: ApiRequest) -> Result<ApiResponse, Failure> {
    if request.path.len() > LONGEST {
        return Err(Failure::new(
            "invalid_arguments",
            "an id, a name or a pattern is too long; nothing was done",
            "Give a shorter one.",
        ));
    }
    let answer = api.ask(request).await;
    answer.map_err(|(what, hint)| Failure::new("server_unreachable", what, hint))
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

fn checked(answer: ApiResponse) -> Result<Vec<u8>, Failure> {
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
