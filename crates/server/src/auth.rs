//! Who is at the door.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use aide::OperationInput;
use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::net::UnixStream;
use weighlock_engine::{Engine, NoPlace, Place, Principal, Process, Shares};

use crate::access::{Access, AccessTable};
use crate::lobby::CountedConnection;
use crate::problem::Problem;
use crate::rate::TcpLimits;

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// Over the Unix socket; the kernel vouches for the user.
    User {
        /// The user.
        uid: u32,
        /// The process that connected, if it could be seen from here then.
        process: Option<Process>,
    },
    /// Over the Unix socket, from nobody the kernel can name.
    Unknown,
    /// Over TCP; a token must say who it is.
    Tcp,
}

impl Peer {
    /// Asks the kernel who is at the other end.
    pub(crate) fn of(stream: &UnixStream) -> Self {
        stream.peer_cred().map_or(Self::Unknown, |peer| {
            let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
            Self::User {
                uid: peer.uid(),
                // The kernel says 0 for one in a namespace beside ours.
                process: pid.filter(|&pid| pid != 0).and_then(Process::now),
            }
        })
    }
}

/// What it takes to let somebody in.
pub(crate) struct Gate {
    pub(crate) engine: Arc<Engine>,
    pub(crate) limits: TcpLimits,
    /// Places for those who watch terminals.
    pub(crate) viewers: Arc<Shares>,
    pub(crate) access: AccessTable,
    /// Names, beside this machine's own, by which a proxy reaches us.
    pub(crate) hosts: Vec<String>,
}

/// Lets only those in who say who they are, and tells the handlers who it is.
pub(crate) async fn identify(
    State(gate): State<Arc<Gate>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let (mut head, body) = request.into_parts();
    let access = gate.access.find(&head);
    let found = gate.recognise(peer, &head.method, &head.headers).await;
    let found = match peer {
        Peer::Tcp => {
            let tried = head.headers.contains_key(header::AUTHORIZATION);
            hold_back(&gate.limits, tried, found).await
        }
        Peer::User { .. } | Peer::Unknown => found.map_err(Problem::into_response),
    };
    let principal = match found {
        Ok(principal) => principal,
        // Signing in is how to become somebody.
        Err(_) if access == Access::Anyone && gate.is_named(peer, &head) => {
            return next.run(Request::from_parts(head, body)).await;
        }
        Err(refusal) => return refusal,
    };
    if let Err(problem) = counted(&head, &principal) {
        return send_away(problem);
    }
    if access.is_outside_only(&head.method, principal.role())
        && let Err(inside) = outside_of_runs(&gate.engine, peer, &principal, &head).await
    {
        return inside.into_response();
    }
    head.extensions.insert(principal);
    head.extensions.insert(peer);
    next.run(Request::from_parts(head, body)).await
}

/// Counts a connection for who has come in by it. Past their share they are
/// sent away.
fn counted(head: &Parts, who: &Principal) -> Result<(), Problem> {
    let visit = head.extensions.get::<Arc<CountedConnection>>();
    visit
        .map_or(Ok(()), |visit| visit.is_of(who))
        .map_err(|no| {
            Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_connections",
                format!("{no}; nothing was done"),
                "close some of yours: each stream and each waiting request uses one",
            )
        })
}

