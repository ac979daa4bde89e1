//! What is not about one run, and what all handlers share.

use std::sync::Arc;
use std::time::Duration;

use aide::OperationInput;
use aide::transform::{TransformOperation, TransformResponse};
use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request, State as Shared};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weighlock_api::{BlacklistView, Checks, Health, Listed, NewBlacklist, TriedBlacklist};
use weighlock_engine::{Blacklist, Engine, Preset, Principal};

use crate::output::blocking;
use crate::problem::Problem;

pub(crate) async fn health(
    Shared(engine): Shared<Arc<Engine>>,
    Who(principal): Who,
) -> Json<Health> {
    Json(engine.doctor().health(&principal))
}

pub(crate) fn health_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getHealth").summary("Check that the server answers")
}

pub(crate) async fn checks(
    Shared(engine): Shared<Arc<Engine>>,
    Who(principal): Who,
) -> Result<Json<Checks>, Problem> {
    Ok(Json(engine.doctor().checks(&principal).await?))
}

pub(crate) fn checks_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getChecks")
        .summary("Check this machine and the server by trying each feature")
        .description(
            "The same as `weighlock doctor`. Tries each kernel feature that isolation uses, and \
             runs `true` once.",
        )
}

pub(crate) async fn blacklist(
    Shared(engine): Shared<Arc<Engine>>,
    Who(_): Who,
) -> Json<BlacklistView> {
    Json(blacklist_view(&engine))
}

pub(crate) fn blacklist_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getBlacklist").summary("Show the blacklist in force")
}

pub(crate) async fn save_blacklist(
    Shared(engine): Shared<Arc<Engine>>,
    Who(principal): Who,
    Body(new): Body<NewBlacklist>,
) -> Result<Json<BlacklistView>, Problem> {
    let list = read_blacklist(new.entries)?;
    engine.rules().save_blacklist(&list, &principal).await?;
    Ok(Json(blacklist_view(&engine)))
}

pub(crate) fn save_blacklist_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("saveBlacklist")
        .summary("Save a blacklist to .agents/terminal.json")
}

pub(crate) async fn reset_blacklist(
    Shared(engine): Shared<Arc<Engine>>,
    Who(principal): Who,
) -> Result<Json<BlacklistView>, Problem> {
    engine.rules().reset_blacklist(&principal).await?;
    Ok(Json(blacklist_view(&engine)))
}

pub(crate) fn reset_blacklist_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("resetBlacklist")
        .summary("Go back to the built-in blacklist: removes .agents/terminal.json")
}

pub(crate) async fn listed(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Body(new): Body<TriedBlacklist>,
) -> Result<Json<Listed>, Problem> {
    let list = match new.entries {
        Some(entries) => read_blacklist(entries)?,
        None => engine.rules().blacklist().list,
    };
    blocking(move || Ok(Json(engine.rules().try_blacklist(&list, &who)?))).await
}

pub(crate) fn listed_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("compareBlacklist")
        .summary("List the commands of the last 7 days that a blacklist matches")
        .description(
            "Checks the blacklist in force, or another one before it is saved. Changes nothing.",
        )
}

fn read_blacklist(entries: Vec<String>) -> Result<Blacklist, Problem> {
    let text = serde_json::json!({ "commandBlacklist": entries }).to_string();
    Blacklist::from_json(&text).map_err(|error| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid_blacklist",
            format!("{error}; the list was not changed"),
            "leave the empty entry out",
        )
    })
}

fn blacklist_view(engine: &Engine) -> BlacklistView {
    let file = engine.rules().blacklist();
    BlacklistView {
        entries: file.list.entries().to_vec(),
        defaults: Blacklist::default().entries().to_vec(),
        path: file.path.to_string_lossy().into_owned(),
        in_force: file.from_file || engine.config().presets.contains(&Preset::Blacklist),
        from_file: file.from_file,
        warning: file.warning,
    }
}

/// How long a JSON body may take to come in. The largest needs 140 kB a second,
/// and a client that sends byte by byte does not keep a request for ever.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// A JSON body whose faults are problem documents.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        read_body(request, state, BODY_WITHIN).await
    }
}

/// Reads a body that arrives whole within some time.
async fn read_body<T: DeserializeOwned, S: Send + Sync>(
    request: Request,
    state: &S,
    within: Duration,
) -> Result<Body<T>, Problem> {
    let read = Json::from_request(request, state);
    match tokio::time::timeout(within, read).await {
        Ok(Ok(Json(body))) => Ok(Body(body)),
        Ok(Err(rejection)) => Err(refuse_body(&rejection)),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "slow_body",
            "the body did not come in time; nothing was done".into(),
            "send it whole; send later input to `…/stdin`",
        )),
    }
}

impl<T: JsonSchema> OperationInput for Body<T> {
    fn operation_input(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) {
        Json::<T>::operation_input(ctx, operation);
    }
}

fn refuse_body(rejection: &JsonRejection) -> Problem {
    let code = match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => "body_too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "not_json",
        _ => "invalid_body",
    };
    Problem::new(
        rejection.status(),
        code,
        format!("{}; nothing was done", brief(&rejection.body_text())),
        "see /agent/terminal/openapi.json for what this address accepts",
    )
}

/// Returns the beginning of an error, which may repeat the whole body.
fn brief(text: &str) -> String {
    text.chars().take(500).collect()
}

/// A JSON body that may be missing.
pub(crate) struct Optional<T>(pub(crate) T);

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for Optional<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        use axum::body::HttpBody;
        if request.body().is_end_stream() {
            return Ok(Self(T::default()));
        }
        let Body(body) = Body::from_request(request, state).await?;
        Ok(Self(body))
    }
}

