//! Runs: asking for them, looking at them, stopping them.

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
use serde::Deserialize;
use weighlock_api::{
    ApproveRequest, CommandList, CommandView, CutTo, DecisionKind, Executor, FinalizeRequest,
    NewCommand, RejectRequest, Run, RunListParams, RunShowParams, Settle, ShellName, State,
    StdinParams, StopRequest,
};
use weighlock_engine::{
    Cut, Decision, Engine, Filter, Input, Outcome, Principal, Report, Request, Shell, Text,
};

use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Body, Id, Optional, Params, Who, describe_headers, page, when};

/// How long a run that is asked to stop has to end in order, unless said.
const GRACE_MS: u64 = 2000;

/// More are only said to be more.
const MOST_COUNTED: usize = 1_000_000;

/// Returns the runs that are asked for, without a limit.
pub(crate) fn filter_of(
    params: &RunListParams,
    engine: &Engine,
    who: &Principal,
) -> Result<Filter, Problem> {
    let filter = Filter {
        state: params.state,
        status: params.status,
        before: params.cursor.clone(),
        requested_by: params.agent.clone(),
        approved_by: params.by.clone(),
        session: params.session.clone(),
        sandbox: params.sandbox.clone(),
        since: params.since.as_deref().map(when).transpose()?,
        until: params.until.as_deref().map(when).transpose()?,
        open: params.open,
        skip: params.skip,
        ..Filter::default()
    };
    let typed = params.q.as_deref().unwrap_or_default();
    Ok(engine.runs().filter(typed, filter, who)?)
}

/// The header that names a request, so that making it twice runs it once.
const KEY: &str = "idempotency-key";

pub(crate) async fn create(
    Shared(engine): Shared<Arc<Engine>>,
    Who(principal): Who,
    key: IdempotencyKey,
    Body(new): Body<NewCommand>,
) -> Result<Response, Problem> {
    let cut = new.cut;
    let request = Request {
        key: key.0,
        ..request(new, principal)
    };
    let outcome = match request.attended {
        // Nobody who goes away while it starts leaves it without a watch.
        true => {
            let run = tokio::spawn({
                let engine = Arc::clone(&engine);
                async move { engine.run(request).await }
            });
            run.await.expect("the engine does not panic")?
        }
        false => engine.run(request).await?,
    };
    let (status, run) = match outcome {
        Outcome::Running(run) | Outcome::Waiting(run) => (StatusCode::ACCEPTED, run),
        Outcome::Ended(run) | Outcome::Refused(run) => (StatusCode::OK, run),
    };
    let view = view_cut(&engine, run, cut)?;
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
            "Waits up to `wait_ms` for the end, otherwise returns 202 with the run, which \
             continues. A command that the policy blocks is a result (state `blocked`), not an \
             error. A command that needs approval returns 202 (state `waiting`, with \
             `approval_id`) at once, or waits up to `wait_ms` for the decision and the end; poll \
             it, or withdraw it. While runs are paused the state is `held`. Requests with the \
             same `Idempotency-Key` run once.",
        )
        .response_with::<200, Json<CommandView>, _>(|res| {
            res.description("It ended, or was blocked")
        })
        .response_with::<202, Json<CommandView>, _>(|res| {
            res.description("It is running or waiting; its id is the handle")
        })
}

pub(crate) async fn list(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(params): Params<RunListParams>,
) -> Result<Json<CommandList>, Problem> {
    blocking(move || {
        let limit = page(params.limit);
        let filter = filter_of(&params, &engine, &who)?;
        let counted = match params.count {
            true => Some(engine.runs().count(whole(&filter), &who)?),
            false => None,
        };
        let one_more = Filter {
            limit: limit + 1,
            ..filter
        };
        let mut commands = engine.runs().list(one_more, &who)?;
        let more = commands.len() > limit;
        commands.truncate(limit);
        let last = commands.last().filter(|_| more);
        Ok(Json(CommandList {
            cursor: last.map(|run| run.command_id.clone()),
            commands,
            count: counted.map(|counted| counted.count),
            more: counted.is_some_and(|counted| counted.more),
        }))
    })
    .await
}

/// The same from the first page on.
fn whole(filter: &Filter) -> Filter {
    Filter {
        before: None,
        skip: 0,
        limit: MOST_COUNTED,
        ..filter.clone()
    }
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listCommands")
        .summary("List runs, newest first")
        .description(
            "400 `unknown_filter` if `q` has an unknown key, with the nearest known one; \
             `invalid_filter` if a value is wrong, with the reason.",
        )
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<RunShowParams>,
) -> Result<Json<CommandView>, Problem> {
    let mut run = {
        let (engine, who) = (Arc::clone(&engine), who.clone());
        blocking(move || Ok(engine.runs().find_checked(&id, &who)?)).await?
    };
    // Whoever attends a run waits for what it does, not for a person.
    let goes_on = match run.state {
        State::Running => true,
        State::Waiting | State::Held => params.attend.is_none(),
        _ => false,
    };
    if let Some(millis) = params.wait_ms.filter(|_| goes_on) {
        let time = Duration::from_millis(millis);
        run = match params.attend {
            Some(true) => engine.life().attend(&run, Some(time), &who).await?,
            Some(false) | None => engine.runs().wait(&run, Some(time)).await?,
        };
    }
    if params.attend == Some(false) {
        engine.life().release(&run, &who)?;
    }
    blocking(move || Ok(Json(view_cut(&engine, run, params.cut)?))).await
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getCommand")
        .summary("Show a run, or wait for its end")
        .description("The id may be shortened to any unique prefix of the short id.")
}

