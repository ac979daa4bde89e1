//! Signing in with a browser: a link that is used once, then a cookie.

use std::sync::Arc;
use std::time::Instant;

use aide::transform::TransformOperation;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::Engine;

use crate::auth::{COOKIE, Gate, cookie, is_loopback};
use crate::people::{Me, about};
use crate::problem::Problem;
use crate::system::{Body, Who};

/// A link that signs somebody in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkView {
    /// To be put behind the server's address: `/signin#…`.
    pub link: String,
    /// How long it can be used, once.
    pub expires_in_seconds: u64,
}

/// The secret of a link.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    /// What stands behind the `#`.
    code: String,
}

/// The page that a link leads to. It reads the secret out of the address's
/// fragment, which no server and no log ever sees.
const PAGE: &str = "<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>Sign in — weighlock</title>
<script src=\"/signin.js\" defer></script>
<h1>weighlock</h1>
<p id=\"said\" role=\"status\">Signing in…</p>
<noscript><p>This page needs JavaScript to read the link.</p></noscript>
</html>
";

const SCRIPT: &str = "const said = document.getElementById('said');
const code = location.hash.slice(1);
history.replaceState(null, '', location.pathname);
if (!code) {
  said.textContent = 'There is no link in this address. `weighlock signin` makes one.';
} else {
  fetch('/agent/terminal/signin', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Weighlock': '1' },
    body: JSON.stringify({ code }),
  }).then(async (answer) => {
    const told = await answer.json();
    said.textContent = answer.ok
      ? `You are signed in as ${told.principal_id} (${told.role}).`
      : `${told.detail}. ${told.hint}.`;
  }, () => {
    said.textContent = 'The server cannot be reached.';
  });
}
";

/// Nothing but what is our own, and nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn page() -> Response {
    ours("text/html; charset=utf-8", PAGE)
}

pub(crate) async fn script() -> Response {
    ours("text/javascript; charset=utf-8", SCRIPT)
}

fn ours(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, text).into_response()
}

pub(crate) async fn link(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Json<LinkView>, Problem> {
    let secret = engine.sign_in_link(&who).await?;
    Ok(Json(LinkView {
        link: format!("/signin#{secret}"),
        expires_in_seconds: 600,
    }))
}

pub(crate) fn link_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("createSignInLink")
        .summary("Make a link that signs the caller in with a browser, once")
}

pub(crate) async fn enter(
    Shared(engine): Shared<Arc<Engine>>,
    Extension(gate): Extension<Arc<Gate>>,
    headers: HeaderMap,
    Body(asked): Body<SignIn>,
) -> Result<Response, Problem> {
    let (secret, seconds) = match engine.sign_in(&asked.code).await {
        Ok(signed_in) => signed_in,
        Err(error) => {
            let told = gate.limits.guesses.failed(Instant::now()).await;
            return Err(match told {
                Ok(()) => error.into(),
                Err(after) => Problem::too_many("too many wrong links in a short time", after),
            });
        }
    };
    let who = engine
        .signed_in(&secret)?
        .ok_or_else(crate::auth::no_token)?;
    let me: Me = about(&engine, &who)?;
    // Behind a proxy there is TLS; a browser sends it nowhere else then.
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let secure = if host.is_none_or(is_loopback) {
        ""
    } else {
        "; Secure"
    };
    let set =
        format!("{COOKIE}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    let mut response = Json(me).into_response();
    if let Ok(set) = HeaderValue::from_str(&set) {
        response.headers_mut().insert(header::SET_COOKIE, set);
    }
    Ok(response)
}

pub(crate) fn enter_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("signIn")
        .summary("Use a link up, for a cookie")
        .response::<200, Json<Me>>()
}

pub(crate) async fn leave(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(cookie) = cookie(&headers) {
        engine.sign_out(cookie, &who).await?;
    }
    let gone = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, gone)]).into_response())
}

pub(crate) fn leave_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("signOut")
        .summary("End what the cookie stands for")
        .response_with::<204, (), _>(|res| res.description("Signed out"))
}
