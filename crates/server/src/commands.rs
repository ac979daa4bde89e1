//! Runs: asking for them, looking at them, stopping them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aide::OperationInput;
use aide::transform::TransformOperation;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, State as Shared};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{
    Decision, DecisionKind, Engine, Filter, Input, Load, Outcome, Principal, Report, Request,
    Review, Run, Shell, State, Text,
};

use crate::changes::Settle;
use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Body, Id, Optional, Params, Who, describe_headers, page, when};

/// How long a run that is asked to stop has to end in order, unless said.
const GRACE_MS: u64 = 2000;

/// A request to run a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "command": "git status", "wait_ms": 1000 }))]
#[schemars(example = serde_json::json!({
    "command": "npm run build", "description": "Build the project", "sandbox_id": "default",
    "background": true,
}))]
pub struct NewCommand {
    /// The text for the shell.
    pub command: String,
    /// What it is for, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it belongs together with: the id of a session, or the client's own
    /// name for one; one is opened for it when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The sandbox to run in, by id or name; the requester's default when not
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<String>,
    /// The working directory: the sandbox's directory or one below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment variables to add.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The profile that the agent works under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What reads the command; when not given, `sh` where all shells read it
    /// alike, and bash otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellName>,
    /// What the command reads; nothing when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// Input will follow by `POST …/stdin`.
    #[serde(default)]
    pub stdin_open: bool,
    /// After this the run is ended. Above the maximum it is lowered, and said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// After this time without output the run is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<i64>,
    /// How long to wait for the end before answering with a handle; until the
    /// end when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<i64>,
    /// Answer at once. Unless said otherwise, the time limit is the longest
    /// there is.
    #[serde(default)]
    pub background: bool,
    /// What the shell leaves running goes on, under its keeper.
    #[serde(default)]
    pub keep: bool,
    /// Who runs it: `weighlock`, or `external` for a requester that runs it
    /// itself once it may, and reports by `…/finalize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<Executor>,
    /// `before`: ask a person before it runs, where it would be tried on a
    /// copy first; for commands whose point is elsewhere, such as the network.
    /// Otherwise than the sandbox says, `effects` and `none` count only of
    /// those who may decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// Try it on a copy, and ask about every change.
    #[serde(default)]
    pub preview: bool,
}

/// What becomes of a command: what it did, for one that its requester has run;
/// or what happens to the changes that one has made on a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(example = serde_json::json!({ "exit_code": 0, "stdout": "ok\n" }))]
#[schemars(example = serde_json::json!({ "changes": "commit" }))]
pub struct FinalizeRequest {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Its exit code; required for one that its requester has run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Apply its changes, or throw them away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Settle>,
    /// From the changes as they were seen; anything else is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// What the requester is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Who runs a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Executor {
    /// We do, behind walls.
    Weighlock,
    /// The requester does.
    External,
}

/// A yes to the question about a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApproveRequest {
    /// From the question: names exactly what was seen. Without it the yes
    /// counts only if the question has not changed since it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// What the requester is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A no to the question about a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RejectRequest {
    /// What the requester is told, word for word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The shells there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShellName {
    /// `/bin/sh`.
    Sh,
    /// `/bin/bash`.
    Bash,
}

/// A run and what it said, cut to the reader's measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandView {
    /// The run.
    #[serde(flatten)]
    pub run: Run,
    /// Standard output.
    pub stdout: Option<String>,
    /// Standard error.
    pub stderr: Option<String>,
    /// Both together, where the preset joins them.
    pub text: Option<String>,
    /// Characters that were left out of the above.
    pub left_out_chars: u64,
    /// How to read what was left out.
    pub note: Option<String>,
    /// What it takes up now, while it runs.
    pub load: Option<Load>,
}

/// A page of runs, newest first, without their output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandList {
    /// The runs.
    pub commands: Vec<Run>,
    /// Ask for the next page with this; absent on the last.
    pub cursor: Option<String>,
}

/// Which runs to list.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListParams {
    /// Only those in this state.
    state: Option<State>,
    /// Only those with this coarse status: `pending`, `approved`, `rejected`,
    /// `executed` or `failed`.
    status: Option<Status>,
    /// Only those whose command contains this, whatever its case.
    q: Option<String>,
    /// Only those of this requester.
    agent: Option<String>,
    /// Only those in this sandbox, by id.
    sandbox: Option<String>,
    /// Only those of this session, by id.
    session: Option<String>,
    /// Only those that this person allowed.
    by: Option<String>,
    /// Only those asked for at this time or later (RFC 3339).
    since: Option<String>,
    /// Only those asked for before this time.
    until: Option<String>,
    /// Only those of which something may still run.
    #[serde(default)]
    open: bool,
    /// From the page before.
    cursor: Option<String>,
    /// How many, at most 500.
    limit: Option<usize>,
}

/// The coarse statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    Approved,
    Rejected,
    Executed,
    Failed,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowParams {
    /// How long to wait for the end, if it runs.
    wait_ms: Option<u64>,
}