pub(crate) async fn stop(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(how): Body<StopRequest>,
) -> Result<Json<CommandView>, Problem> {
    let run = engine.runs().find(&id, &who)?;
    if matches!(run.state, State::Waiting | State::Held) {
        let run = engine.inbox().withdraw(&run, &who).await?;
        return Ok(Json(view(&engine, run)?));
    }
    let grace = Duration::from_millis(how.grace_ms.unwrap_or(GRACE_MS));
    engine.life().stop(&run, &who, how.interrupt, grace).await?;
    let run = engine
        .runs()
        .closed(&run, grace + Duration::from_secs(5))
        .await?;
    Ok(Json(view(&engine, run)?))
}

pub(crate) fn stop_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("stopCommand")
        .summary("Stop a run and everything it started")
        .description(
            "Returns when all its processes have ended. A run that has not started is withdrawn.",
        )
}

pub(crate) async fn stdin(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<StdinParams>,
    input: Bytes,
) -> Result<StatusCode, Problem> {
    let run = engine.runs().find(&id, &who)?;
    engine.runs().feed(&run, &input, params.last, &who).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn stdin_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("feedCommand")
        .summary("Send input to a run that was started with `stdin_open`")
        .description("Returns when the command has read it.")
        .response_with::<204, (), _>(|res| res.description("Taken"))
}

pub(crate) async fn approve(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Optional(yes): Optional<ApproveRequest>,
) -> Result<Json<CommandView>, Problem> {
    let decision = Decision {
        fingerprint: yes.fingerprint,
        reason: yes.reason,
        ..Decision::new(DecisionKind::ApproveOnce)
    };
    decided(&engine, &id, decision, &who).await
}

pub(crate) fn approve_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("approveCommand")
        .summary("Approve a waiting command, once")
        .description("Returns when it has started. Identical waiting requests start with it.")
}

pub(crate) async fn reject(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Optional(no): Optional<RejectRequest>,
) -> Result<Json<CommandView>, Problem> {
    let decision = Decision {
        reason: no.reason,
        ..Decision::new(DecisionKind::Reject)
    };
    decided(&engine, &id, decision, &who).await
}

pub(crate) fn reject_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("rejectCommand").summary("Reject a waiting command")
}

async fn decided(
    engine: &Arc<Engine>,
    id: &str,
    decision: Decision,
    who: &Principal,
) -> Result<Json<CommandView>, Problem> {
    let run = engine.inbox().decide_run(id, decision, who).await?;
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
        (Some(Settle::Commit), _) => engine.inbox().commit_changes(&id, hash, &who).await?,
        (Some(Settle::Discard), _) => {
            engine
                .inbox()
                .discard_changes(&id, asked.reason, &who)
                .await?
        }
        (None, Some(exit_code)) => {
            let report = Report {
                stdout: asked.stdout,
                stderr: asked.stderr,
                exit_code,
                ..Report::default()
            };
            engine.life().finalize(&id, report, &who).await?
        }
        (None, None) => {
            return Err(Problem::new(
                StatusCode::BAD_REQUEST,
                "invalid_body",
                "it gives neither `exit_code` nor `changes`".into(),
                "give `exit_code`, or `changes`",
            ));
        }
    };
    Ok(Json(view(&engine, run)?))
}

pub(crate) fn finalize_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("finalizeCommand")
        .summary("Finalize a command: record its result, or apply or discard its changes")
        .description(
            "With `exit_code`, exactly once, for a command with `executor` `external` that may \
             run. With `changes`, for one that made changes on a copy: `commit` applies them and \
             thereby answers the question about them, `discard` deletes them together with \
             changes that build on them.",
        )
}

pub(crate) async fn withdraw(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<CommandView>, Problem> {
    let run = engine.runs().find(&id, &who)?;
    let run = engine.inbox().withdraw(&run, &who).await?;
    Ok(Json(view(&engine, run)?))
}

pub(crate) fn withdraw_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("withdrawCommand")
        .summary("Withdraw a request that has not started")
}

/// Adds what a run said, cut as the preset has it.
pub(crate) fn view(engine: &Engine, run: Run) -> Result<CommandView, Problem> {
    view_cut(engine, run, None)
}

fn view_cut(engine: &Engine, run: Run, cut: Option<CutTo>) -> Result<CommandView, Problem> {
    let cut = cut.map(Cut::from);
    let excerpt = match run.detail.terminal {
        Some(_) => engine.terminals().transcript(&run, cut)?,
        None => engine.outputs().excerpt(&run, cut)?,
    };
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
        load: run.open.then(|| engine.runs().load(&run)).flatten(),
        run,
        stdout,
        stderr,
        text,
        left_out_chars: excerpt.left_out,
        left_out_stderr_chars: excerpt.left_out_stderr,
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
        shell: new.shell.map(shell_of),
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
        attended: new.attend,
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
    /// The client's own key for this request, such as a UUID. A request that is
    /// sent twice runs once, and both answers have the same run.
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

/// Returns the shell that a request names.
pub(crate) fn shell_of(name: ShellName) -> Shell {
    match name {
        ShellName::Sh => Shell::Sh,
        ShellName::Bash => Shell::Bash,
    }
}