impl<T: JsonSchema> OperationInput for Optional<T> {
    fn operation_input(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) {
        Json::<T>::operation_input(ctx, operation);
        if let Some(aide::openapi::ReferenceOr::Item(body)) = &mut operation.request_body {
            body.required = false;
        }
    }
}

/// Describes an answer that is not JSON.
pub(crate) fn of_kinds<'t>(
    mut res: TransformResponse<'t, String>,
    kinds: &[&str],
) -> TransformResponse<'t, String> {
    let content = &mut res.inner().content;
    if let Some((_, text)) = content.shift_remove_index(0) {
        content.extend(kinds.iter().map(|&kind| (kind.to_owned(), text.clone())));
    }
    res
}

/// Describes headers by the fields of a type.
pub(crate) fn describe_headers<T: JsonSchema>(
    ctx: &mut aide::generate::GenContext,
    operation: &mut aide::openapi::Operation,
) {
    let schema = ctx.schema.subschema_for::<T>();
    let headers = aide::operation::ParamLocation::Header;
    let params = aide::operation::parameters_from_schema(ctx, schema, headers);
    aide::operation::add_parameters(ctx, operation, params);
}

/// Query parameters whose faults are problem documents.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(params)) => Ok(Self(params)),
            Err(rejection) => Err(refuse_query(&rejection)),
        }
    }
}

impl<T: JsonSchema> OperationInput for Params<T> {
    fn operation_input(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) {
        Query::<T>::operation_input(ctx, operation);
    }
}

fn refuse_query(rejection: &QueryRejection) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "invalid_query",
        format!("{}; nothing was done", brief(&rejection.body_text())),
        "see /agent/terminal/openapi.json for what this address accepts",
    )
}

/// Who is at the door.
pub(crate) struct Who(pub(crate) Principal);

impl<S: Send + Sync> FromRequestParts<S> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let found = parts.extensions.get::<Principal>().cloned();
        found.map(Self).ok_or_else(crate::auth::no_token)
    }
}

impl OperationInput for Who {}

/// The id in an address.
pub(crate) struct Id(pub(crate) String);

#[derive(Deserialize, JsonSchema)]
struct IdParam {
    /// An id, or a unique prefix of its short form if it has one.
    #[expect(dead_code, reason = "only describes the address")]
    id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) if !id.is_empty() => Ok(Self(id)),
            _ => Err(no_id()),
        }
    }
}

impl OperationInput for Id {
    fn operation_input(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) {
        Path::<IdParam>::operation_input(ctx, operation);
    }
}

/// Somebody's name and the id of a token of theirs, in an address.
pub(crate) struct TokenId(pub(crate) String, pub(crate) String);

#[derive(Deserialize, JsonSchema)]
struct TokenParam {
    /// The name of a person or an agent.
    id: String,
    /// The id of a token, or its first characters as they are shown.
    token: String,
}

impl<S: Send + Sync> FromRequestParts<S> for TokenId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<TokenParam>::from_request_parts(parts, state).await;
        let Path(TokenParam { id, token }) = path.map_err(|_| no_id())?;
        Ok(Self(id, token))
    }
}

impl OperationInput for TokenId {
    fn operation_input(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) {
        Path::<TokenParam>::operation_input(ctx, operation);
    }
}

pub(crate) fn no_id() -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "invalid_id",
        "the id in the URL is not valid; nothing was done".into(),
        "lists tell the ids there are",
    )
}

/// The version that a change is meant for, if one is named.
pub(crate) struct IfMatch(pub(crate) Option<i64>);

#[derive(Deserialize, JsonSchema)]
struct IfMatchParam {
    /// The `ETag` that you read. If somebody else changed it since, the answer
    /// is 412 and nothing changes.
    #[expect(dead_code, reason = "only describes the header")]
    #[serde(rename = "if-match")]
    if_match: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(header::IF_MATCH) else {
            return Ok(Self(None));
        };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(Self(None));
        }
        // One that is no version of ours matches nothing.
        let version = text.trim_matches('"').parse().unwrap_or(-1);
        Ok(Self(Some(version)))
    }
}

impl OperationInput for IfMatch {
    fn operation_input(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) {
        describe_headers::<IfMatchParam>(ctx, operation);
    }
}

/// An answer with the version that a later change can name.
pub(crate) fn tagged<T: Serialize>(status: StatusCode, version: i64, body: T) -> Response {
    let tag = [(header::ETAG, format!("\"{version}\""))];
    (status, tag, Json(body)).into_response()
}

/// How many things a list has when nothing is asked, and at the most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 500;

/// Returns how many things a page has.
pub(crate) fn page(limit: Option<usize>) -> usize {
    limit.unwrap_or(PAGE).clamp(1, MAX_PAGE)
}

/// Reads a time.
pub(crate) fn when(text: &str) -> Result<i64, Problem> {
    let read = text.parse::<jiff::Timestamp>();
    read.map(jiff::Timestamp::as_microsecond).map_err(|error| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid_time",
            format!("{error}; nothing was done"),
            "write times as 2026-01-15T10:00:00Z",
        )
    })
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};

    use std::io;

    use super::*;

    #[tokio::test]
    async fn a_body_that_dribbles_in_is_given_up() {
        let pieces = stream::iter([Ok::<_, io::Error>("{")]).chain(stream::pending());
        let request = Request::builder()
            .header("content-type", "application/json")
            .body(axum::body::Body::from_stream(pieces))
            .unwrap();
        let refused = read_body::<serde_json::Value, _>(request, &(), Duration::ZERO).await;
        let status = refused.err().unwrap().into_response().status();
        assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
    }
}
