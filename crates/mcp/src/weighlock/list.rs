//! `list`: what there is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weighlock_api::{CommandList, Run, TaskList, TaskView, TerminalView};
use weighlock_screen::safe_text;

use super::told::word;
use crate::api::{self, Failure, escape};
use crate::call::Call;
use crate::reply::Reply;
use crate::tool::{Hints, Tool, answer, parse, schema};

/// So many of the newest runs.
const LATEST: usize = 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "List")]
struct ListInput {
    /// Only runs, tasks (background) or terminals; all if not given.
    #[serde(default)]
    what: Option<ListKind>,
    /// Yours from other sessions, too.
    #[serde(default)]
    all_sessions: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "What")]
enum ListKind {
    Runs,
    Tasks,
    Terminals,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Listed")]
struct ListAnswer {
    /// The newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    runs: Vec<ListedRun>,
    /// What goes on while nobody waits, and what has ended lately.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<ListedRun>,
    /// Those that are open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    terminals: Vec<ListedRun>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Line")]
struct ListedRun {
    /// Names it.
    id: String,
    /// How it is.
    state: String,
    /// The command.
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// What it listens on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ports: Vec<u16>,
}

pub(super) fn tool() -> Tool {
    Tool {
        name: "list",
        title: "List runs and terminals",
        description: "List runs, background tasks and terminals, also those that wait for a \
            person.",
        input: schema::<ListInput>,
        output: Some(answer::<ListAnswer>),
        hints: Hints {
            reads: true,
            idempotent: true,
            ..Hints::default()
        },
        deed: |call, arguments| Box::pin(async move { list(call, parse(arguments)?).await }),
    }
}

async fn list(call: &Call, asked: ListInput) -> Result<Reply, Failure> {
    let desk = &call.desk;
    let of = match asked.all_sessions {
        true => String::new(),
        false => match desk.session_id().await? {
            Some(session) => format!("session={}", escape(&session)),
            None => return Ok(Reply::new("Nothing has run yet.", &ListAnswer::default())),
        },
    };
    let wants = |what| asked.what.is_none_or(|wanted| wanted == what);
    let mut listed = ListAnswer::default();
    if wants(ListKind::Runs) {
        let path = format!("/commands?limit={LATEST}&{of}");
        let list: CommandList = api::get(desk.api(), path).await?;
        listed.runs = list.commands.into_iter().map(ListedRun::from).collect();
    }
    if wants(ListKind::Tasks) {
        let list: TaskList = api::get(desk.api(), format!("/tasks?{of}")).await?;
        listed.tasks = list.tasks.into_iter().map(ListedRun::from).collect();
    }
    if wants(ListKind::Terminals) {
        let list: weighlock_api::TerminalList =
            api::get(desk.api(), format!("/terminals?{of}")).await?;
        listed.terminals = list.terminals.into_iter().map(ListedRun::from).collect();
    }
    Ok(Reply::new(text(&listed), &listed))
}

fn text(listed: &ListAnswer) -> String {
    let groups = [
        ("Runs", &listed.runs),
        ("Tasks", &listed.tasks),
        ("Terminals", &listed.terminals),
    ];
    let mut lines = vec![];
    for (name, group) in groups {
        if !group.is_empty() {
            lines.push(format!("{name}:"));
            lines.extend(group.iter().map(told));
        }
    }
    match lines.is_empty() {
        true => "Nothing.".into(),
        false => lines.join("\n"),
    }
}

/// One of them: how it is, what it is, and what it is for.
fn told(line: &ListedRun) -> String {
    let command = line.command.lines().next().unwrap_or_default();
    let exit = line.exit_code.map(|code| format!(", exit {code}"));
    let ports = line.ports.iter().map(|port| format!(", port {port}"));
    let beside: String = exit.into_iter().chain(ports).collect();
    let said = line.description.as_deref().unwrap_or_default();
    let said = match said.lines().next() {
        Some(said) => format!(" # {}", safe_text(said)),
        None => String::new(),
    };
    format!("  {} {}{beside}: {command}{said}", line.id, line.state)
}

impl From<Run> for ListedRun {
    fn from(run: Run) -> Self {
        Self {
            id: run.short_id,
            state: word(&run.state),
            command: run.command,
            description: run.detail.description,
            exit_code: run.exit_code,
            ports: vec![],
        }
    }
}

impl From<TaskView> for ListedRun {
    fn from(task: TaskView) -> Self {
        Self {
            id: task.short_id,
            state: word(&task.state),
            command: task.command,
            description: task.description,
            exit_code: task.exit_code,
            ports: task.ports,
        }
    }
}

impl From<TerminalView> for ListedRun {
    fn from(terminal: TerminalView) -> Self {
        Self {
            id: terminal.name,
            state: terminal.status,
            command: terminal.command,
            description: Some(terminal.description),
            exit_code: terminal.exit_code,
            ports: vec![],
        }
    }
}
