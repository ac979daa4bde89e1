//! A request that cannot begin yet, as it is kept until it can.

use serde::{Deserialize, Serialize};
use weighlock_exec::Shell;
use weighlock_walls::Review;

use super::{Case, Cases};
use crate::error::Error;
use crate::principal::{Principal, Role, Via};
use crate::request::{Input, Request, Terminal};

/// Everything that running it takes. It may hold secrets, and is removed from
/// the store as soon as it is settled.
#[derive(Serialize, Deserialize)]
pub(crate) struct PendingRequest {
    who: String,
    /// The store knew them; otherwise they were vouched for by the library.
    known: bool,
    command: String,
    description: Option<String>,
    session: Option<String>,
    sandbox: String,
    cwd: Option<String>,
    env: Vec<(String, String)>,
    agent: Option<String>,
    shell: Option<Shell>,
    input: Bytes,
    timeout_ms: Option<i64>,
    idle_ms: Option<i64>,
    background: bool,
    keep: bool,
    external: bool,
    #[serde(default)]
    in_terminal: Option<String>,
    #[serde(default)]
    writes_directly: bool,
    #[serde(default)]
    shell_dir: Option<String>,
    #[serde(default)]
    review: Option<Review>,
    #[serde(default)]
    preview: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Bytes {
    None,
    Open,
    Text(String),
    Raw(Vec<u8>),
    Terminal(Terminal),
}

impl PendingRequest {
    pub(crate) fn from(case: &Case) -> Self {
        let request = &case.request;
        Self {
            who: request.principal.name().to_owned(),
            known: !matches!(request.principal.via(), Via::Library) && !case.by_root(),
            command: request.command.clone(),
            description: request.description.clone(),
            session: Some(case.session.clone()),
            sandbox: case.known.sandbox.id.clone(),
            cwd: Some(case.place.path.to_string_lossy().into_owned()),
            env: request.env.clone(),
            agent: request.agent.clone(),
            shell: request.shell,
            input: match &request.input {
                Input::None => Bytes::None,
                Input::Open => Bytes::Open,
                Input::Terminal(terminal) => Bytes::Terminal(terminal.clone()),
                Input::Text(bytes) => match String::from_utf8(bytes.clone()) {
                    Ok(text) => Bytes::Text(text),
                    Err(error) => Bytes::Raw(error.into_bytes()),
                },
            },
            timeout_ms: request.timeout_ms,
            idle_ms: request.idle_ms,
            background: request.background,
            keep: request.keep,
            external: request.external,
            in_terminal: request.in_terminal.clone(),
            writes_directly: request.writes_directly,
            shell_dir: request.shell_dir.clone(),
            review: request.review,
            preview: request.preview,
        }
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a request is plain data")
    }
}

impl Cases {
    /// Returns a request as it was kept, from somebody who may still ask.
    pub(crate) fn revive(&self, kept: &str) -> Result<Request, Error> {
        let kept: PendingRequest = serde_json::from_str(kept).map_err(|error| {
            Error::invalid(
                "lost_request",
                format!("the request cannot be read: {error}"),
                "",
            )
        })?;
        let principal = match kept.known {
            false => Principal::library(kept.who.clone()),
            true => {
                let row = self.core.store.principals().named(&kept.who)?;
                let who = row.and_then(|row| Principal::from_row(&row, Via::Record));
                who.filter(|who| who.role() != Role::Viewer)
                    .ok_or(Error::NoSuchPerson { name: kept.who })?
            }
        };
        Ok(Request {
            command: kept.command,
            description: kept.description,
            session: kept.session,
            sandbox: Some(kept.sandbox),
            cwd: kept.cwd,
            env: kept.env,
            agent: kept.agent,
            shell: kept.shell,
            input: match kept.input {
                Bytes::None => Input::None,
                Bytes::Open => Input::Open,
                Bytes::Text(text) => Input::Text(text.into_bytes()),
                Bytes::Raw(bytes) => Input::Text(bytes),
                Bytes::Terminal(terminal) => Input::Terminal(terminal),
            },
            timeout_ms: kept.timeout_ms,
            idle_ms: kept.idle_ms,
            background: kept.background,
            keep: kept.keep,
            external: kept.external,
            in_terminal: kept.in_terminal,
            writes_directly: kept.writes_directly,
            shell_dir: kept.shell_dir,
            review: kept.review,
            preview: kept.preview,
            ..Request::new(principal, "")
        })
    }
}
