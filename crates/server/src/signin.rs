//! Signing in with a browser: a link that is used once, or a token; then a cookie.

use std::sync::Arc;
use std::time::Instant;

use aide::transform::TransformOperation;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use weighlock_api::{LinkView, Me, SignIn};
use weighlock_engine::Engine;

use crate::auth::{COOKIE, Gate, cookie, is_loopback};
use crate::people::about;
use crate::problem::Problem;
use crate::system::{Body, Who};

pub(crate) async fn link(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
) -> Result<Json<LinkView>, Problem> {
    let secret = engine.people().sign_in_link(&who).await?;
    Ok(Json(LinkView {
        link: format!("/signin#{secret}"),
        expires_in_seconds: 600,
    }))
}

pub(crate) fn link_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("createSignInLink")
        .summary("Create a one-time link that signs the caller in with a browser")
}

pub(crate) async fn enter(
    Shared(engine): Shared<Arc<Engine>>,
    Extension(gate): Extension<Arc<Gate>>,
    headers: HeaderMap,
    Body(asked): Body<SignIn>,
) -> Result<Response, Problem> {
    let tried = match asked {
        SignIn::Link { code } => engine.people().sign_in(&code).await,
        SignIn::Token { token } => engine.people().sign_in_with_token(token.trim()).await,
    };
    let (secret, seconds) = match tried {
        Ok(signed_in) => signed_in,
        Err(error) => {
            let told = gate.limits.guesses.failed(Instant::now()).await;
            return Err(match told {
                Ok(()) => error.into(),
                Err(after) => Problem::too_many("too many failed sign-ins in a short time", after),
            });
        }
    };
    let who = engine
        .people()
        .find_signed_in(&secret)?
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
        .summary("Sign in: exchange a link or a person's token for a cookie")
        .response::<200, Json<Me>>()
}

pub(crate) async fn leave(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(cookie) = cookie(&headers) {
        engine.people().sign_out(cookie, &who).await?;
    }
    let gone = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, gone)]).into_response())
}

pub(crate) fn leave_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("signOut")
        .summary("Sign out")
        .response_with::<204, (), _>(|res| res.description("Signed out"))
}