impl Gate {
    async fn recognise(
        &self,
        peer: Peer,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Principal, Problem> {
        match peer {
            // Whoever shows a token is who it says, wherever they come from.
            Peer::User { .. } if headers.contains_key(header::AUTHORIZATION) => {
                self.bearer(headers).await
            }
            Peer::User { uid, process } => {
                let pid = process.map(Process::pid);
                self.engine
                    .people()
                    .find_user(uid, pid)?
                    .ok_or_else(stranger)
            }
            Peer::Unknown => Err(stranger()),
            Peer::Tcp => {
                own_host(headers, &self.hosts)?;
                match cookie(headers) {
                    Some(cookie) if !headers.contains_key(header::AUTHORIZATION) => {
                        not_forged(method, headers)?;
                        self.engine
                            .people()
                            .find_signed_in(cookie)?
                            .ok_or_else(no_token)
                    }
                    _ => self.bearer(headers).await,
                }
            }
        }
    }

    /// Returns whether the request names one of our hosts, or comes over the
    /// socket.
    fn is_named(&self, peer: Peer, head: &Parts) -> bool {
        peer != Peer::Tcp || own_host(&head.headers, &self.hosts).is_ok()
    }

    async fn bearer(&self, headers: &HeaderMap) -> Result<Principal, Problem> {
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let owner = match token {
            Some(token) => self.engine.people().find_bearer(token).await?,
            None => None,
        };
        owner.ok_or_else(no_token)
    }
}

/// The receiver of a long answer, with the credentials of the request.
pub(crate) struct Guest {
    pub(crate) who: Principal,
    gate: Arc<Gate>,
    peer: Peer,
    headers: HeaderMap,
    /// Keeps the connection counted, when it is a WebSocket too.
    _visit: Option<Arc<CountedConnection>>,
}

impl Guest {
    /// Takes one of the places of those who watch.
    pub(crate) fn viewing(&self) -> Result<Place, NoPlace> {
        self.gate.viewers.take(&self.who)
    }

    /// Returns whether they would still be let in, and as the same.
    pub(crate) async fn is_welcome(&self) -> bool {
        let now = self.gate.recognise(self.peer, &Method::GET, &self.headers);
        now.await.is_ok_and(|now| now == self.who)
    }
}

/// Locks a mutex even after a panic: every critical section leaves whole
/// values.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|lock| lock.into_inner())
}

impl<S: Send + Sync> FromRequestParts<S> for Guest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let known = &parts.extensions;
        let (who, gate, peer) = (known.get::<Principal>(), known.get(), known.get());
        Ok(Self {
            who: who.cloned().ok_or_else(no_token)?,
            gate: { gate.cloned() }.ok_or_else(no_token)?,
            peer: { peer.copied() }.ok_or_else(no_token)?,
            headers: parts.headers.clone(),
            _visit: known.get().cloned(),
        })
    }
}

impl OperationInput for Guest {}

/// The cookie that says who has signed in.
pub(crate) const COOKIE: &str = "weighlock_session";

pub(crate) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get(header::COOKIE)?.to_str().ok()?;
    let mut pairs = all
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(name, _)| *name == COOKIE)
        .map(|(_, value)| value)
}

/// A browser sends its cookie along with whatever page asks; a header of our
/// own is only sent by our pages.
fn not_forged(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let reads = matches!(method.as_str(), "GET" | "HEAD");
    match reads || headers.contains_key("x-weighlock") {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "forged",
            "a changing request with a cookie needs the header X-Weighlock; nothing was done"
                .into(),
            "send `X-Weighlock: 1`",
        )),
    }
}

/// What is run decides nothing: not even with its owner's name.
async fn outside_of_runs(
    engine: &Engine,
    peer: Peer,
    principal: &Principal,
    head: &Parts,
) -> Result<(), Problem> {
    let Peer::User { process, .. } = peer else {
        return Ok(());
    };
    if !engine.may_be_inside(process) {
        return Ok(());
    }
    let what = format!("{} {}", head.method, head.uri.path());
    Err(engine.refuse_inside(&what, principal).await.into())
}

/// Limits requests over TCP: the rate of a known principal, and after too many
/// wrong tokens the time until the answer.
async fn hold_back(
    limits: &TcpLimits,
    tried: bool,
    found: Result<Principal, Problem>,
) -> Result<Principal, Response> {
    let problem = match found {
        Ok(principal) => {
            let taken = limits.rate.take(principal.name(), Instant::now());
            let too_many = |after| Problem::too_many("too many requests in a short time", after);
            return taken
                .map(|()| principal)
                .map_err(|after| too_many(after).into_response());
        }
        Err(problem) => problem,
    };
    // Without a token nothing was guessed.
    let told = match tried && problem.is_unauthorized() {
        true => limits.guesses.failed(Instant::now()).await,
        false => Ok(()),
    };
    let problem = match told {
        Ok(()) => problem,
        Err(after) => Problem::too_many("too many wrong tokens in a short time", after),
    };
    Err(send_away(problem))
}

