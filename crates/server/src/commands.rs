//! Runs: asking for them, looking at them, stopping them.

mod views;

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
    Cut, Decision, DecisionKind, Engine, Filter, Input, Outcome, Principal, Report, Request, Run,
    Shell, State, Text,
};

pub use self::views::{
    ApproveRequest, CommandList, CommandView, Executor, FinalizeRequest, NewCommand, RejectRequest,
    ShellName, StopRequest,
};
use crate::changes::Settle;
use crate::cut::CutTo;
use crate::export::Format;
use crate::output::blocking;
use crate::problem::Problem;
use crate::system::{Body, Id, Optional, Params, Who, describe_headers, page, when};

/// How long a run that is asked to stop has to end in order, unless said.
const GRACE_MS: u64 = 2000;

/// More are only said to be more.
const MOST_COUNTED: usize = 1_000_000;

/// Which runs to list.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub(crate) struct RunListParams {
    /// Only those in this state.
    state: Option<State>,
    /// Only those with this coarse status: `pending`, `approved`, `rejected`,
    /// `executed` or `failed`.
    status: Option<RunStatus>,
    /// Filters and words, as people type them: `agent:coder status:failed rm`.
    /// Keys are `agent`, `status`, `verdict`, `by`, `sandbox`, `terminal`,
    /// `since`, `until`, `exit`, `rule` and `id`; every other word is looked
    /// for in the command, whatever its case.
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
    /// Without the newest so many, where `cursor` is not known: to jump to the
    /// end of a long list.
    #[serde(default)]
    skip: usize,
    /// How many, at most 500.
    limit: Option<usize>,
    /// Count all that there are, too.
    #[serde(default)]
    count: bool,
    /// How an export is written: `jsonl` or `csv`.
    pub(crate) format: Option<Format>,
}

impl RunListParams {
    /// Returns what is asked for, without a limit.
    pub(crate) fn filter(&self, engine: &Engine, who: &Principal) -> Result<Filter, Problem> {
        let filter = Filter {
            state: self.state,
            status: self.status.map(|status| status.word().to_owned()),
            before: self.cursor.clone(),
            requested_by: self.agent.clone(),
            approved_by: self.by.clone(),
            session: self.session.clone(),
            sandbox: self.sandbox.clone(),
            since: self.since.as_deref().map(when).transpose()?,
            until: self.until.as_deref().map(when).transpose()?,
            open: self.open,
            skip: self.skip,
            ..Filter::default()
        };
        let typed = self.q.as_deref().unwrap_or_default();
        Ok(engine.runs().filter(typed, filter, who)?)
    }
}

/// The coarse statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Status")]
enum RunStatus {
    Pending,
    Approved,
    Rejected,
    Executed,
    Failed,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShowParams")]
pub(crate) struct RunShowParams {
    /// How long to wait for the end, if it runs.
    wait_ms: Option<u64>,
    /// With `true`, the run is ended if its requester does not come back within
    /// 10 seconds; with `false`, it goes on without them.
    attend: Option<bool>,
    /// How much of its output is in the answer.
    cut: Option<CutTo>,
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
    Params(params): Params<RunListParams>,
) -> Result<Json<CommandList>, Problem> {
    blocking(move || {
        let limit = page(params.limit);
        let filter = params.filter(&engine, &who)?;
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
            "400 `unknown_filter` names the nearest one where `q` has a key that there is not; \
             `invalid_filter` says what is wrong with a value.",
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
        .summary("Look at a run, or wait for its end")
        .description("The id may be shortened to any unique beginning of the short id.")
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
    let run = engine.runs().find(&id, &who)?;
    engine.runs().feed(&run, &input, params.last, &who).await?;
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
        fingerprint: yes.fingerprint,
        reason: yes.reason,
        ..Decision::new(DecisionKind::ApproveOnce)
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
        reason: no.reason,
        ..Decision::new(DecisionKind::Reject)
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
    let run = engine.runs().find(&id, &who)?;
    let run = engine.inbox().withdraw(&run, &who).await?;
    Ok(Json(view(&engine, run)?))
}

pub(crate) fn withdraw_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("withdrawCommand")
        .summary("Take a request back that has not begun")
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

impl RunStatus {
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
