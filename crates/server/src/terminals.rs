//! Terminals: opening them, looking at them, typing at them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{Engine, Outcome, Request, ScreenView, Sent, Size, TerminalView, Typed};

use crate::commands::{CommandView, view};
use crate::output::blocking;
use crate::problem::Problem;
use crate::stream::asked;
use crate::system::{Body, Id, Params, Who};

/// Lines of history in one answer, at the most.
const MAX_LINES: usize = 10_000;

/// How long one in the foreground is waited for when nothing is said, and at
/// the most.
const TIMEOUT_MS: u64 = 20_000;
const MAX_TIMEOUT_MS: u64 = 300_000;

/// A terminal to be opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "name": "dev-server", "description": "Start the dev server", "command": "npm run dev",
}))]
pub struct NewTerminal {
    /// What it is called; free in its session.
    pub name: String,
    /// What it is for, in a few words.
    pub description: String,
    /// What is started in it.
    pub command: String,
    /// The session, by id or the client's own name for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The sandbox, by id or name; the requester's default when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment variables to add.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The profile that the agent works under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Characters in a line; 80 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<u16>,
    /// Lines; 24 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u16>,
    /// Wait for its end, answer with its output, and close it.
    #[serde(default)]
    pub foreground: bool,
    /// How long to wait for that, in milliseconds: 20 seconds when not given,
    /// 5 minutes at the most. It is closed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What is typed at a terminal, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(example = serde_json::json!({ "text": "ls", "submit": true }))]
#[schemars(example = serde_json::json!({ "keys": ["C-c"] }))]
pub struct TerminalInput {
    /// Text as it is; the end of a line is the Enter key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Text as from a clipboard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paste: Option<String>,
    /// Keys by name: `Enter`, `Esc`, `C-c`, `M-x`, `Up`, `F5` and so on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// And then Enter.
    pub submit: bool,
    /// And then the key that ends the input of programs which read lines.
    pub eof: bool,
}

/// What became of something that was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SentView {
    /// `typed`, `held` until the keyboard is given back, or `asked`.
    pub state: String,
    /// In words: why it is not typed yet, or what became of earlier input that
    /// was held, and what was said when the keyboard was given back.
    pub text: String,
    /// The command that a person is asked about.
    pub command_id: Option<String>,
}

/// A command for the shell of a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "command": "cd src && ls" }))]
pub struct NewExec {
    /// The text for the shell.
    pub command: String,
    /// How long to wait for its end before answering with a handle; until the
    /// end when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// How large a terminal is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Characters in a line.
    pub columns: u16,
    /// Lines.
    pub rows: u16,
}

/// A signal for what is in the foreground of a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalSignal {
    /// Its name, such as `INT`.
    pub signal: String,
}

/// The terminals that there are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TerminalList {
    /// The oldest first.
    pub terminals: Vec<TerminalView>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListParams")]
pub(crate) struct TerminalListParams {
    /// Only of this session, by id.
    session: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScreenParams {
    /// So many of the last lines of all that was shown; none if not given.
    #[serde(default)]
    lines: usize,
}

impl From<TerminalSize> for Size {
    fn from(size: TerminalSize) -> Self {
        Self {
            columns: size.columns,
            rows: size.rows,
        }
    }
}

pub(crate) async fn open(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Body(new): Body<NewTerminal>,
) -> Result<Response, Problem> {
    let size = Size {
        columns: new.columns.unwrap_or(80),
        rows: new.rows.unwrap_or(24),
    };
    let request = Request {
        description: Some(new.description),
        session: new.session_id,
        sandbox: new.sandbox_id,
        cwd: new.cwd,
        env: new.env.into_iter().collect(),
        agent: new.agent,
        ..Request::new(who.clone(), new.command)
    };
    let opened = engine
        .terminals()
        .open_terminal(request, &new.name, size)
        .await?;
    if let (true, Outcome::Running(run) | Outcome::Ended(run)) = (new.foreground, &opened) {
        let time = new.timeout_ms.unwrap_or(TIMEOUT_MS).min(MAX_TIMEOUT_MS);
        let run = engine
            .terminals()
            .see_through(run, Duration::from_millis(time), &who)
            .await?;
        return blocking(move || Ok(Json(view(&engine, run)?).into_response())).await;
    }
    match opened {
        Outcome::Running(run) | Outcome::Waiting(run) => {
            let shown = blocking(move || Ok(Json(engine.terminals().terminal_view(run)))).await?;
            Ok((StatusCode::ACCEPTED, shown).into_response())
        }
        Outcome::Ended(run) | Outcome::Refused(run) => {
            blocking(move || Ok(Json(view(&engine, run)?).into_response())).await
        }
    }
}

pub(crate) fn open_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("openTerminal")
        .summary("Open a terminal")
        .description(
            "Judged like any command. Answers 202 with the terminal, which goes on or waits for a \
             person; 200 with the run if the policy refuses it, or with its output if it was \
             to be waited for.",
        )
        .response_with::<200, Json<CommandView>, _>(|res| {
            res.description("It was refused, or has ended")
        })
        .response_with::<202, Json<TerminalView>, _>(|res| res.description("It is open, or waits"))
}

