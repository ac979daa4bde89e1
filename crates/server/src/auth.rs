//! Who is at the door.

use std::sync::Arc;

use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::serve::IncomingStream;
use tokio::net::UnixListener;
use weighlock_engine::{Engine, Principal};

use crate::listen::Tcp;
use crate::problem::Problem;

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Over the Unix socket; the kernel vouches for the user.
    User(u32),
    /// Over the Unix socket, from nobody the kernel can name.
    Unknown,
    /// Over TCP; a token must say who it is.
    Tcp,
}

impl Peer {
    /// Whoever has a token may be an agent, and agents never decide.
    pub(crate) fn may_decide(self) -> Result<(), Problem> {
        match self {
            Self::User(_) => Ok(()),
            Self::Unknown | Self::Tcp => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "not_for_tokens",
                "only a person on this machine may decide that; nothing was done".into(),
                "use `weighlock` on the machine itself, which comes over the Unix socket",
            )),
        }
    }
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        stream
            .io()
            .peer_cred()
            .map_or(Self::Unknown, |peer| Self::User(peer.uid()))
    }
}

impl Connected<IncomingStream<'_, Tcp>> for Peer {
    fn connect_info(_: IncomingStream<'_, Tcp>) -> Self {
        Self::Tcp
    }
}

/// Lets only those in who say who they are, and tells the handlers who it is.
pub(crate) async fn identify(
    State(engine): State<Arc<Engine>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let principal = match peer {
        Peer::User(uid) => local(uid),
        Peer::Unknown => Err(stranger()),
        Peer::Tcp => own_host(request.headers()).and_then(|()| bearer(&engine, request.headers())),
    };
    match principal {
        Ok(principal) => {
            request.extensions_mut().insert(principal);
            request.extensions_mut().insert(peer);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// The owner and root come in; others have their own servers.
fn local(uid: u32) -> Result<Principal, Problem> {
    let owner = rustix::process::geteuid().as_raw();
    if uid == owner || uid == 0 {
        Ok(Principal::user(uid))
    } else {
        Err(stranger())
    }
}

fn stranger() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "not_yours",
        "this server belongs to another user; nothing was done".into(),
        "start a server of your own: `weighlock serve`",
    )
}

fn bearer(engine: &Engine, headers: &HeaderMap) -> Result<Principal, Problem> {
    let token = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let owner = match token {
        Some(token) => engine.token_owner(token)?,
        None => None,
    };
    owner.ok_or_else(|| {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "no_token",
            "no valid token was given; nothing was done".into(),
            "send `Authorization: Bearer TOKEN`; `weighlock serve --new-token` makes one",
        )
    })
}

/// A page elsewhere may make a browser connect to this machine under another
/// name, or post across sites; neither speaks for anyone here.
fn own_host(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let host_ok = text(header::HOST).is_none_or(is_loopback);
    let origin_ok = text(header::ORIGIN).is_none_or(|origin| {
        origin
            .strip_prefix("http://")
            .is_some_and(|origin| Some(origin) == text(header::HOST))
    });
    if host_ok && origin_ok {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "foreign_origin",
        "the request names a foreign host or origin; nothing was done".into(),
        "use http://127.0.0.1 or http://localhost",
    ))
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_ours() {
        for host in [
            "localhost",
            "localhost:7777",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:80",
        ] {
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.test",
            "127.0.0.1.evil.test",
            "localhost.evil:80",
            "1.2.3.4",
            "::2",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_foreign_origin_is_refused() {
        let check = |host: &'static str, origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            own_host(&headers).is_ok()
        };
        assert!(check("localhost:7777", None));
        assert!(check("localhost:7777", Some("http://localhost:7777")));
        assert!(!check("localhost:7777", Some("http://localhost:8888")));
        assert!(!check("localhost:7777", Some("https://evil.test")));
        assert!(!check("localhost:7777", Some("null")));
        assert!(!check("evil.test", Some("http://evil.test")));
    }
}
