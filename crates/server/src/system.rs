//! What is not about one run, and what all handlers share.

use std::io::{self, BufWriter};
use std::sync::Arc;

use aide::OperationInput;
use aide::transform::TransformOperation;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request, State as Shared};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weighlock_engine::{Blacklist, Checks, Engine, Health, Preset, Principal, Verified};

use crate::output::blocking;
use crate::problem::{Problem, ProblemDocument};

/// The blacklist in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlacklistView {
    /// Texts that no command may contain.
    #[serde(rename = "commandBlacklist")]
    pub entries: Vec<String>,
    /// The file that holds it, or would.
    #[serde(default)]
    pub path: String,
    /// The file is there and is what counts.
    #[serde(default)]
    pub from_file: bool,
    /// Commands are judged by it: a list of one's own always counts, the
    /// built-in one only with preset `blacklist`.
    #[serde(default)]
    pub in_force: bool,
    /// Why the file is not used, if it is there.
    #[serde(default)]
    pub warning: Option<String>,
}

/// A new blacklist.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewBlacklist {
    /// Texts that no command may contain.
    #[serde(rename = "commandBlacklist")]
    entries: Vec<String>,
}

/// What a verification of the audit found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct VerifiedView {
    /// Entries that are right, counted from the first.
    entries: u64,
    /// The hash of the last of them.
    head: String,
    /// The first entry that is wrong, and how.
    fault: Option<FaultView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct FaultView {
    seq: u64,
    what: String,
}

/// The audit entries of one run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entries {
    /// Oldest first.
    entries: Vec<serde_json::Value>,
}

pub(crate) async fn health(Shared(engine): Shared<Arc<Engine>>) -> Json<Health> {
    Json(engine.health())
}

pub(crate) fn health_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getHealth").summary("Whether the server serves")
}

pub(crate) async fn checks(Shared(engine): Shared<Arc<Engine>>) -> Json<Checks> {
    Json(engine.checks().await)
}

pub(crate) fn checks_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getChecks")
        .summary("Check everything, by trying it")
        .description(
            "The same as `weighlock doctor`. Tries each thing that walls are made of, and runs \
             `true` once.",
        )
}

pub(crate) async fn blacklist(Shared(engine): Shared<Arc<Engine>>) -> Json<BlacklistView> {
    Json(blacklist_view(&engine))
}

pub(crate) fn blacklist_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getBlacklist").summary("The blacklist in force")
}

pub(crate) async fn save_blacklist(
    Shared(engine): Shared<Arc<Engine>>,
    Extension(principal): Extension<Principal>,
    Body(new): Body<NewBlacklist>,
) -> Result<Json<BlacklistView>, Problem> {
    let text = serde_json::json!({ "commandBlacklist": new.entries }).to_string();
    let list = Blacklist::from_json(&text).map_err(|error| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "invalid_blacklist",
            format!("{error}; the list was not changed"),
            "leave the empty entry out",
        )
    })?;
    engine.save_blacklist(&list, &principal).await?;
    Ok(Json(blacklist_view(&engine)))
}

pub(crate) fn save_blacklist_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("saveBlacklist")
        .summary("Save a blacklist to .agents/terminal.json")
}

pub(crate) async fn reset_blacklist(
    Shared(engine): Shared<Arc<Engine>>,
    Extension(principal): Extension<Principal>,
) -> Result<Json<BlacklistView>, Problem> {
    engine.reset_blacklist(&principal).await?;
    Ok(Json(blacklist_view(&engine)))
}

pub(crate) fn reset_blacklist_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("resetBlacklist")
        .summary("Go back to the built-in blacklist: removes .agents/terminal.json")
}

fn blacklist_view(engine: &Engine) -> BlacklistView {
    let file = engine.blacklist();
    BlacklistView {
        entries: file.list.entries().to_vec(),
        path: file.path.to_string_lossy().into_owned(),
        in_force: file.from_file || engine.config().presets.contains(&Preset::Blacklist),
        from_file: file.from_file,
        warning: file.warning,
    }
}

pub(crate) async fn verify(
    Shared(engine): Shared<Arc<Engine>>,
) -> Result<Json<VerifiedView>, Problem> {
    blocking(move || Ok(Json(engine.verify()?.into()))).await
}

pub(crate) fn verify_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("verifyAudit").summary("Check the audit's chain")
}

pub(crate) async fn export(Shared(engine): Shared<Arc<Engine>>) -> Response {
    // A few pieces ahead of the reader, never the whole record in memory.
    let (pieces, reader) = tokio::sync::mpsc::channel(4);
    tokio::task::spawn_blocking(move || {
        let mut writer = BufWriter::with_capacity(PIECE, Pieces(pieces));
        if let Err(error) = engine.export(&mut writer) {
            tracing::error!(%error, "cannot export the audit");
            // Without its last line, the export shows that it is cut off.
            let _ = writer.into_parts();
        }
    });
    let stream = futures_util::stream::unfold(reader, |mut reader| async move {
        let piece = reader.recv().await?;
        Some((Ok::<_, io::Error>(piece), reader))
    });
    let kind = [(axum::http::header::CONTENT_TYPE, "application/jsonl")];
    (kind, axum::body::Body::from_stream(stream)).into_response()
}

/// How much of the record is sent at a time.
const PIECE: usize = 64 * 1024;

/// Writes into a stream; fails when nobody reads it any more.
struct Pieces(tokio::sync::mpsc::Sender<Bytes>);

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .blocking_send(Bytes::copy_from_slice(bytes))
            .map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn export_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("exportAudit")
        .summary("The whole audit as JSON Lines, for `weighlock audit verify --file`")
        .response_with::<200, Vec<u8>, _>(|res| res.description("JSON Lines"))
        .default_response::<Json<ProblemDocument>>()
}

pub(crate) async fn audit_of(
    Shared(engine): Shared<Arc<Engine>>,
    RunId(id): RunId,
) -> Result<Json<Entries>, Problem> {
    let run = engine.find(&id)?;
    Ok(Json(Entries {
        entries: engine.entries_of(&run)?,
    }))
}

pub(crate) fn audit_of_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getCommandAudit")
        .summary("The audit entries of a run")
}

impl From<Verified> for VerifiedView {
    fn from(found: Verified) -> Self {
        Self {
            entries: found.entries,
            head: found.head,
            fault: found.fault.map(|fault| FaultView {
                seq: fault.seq,
                what: fault.what,
            }),
        }
    }
}

/// A JSON body whose faults are problem documents.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match Json::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            Err(rejection) => Err(refuse_body(&rejection)),
        }
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
        format!("{}; nothing was done", rejection.body_text()),
        "see /agent/terminal/openapi.json for what this address takes",
    )
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
        format!("{}; nothing was done", rejection.body_text()),
        "see /agent/terminal/openapi.json for what this address takes",
    )
}

/// The id in an address.
pub(crate) struct RunId(pub(crate) String);

#[derive(Deserialize, JsonSchema)]
struct IdParam {
    /// A run's id, or a unique beginning of its short id.
    #[expect(dead_code, reason = "only describes the address")]
    id: String,
}

impl<S: Send + Sync> FromRequestParts<S> for RunId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) if !id.is_empty() => Ok(Self(id)),
            _ => Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "invalid_id",
                "the address has no valid id; nothing was done".into(),
                "`weighlock runs` lists the ids there are",
            )),
        }
    }
}

impl OperationInput for RunId {
    fn operation_input(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) {
        Path::<IdParam>::operation_input(ctx, operation);
    }
}