pub(crate) async fn list(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Params(params): Params<TerminalListParams>,
) -> Result<Json<TerminalList>, Problem> {
    blocking(move || {
        let terminals = engine.terminals().list(params.session.as_deref(), &who)?;
        Ok(Json(TerminalList { terminals }))
    })
    .await
}

pub(crate) fn list_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("listTerminals").summary("Open terminals")
}

pub(crate) async fn show(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<Json<TerminalView>, Problem> {
    blocking(move || {
        let run = engine.runs().find_terminal(&id, &who)?;
        Ok(Json(engine.terminals().terminal_view(run)))
    })
    .await
}

pub(crate) fn show_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getTerminal")
        .summary("One terminal")
        .description("By the id of its run, or by its name if you can see only one of that name.")
}

pub(crate) async fn close(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
) -> Result<StatusCode, Problem> {
    let run = engine.runs().find_terminal(&id, &who)?;
    engine.terminals().close_terminal(&run, &who).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn close_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("closeTerminal")
        .summary("End a terminal and everything in it")
        .response_with::<204, (), _>(|res| res.description("It is being ended"))
}

pub(crate) async fn screen(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Params(params): Params<ScreenParams>,
) -> Result<Json<ScreenView>, Problem> {
    blocking(move || {
        let run = engine.runs().find_terminal(&id, &who)?;
        Ok(Json(
            engine
                .terminals()
                .screen(&run, params.lines.min(MAX_LINES))?,
        ))
    })
    .await
}

pub(crate) fn screen_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("getScreen")
        .summary("What a terminal shows, as text")
        .description("Of a closed one, what it showed last.")
}

pub(crate) async fn input(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(input): Body<TerminalInput>,
) -> Result<Response, Problem> {
    let run = engine.runs().find_terminal(&id, &who)?;
    let typed = Typed {
        text: input.text,
        paste: input.paste,
        keys: input.keys,
        submit: input.submit,
        eof: input.eof,
    };
    let later = StatusCode::ACCEPTED;
    let (status, state, text, command_id) =
        match engine.terminals().type_in(&run, &typed, &who).await? {
            Sent::Typed(None) => return Ok(StatusCode::NO_CONTENT.into_response()),
            Sent::Typed(Some(news)) => (StatusCode::OK, "typed", news, None),
            Sent::Held(text) => (later, "held", text, None),
            Sent::Asked(run) => (later, "asked", asked(&run), Some(run.command_id)),
        };
    let sent = SentView {
        state: state.into(),
        text,
        command_id,
    };
    Ok((status, Json(sent)).into_response())
}

pub(crate) fn input_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("typeInTerminal")
        .summary("Type at a terminal")
        .description(
            "What is typed while the program does not show it is not on record. A line for a \
             shell that tells where its commands end is judged like any command.",
        )
        .response_with::<200, Json<SentView>, _>(|res| {
            res.description("It was typed, and there is something to know about earlier input")
        })
        .response_with::<202, Json<SentView>, _>(|res| {
            res.description("A person has the keyboard, or is asked: it is typed later")
        })
        .response_with::<204, (), _>(|res| res.description("It was typed"))
}

pub(crate) async fn exec(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(new): Body<NewExec>,
) -> Result<Response, Problem> {
    let run = engine.runs().find_terminal(&id, &who)?;
    let wait = new.wait_ms.map(Duration::from_millis);
    let (status, run) = match engine
        .terminals()
        .exec(&run, &new.command, wait, &who)
        .await?
    {
        Outcome::Running(run) | Outcome::Waiting(run) => (StatusCode::ACCEPTED, run),
        Outcome::Ended(run) | Outcome::Refused(run) => (StatusCode::OK, run),
    };
    blocking(move || Ok((status, Json(view(&engine, run)?)).into_response())).await
}

pub(crate) fn exec_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("execInTerminal")
        .summary("Run a command in the shell of a terminal")
        .description(
            "Typed at the prompt of a terminal that was opened with `bash`, `zsh` or `sh`, once \
             that waits for a command. Answers with the command's own output and exit status, and \
             where the shell is then (`cwd_after`). Judged and asked about like any \
             command.",
        )
        .response_with::<200, Json<CommandView>, _>(|res| {
            res.description("It ended, or was blocked")
        })
        .response_with::<202, Json<CommandView>, _>(|res| {
            res.description("It goes on, or waits; its id is the handle")
        })
}

pub(crate) async fn resize(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(size): Body<TerminalSize>,
) -> Result<StatusCode, Problem> {
    let run = engine.runs().find_terminal(&id, &who)?;
    engine.terminals().resize(&run, size.into(), &who).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn resize_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("resizeTerminal")
        .summary("Give a terminal another size")
        .response_with::<204, (), _>(|res| res.description("It has that size"))
}

pub(crate) async fn signal(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(signal): Body<TerminalSignal>,
) -> Result<StatusCode, Problem> {
    let run = engine.runs().find_terminal(&id, &who)?;
    engine
        .terminals()
        .signal(&run, &signal.signal, &who)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn signal_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("signalTerminal")
        .summary("Send a signal to what is in the foreground of a terminal")
        .response_with::<204, (), _>(|res| res.description("It was sent"))
}
