//! Terminals: opening them, looking at them, typing at them.

use std::sync::Arc;
use std::time::Duration;

use aide::transform::TransformOperation;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use weighlock_api::{
    CommandView, NewExec, NewTerminal, ScreenParams, ScreenView, SentView, TerminalInput,
    TerminalList, TerminalListParams, TerminalSignal, TerminalSize, TerminalView,
};
use weighlock_engine::{Engine, Outcome, Request, Sent, Size, Typed};

use crate::commands::view;
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

fn size_of(size: TerminalSize) -> Size {
    Size {
        columns: size.columns,
        rows: size.rows,
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
            "The policy judges it like any command. Returns 202 with the terminal, which runs or \
             waits for approval; 200 with the run if the policy blocks it, or with its output if \
             the request waits for it.",
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
    op.id("listTerminals").summary("List open terminals")
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
        .summary("Show a terminal")
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
        .summary("Close a terminal and end everything in it")
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
        .summary("Show the screen of a terminal as text")
        .description("For a closed terminal, its last screen.")
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
        .summary("Send input to a terminal")
        .description(
            "Input that the program does not echo, such as a password, is not recorded. A line \
             for a shell that marks where its commands end is judged like any command.",
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
            "Types it at the prompt of a terminal that was opened with `bash`, `zsh` or `sh`, \
             once the shell waits for a command. Returns the command's own output and exit \
             status, and the shell's directory afterwards (`cwd_after`). The policy judges it \
             like any command.",
        )
        .response_with::<200, Json<CommandView>, _>(|res| {
            res.description("It ended, or was blocked")
        })
        .response_with::<202, Json<CommandView>, _>(|res| {
            res.description("It is running or waiting; its id is the handle")
        })
}

pub(crate) async fn resize(
    Shared(engine): Shared<Arc<Engine>>,
    Who(who): Who,
    Id(id): Id,
    Body(size): Body<TerminalSize>,
) -> Result<StatusCode, Problem> {
    let run = engine.runs().find_terminal(&id, &who)?;
    engine.terminals().resize(&run, size_of(size), &who).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) fn resize_docs(op: TransformOperation<'_>) -> TransformOperation<'_> {
    op.id("resizeTerminal")
        .summary("Resize a terminal")
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
        .summary("Send a signal to the foreground processes of a terminal")
        .response_with::<204, (), _>(|res| res.description("It was sent"))
}