/// A stranger keeps no connection: a wrong request now and then would be
/// enough to keep it for ever, and there are only so many.
fn send_away(problem: Problem) -> Response {
    let mut response = problem.into_response();
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

fn stranger() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "not_yours",
        "this server does not know you; nothing was done".into(),
        "start a server of your own (`weighlock serve`), or let its owner add you: \
         `weighlock people add NAME --uid N`",
    )
}

pub(crate) fn no_token() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "no_token",
        "no valid token was given; nothing was done".into(),
        "send `Authorization: Bearer TOKEN`, or set WEIGHLOCK_TOKEN for the command line; \
         `weighlock people token NAME` makes one",
    )
}

/// A page elsewhere may make a browser connect to this machine under another
/// name, or post across sites; neither speaks for anyone here.
fn own_host(headers: &HeaderMap, hosts: &[String]) -> Result<(), Problem> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let ours = |host: &str| is_loopback(host) || hosts.iter().any(|name| name == host);
    let host_ok = text(header::HOST).is_none_or(ours);
    let origin_ok = text(header::ORIGIN).is_none_or(|origin| {
        let host = origin
            .strip_prefix("http://")
            .or(origin.strip_prefix("https://"));
        host.is_some_and(|host| Some(host) == text(header::HOST))
    });
    let once = |name| headers.get_all(name).iter().count() <= 1;
    if host_ok && origin_ok && once(header::HOST) && once(header::ORIGIN) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "foreign_origin",
        "the request names a foreign host or origin; nothing was done".into(),
        "use http://127.0.0.1 or http://localhost",
    ))
}

pub(crate) fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt;

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

    #[tokio::test]
    async fn who_asks_too_often_is_told_when_to_come_back() {
        let (limits, who) = (TcpLimits::default(), Principal::library("agent"));
        let ask = || hold_back(&limits, true, Ok(who.clone()));
        assert_eq!(ask().await.ok(), Some(who.clone()));
        // Emptied in the future, so that no time that passes here fills it.
        let later = Instant::now() + Duration::from_secs(60);
        while limits.rate.take(who.name(), later).is_ok() {}
        let refusal = ask().await.err().unwrap();
        assert_eq!(refusal.status(), StatusCode::TOO_MANY_REQUESTS);
        let headers = refusal.headers();
        let after = headers[header::RETRY_AFTER].to_str().unwrap();
        assert!((60..64).contains(&after.parse::<i32>().unwrap()), "{after}");
        assert_eq!(headers[header::CONTENT_TYPE], "application/problem+json");
        assert!(
            !headers.contains_key(header::CONNECTION),
            "it is no stranger"
        );
    }

    #[tokio::test]
    async fn only_those_who_guess_are_slowed_down() {
        let limits = TcpLimits::default();
        // As many refusals as come without any wait, of ten.
        let at_once = |tried: bool, problem: fn() -> Problem| {
            let refusals = (0..10).map(|_| hold_back(&limits, tried, Err(problem())));
            let refusals = refusals.filter_map(FutureExt::now_or_never);
            let closing = refusals
                .map(|refusal| refusal.expect_err("it is refused"))
                .inspect(|refusal| assert_eq!(refusal.headers()[header::CONNECTION], "close"));
            closing.count()
        };
        assert_eq!(at_once(false, no_token), 10);
        assert_eq!(at_once(true, stranger), 10);
        assert_eq!(at_once(true, no_token), 5);
    }

    #[test]
    fn a_foreign_origin_is_refused() {
        let check = |host: &'static str, origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            own_host(&headers, &[]).is_ok()
        };
        assert!(check("localhost:7777", None));
        assert!(check("localhost:7777", Some("http://localhost:7777")));
        assert!(!check("localhost:7777", Some("http://localhost:8888")));
        assert!(!check("localhost:7777", Some("https://evil.test")));
        assert!(!check("localhost:7777", Some("null")));
        assert!(!check("evil.test", Some("http://evil.test")));
    }
}
