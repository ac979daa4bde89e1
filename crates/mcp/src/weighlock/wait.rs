//! `wait`: for what runs and terminals do.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_engine::{ApprovalView, Met, Run, WaitKind, Wanted, safe_text};
use weighlock_server::{CommandView, WaitRequest, WaitView};

use super::looked_for;
use super::told::{Told, word};
use crate::api::{self, Failure};
use crate::call::{Call, last_line};
use crate::reply::Reply;
use crate::tool::{Hints, Tool, answer, parse, schema};

/// How long is waited when nothing is said.
const DEFAULT: Duration = Duration::from_secs(30);

/// The longest wait where the client gets progress.
const MOST: Duration = Duration::from_secs(600);

/// How much of that in one request: a connection may break.
const STEP: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wait {
    /// A run's id, or a terminal's name.
    id: String,
    /// What to wait for: `exit` (also a person's answer), `output` matching
    /// `pattern`, `port` listened on, `idle` without output, `stable` screen,
    /// `input` wanted, or `keyboard` given back by a person.
    #[serde(default)]
    until: WaitUntil,
    /// For `output`: a regular expression for one line.
    #[serde(default)]
    pattern: Option<String>,
    /// For `output`: only from this byte on.
    #[serde(default)]
    cursor: u64,
    /// For `port`: which one; any if not given.
    #[serde(default)]
    port: Option<u16>,
    /// For `idle` and `stable`: how long, in milliseconds (500).
    #[serde(default)]
    ms: Option<u64>,
    /// Seconds to wait (30).
    #[serde(default)]
    timeout: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Until")]
enum WaitUntil {
    #[default]
    Exit,
    Output,
    Port,
    Idle,
    Stable,
    Input,
    Keyboard,
}

/// What waiting has come to.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Waited")]
struct WaitAnswer {
    /// It has happened.
    met: bool,
    /// Not yet: wait again.
    timed_out: bool,
    /// The run.
    run: Told,
    /// The line that matches, the prompt that input is wanted at, or what a
    /// person said when they gave the keyboard back.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    /// The port.
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
}

pub(crate) fn tool() -> Tool {
    Tool {
        name: "wait",
        title: "Wait",
        description: "Wait until a run has ended (its result is in the answer), a person has \
            answered, a line was written, a port is open, or a program wants input. Better than \
            polling or sleep.",
        input: schema::<Wait>,
        output: Some(answer::<WaitAnswer>),
        hints: Hints {
            reads: true,
            idempotent: true,
            ..Hints::default()
        },
        deed: |call, arguments| {
            Box::pin(async move {
                let done = wait(call, parse(arguments)?).await;
                done.map_err(|failure| looked_for(call, failure))
            })
        },
    }
}

async fn wait(call: &Call, asked: Wait) -> Result<Reply, Failure> {
    let wanted = match asked.timeout {
        Some(seconds) if seconds >= 0.0 => Duration::from_secs_f64(seconds.min(MOST.as_secs_f64())),
        Some(seconds) => {
            return Err(Failure::new(
                "invalid_arguments",
                format!("`timeout`: cannot wait for {seconds} s"),
                "Give seconds, 0 to see how it is.",
            ));
        }
        None => DEFAULT,
    };
    let until = Instant::now() + call.patience(Some(wanted)).unwrap_or(wanted);
    let id = call.desk.resolve(&asked.id).await?;
    let mut request = WaitRequest {
        wanted: vec![Wanted {
            id,
            until: match asked.until {
                WaitUntil::Exit => WaitKind::Exit,
                WaitUntil::Output => WaitKind::Output,
                WaitUntil::Port => WaitKind::Port,
                WaitUntil::Idle => WaitKind::Idle,
                WaitUntil::Stable => WaitKind::Stable,
                WaitUntil::Input => WaitKind::Input,
                WaitUntil::Keyboard => WaitKind::Keyboard,
            },
            pattern: asked.pattern,
            from: asked.cursor,
            port: asked.port,
            ms: asked.ms,
        }],
        ..WaitRequest::default()
    };
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let step = match call.client.hears_progress() {
            true => left.min(STEP),
            false => left,
        };
        request.timeout_ms = Some(step.as_millis() as u64);
        let waited: WaitView = tokio::select! {
            waited = api::post(call.desk.api(), "/wait".into(), &request) => waited?,
            () = call.is_cancelled() => WaitView::default(),
        };
        let Some(run) = waited.runs.first() else {
            return Ok(Reply::text("Cancelled; the run goes on."));
        };
        if !waited.timed_out || left <= step {
            return outcome(call, &waited, run).await;
        }
        let path = format!("/commands/{}", run.command_id);
        let view: CommandView = api::get(call.desk.api(), path).await?;
        call.tell(last_line(&view)).await;
    }
}

async fn outcome(call: &Call, waited: &WaitView, run: &Run) -> Result<Reply, Failure> {
    let path = format!("/commands/{}", run.command_id);
    let view: CommandView = api::get(call.desk.api(), path).await?;
    let met: Option<&Met> = waited.happened.first();
    let words = words(call, &view.run).await;
    let told = Told::new(view);
    let waited = WaitAnswer {
        met: waited.met,
        timed_out: waited.timed_out,
        run: Told {
            message: told.message.clone().or(words),
            ..told
        },
        line: met.and_then(|met| {
            let told = [&met.line, &met.prompt, &met.text];
            told.into_iter().flatten().next().cloned()
        }),
        port: met.and_then(|met| met.port),
    };
    let head = match (waited.met, waited.timed_out) {
        (true, _) => String::new(),
        (_, true) => format!(
            "Not yet; {} is {}. Wait again.",
            waited.run.id,
            word(&run.state)
        ),
        (false, false) => "It will not happen: the run has ended.".to_owned(),
    };
    let parts = [
        Some(head).filter(|head| !head.is_empty()),
        waited.line.clone(),
        waited.port.map(|port| format!("listens on port {port}")),
        Some(waited.run.clone().reply().text),
    ];
    let text: Vec<String> = parts.into_iter().flatten().collect();
    Ok(Reply::new(text.join("\n"), &waited))
}

/// What the person said who has allowed a run.
async fn words(call: &Call, run: &Run) -> Option<String> {
    let (by, id) = (run.approved_by.as_deref()?, run.approval_id.as_deref()?);
    let asked = api::get(call.desk.api(), format!("/approvals/{id}")).await;
    let asked: ApprovalView = asked.ok()?;
    let mut answers = asked.answers.into_iter().rev();
    let words = answers.find_map(|answer| answer.reason.filter(|reason| !reason.is_empty()));
    let said = |warning: &String| warning.starts_with("Approved by");
    match words {
        Some(words) => Some(format!("Approved by {by}: ‘{}’", safe_text(&words))),
        None if run.detail.warnings.iter().any(said) => None,
        None => Some(format!("Approved by {by}.")),
    }
}