/// How to end a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRequest {
    /// Ask with the signal of Ctrl C instead of the one for ending.
    #[serde(default)]
    pub interrupt: bool,
    /// How long it has to end in order before it is forced: 2000 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StdinParams {
    /// Nothing follows after this.
    #[serde(default)]
    last: bool,
}

/// The header that names a request, so that making it twice runs it once.
const KEY: &str = "idempotency-key";

pub(crate) async fn create(
    Shared(engine): Shared<Arc<Engine>>,
    Who(principal): Who,
    key: IdempotencyKey,
    Body(new): Body<NewCommand>,
) -> Result<Response, Problem> {
    let request = Request {
        key: key.0,
        ..request(new, principal)
    };
    let (status, run) = match engine.run(request).await? {
        Outcome::Running(run) | Outcome::Waiting(run) => (StatusCode::ACCEPTED, run),
        Outcome::Ended(run) | Outcome::Refused(run) => (StatusCode::OK, run),
    };
    let view = view(&engine, run)?;
    let place = format!("/agent/terminal/commands/{}", view.run.command_id);
    let mut response = (status, Json(view)).into_response();
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

pub(crate) fn create_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("createCommand")
        .summary("Run a command")
        .description(
            "Waits up to `wait_ms` for the end, else answers 202 with the run, which goes on. \
             A refusal by policy is an answer (state `blocked`), not an error. A command that a \
             person must allow first answers 202 (state `waiting`, with `approval_id`) at once, \
             or waits up to `wait_ms` for the answer and the end; poll it, or withdraw it. While \
             work is paused the state is `held`. The same `Idempotency-Key` runs a request once, \
             however often it is made.",
        )
        .response_with::<200, Json<CommandView>, _>(|res| {
            res.description("It ended, or was blocked")
        })
        .response_with::<202, Json<CommandView>, _>(|res| {
            res.description("It goes on, or waits; its id is the handle")
        })
}

pub(crate) async fn list(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(params): Params<ListParams>,
) -> Result<Json<CommandList>, Problem> {
    let limit = page(params.limit);
    let filter = Filter {
        state: params.state,
        status: params.status.map(|status| status.word().to_owned()),
        text: params.q,
        before: params.cursor,
        requested_by: params.agent,
        approved_by: params.by,
        session: params.session,
        sandbox: params.sandbox,
        since: params.since.as_deref().map(when).transpose()?,
        until: params.until.as_deref().map(when).transpose()?,
        open: params.open,
        limit: limit + 1,
        ..Filter::default()
    };
    let mut commands = blocking(move || Ok(engine.list(filter, &who)?)).await?;
    let more = commands.len() > limit;
    commands.truncate(limit);
    let cursor = commands
        .last()
        .filter(|_| more)
        .map(|run| run.command_id.clone());
    Ok(Json(CommandList { commands, cursor }))
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listCommands").summary("List runs, newest first")
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<ShowParams>,
) -> Result<Json<CommandView>, Problem> {
    let mut run = {
        let engine = Arc::clone(&engine);
        blocking(move || Ok(engine.find(&id, &who)?)).await?
    };
    if let Some(millis) = params.wait_ms
        && matches!(run.state, State::Running | State::Waiting | State::Held)
    {
        run = engine
            .wait(&run, Some(Duration::from_millis(millis)))
            .await?;
    }
    blocking(move || Ok(Json(view(&engine, run)?))).await
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getCommand")
        .summary("Look at a run, or wait for its end")
        .description("The id may be shortened to any unique beginning of the short id.")
}

pub(crate) async fn stop(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(how): Body<StopRequest>,
) -> Result<Json<CommandView>, Problem> {
    let run = engine.find(&id, &who)?;
    if matches!(run.state, State::Waiting | State::Held) {
        let run = engine.withdraw(&run, &who).await?;
        return Ok(Json(view(&engine, run)?));
    }
    let grace = Duration::from_millis(how.grace_ms.unwrap_or(GRACE_MS));
    engine.stop(&run, &who, how.interrupt, grace).await?;
    let run = engine.closed(&run, grace + Duration::from_secs(5)).await?;
    Ok(Json(view(&engine, run)?))
}

pub(crate) fn stop_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("stopCommand")
        .summary("End a run and everything it started")
        .description("Answers when nothing of it is left. One that has not begun is withdrawn.")
}

pub(crate) async fn stdin(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<StdinParams>,
    input: Bytes,
) -> Result<StatusCode, Problem> {
    let run = engine.find(&id, &who)?;
    engine.feed(&run, &input, params.last, &who).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn stdin_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("feedCommand")
        .summary("Hand input to a run that was started with `stdin_open`")
        .description("Answers when the command has taken it.")
        .response_with::<204, (), _>(|res| res.description("Taken"))
}

pub(crate) async fn approve(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Optional(yes): Optional<ApproveRequest>,
) -> Result<Json<CommandView>, Problem> {
    let decision = Decision {
        kind: DecisionKind::ApproveOnce,
        fingerprint: yes.fingerprint,
        reason: yes.reason,
        command: None,
        grants: vec![],
    };
    decided(&engine, &id, decision, &who).await
}

pub(crate) fn approve_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("approveCommand")
        .summary("Allow a command that waits, once")
        .description("Answers when it was started. Identical requests that wait start with it.")
}

pub(crate) async fn reject(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Optional(no): Optional<RejectRequest>,
) -> Result<Json<CommandView>, Problem> {
    let decision = Decision {
        kind: DecisionKind::Reject,
        fingerprint: None,
        reason: no.reason,
        command: None,
        grants: vec![],
    };
    decided(&engine, &id, decision, &who).await
}

pub(crate) fn reject_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("rejectCommand")
        .summary("Refuse a command that waits")
}

async fn decided(
    engine: &Arc<Engine>,
    id: &str,
    decision: Decision,
    who: &Principal,
) -> Result<Json<CommandView>, Problem> {
    let run = engine.decide_run(id, decision, who).await?;
    Ok(Json(view(engine, run)?))
}

pub(crate) async fn finalize(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(asked): Body<FinalizeRequest>,
) -> Result<Json<CommandView>, Problem> {
    let hash = asked.hash.as_deref();
    let run = match (asked.changes, asked.exit_code) {
        (Some(Settle::Commit), _) => engine.commit_changes(&id, hash, &who).await?,
        (Some(Settle::Discard), _) => engine.discard_changes(&id, asked.reason, &who).await?,
        (None, Some(exit_code)) => {
            let report = Report {
                stdout: asked.stdout,
                stderr: asked.stderr,
                exit_code,
                cwd: None,
            };
            engine.finalize(&id, report, &who).await?
        }
        (None, None) => {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "invalid_body",
                "it says neither how the command ended nor what becomes of its changes".into(),
                "give `exit_code`, or `changes`",
            ));
        }
    };
    Ok(Json(view(&engine, run)?))
}

pub(crate) fn finalize_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("finalizeCommand")
        .summary("Settle a command: record what it did, or apply or discard its changes")
        .description(
            "With `exit_code`, exactly once, for a command with `executor` `external` that may \
             run. With `changes`, for one that made changes on a copy: `commit` applies them, \
             which answers the question about them, `discard` throws them away with what was \
             built on them.",
        )
}

pub(crate) async fn withdraw(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<CommandView>, Problem> {
    let run = engine.find(&id, &who)?;
    let run = engine.withdraw(&run, &who).await?;
    Ok(Json(view(&engine, run)?))
}

pub(crate) fn withdraw_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("withdrawCommand")
        .summary("Take a request back that has not begun")
}

/// Adds what a run said.
pub(crate) fn view(engine: &Engine, run: Run) -> Result<CommandView, Problem> {
    let excerpt = engine.excerpt(&run, None)?;
    let (stdout, stderr, text) = match excerpt.text {
        Text::Streams { stdout, stderr } => (Some(stdout), Some(stderr), None),
        Text::Joined(text) => (None, None, Some(text)),
    };
    let note = (excerpt.left_out > 0).then(|| {
        format!(
            "Output cut: {} characters left out. Full output: run {}, lines 1 to {}.",
            excerpt.left_out,
            run.short_id,
            run.detail.output.lines.max(1)
        )
    });
    Ok(CommandView {
        load: run.open.then(|| engine.load(&run)).flatten(),
        run,
        stdout,
        stderr,
        text,
        left_out_chars: excerpt.left_out,
        note,
    })
}

fn request(new: NewCommand, principal: Principal) -> Request {
    Request {
        description: new.description,
        session: new.session_id,
        sandbox: new.sandbox_id,
        cwd: new.cwd,
        env: new.env.into_iter().collect(),
        agent: new.agent,
        shell: new.shell.map(Shell::from),
        external: new.executor == Some(Executor::External),
        input: match new.stdin {
            Some(text) => Input::Text(text.into_bytes()),
            None if new.stdin_open => Input::Open,
            None => Input::None,
        },
        timeout_ms: new.timeout_ms,
        idle_ms: new.idle_ms,
        wait_ms: new.wait_ms,
        background: new.background,
        keep: new.keep,
        review: new.review,
        preview: new.preview,
        ..Request::new(principal, new.command)
    }
}

/// The client's own name for a request.
pub(crate) struct IdempotencyKey(Option<String>);

#[derive(Deserialize, JsonSchema)]
struct KeyParam {
    /// The client's own name for this request, such as a UUID: made twice, it
    /// runs once, and both get the same run.
    #[expect(dead_code, reason = "only describes the header")]
    #[serde(rename = "idempotency-key")]
    #[schemars(length(min = 1, max = 255))]
    key: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let key = parts.headers.get(KEY);
        Ok(Self(key.map(|key| {
            String::from_utf8_lossy(key.as_bytes()).into_owned()
        })))
    }
}

impl OperationInput for IdempotencyKey {
    fn operation_input(
        ctx: &mut aide::generate::GenContext,
        operation: &mut aide::openapi::Operation,
    ) {
        describe_headers::<KeyParam>(ctx, operation);
    }
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Executed => "executed",
            Self::Failed => "failed",
        }
    }
}

impl From<ShellName> for Shell {
    fn from(name: ShellName) -> Self {
        match name {
            ShellName::Sh => Self::Sh,
            ShellName::Bash => Self::Bash,
        }
    }
}
