//! `weighlock show`: everything known about one run.

use std::process::ExitCode;

use weighlock_engine::{Run, SandboxView, State};
use weighlock_server::{CommandList, CommandView};

use crate::client::{Client, Failure, block_on, escape};
use crate::paths::Paths;
use crate::{effect, text};

/// Show everything known about a run
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock show @last
  weighlock show r_7f3kq2 --json")]
pub(crate) struct Args {
    /// The run: an id, a unique prefix of one, or @last
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn show(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    block_on(async {
        let mut client = Client::open(paths).await?;
        let id = resolve(&mut client, &args.id).await?;
        let view: CommandView = client.get(&format!("/commands/{id}")).await?;
        if args.json {
            text::print_json(&view);
            return Ok(ExitCode::SUCCESS);
        }
        let terminal = terminal_of(&mut client, &view.run).await;
        let lines = lines(&view, terminal.as_ref());
        lines.iter().for_each(|line| println!("{line}"));
        Ok(ExitCode::SUCCESS)
    })
}

/// Fetches the terminal at whose shell a command was typed. What became of its
/// record does not keep anybody from reading this one.
pub(crate) async fn terminal_of(client: &mut Client, run: &Run) -> Option<Run> {
    let id = run.detail.in_terminal.as_ref()?;
    let view: Result<CommandView, Failure> = client.get(&format!("/commands/{id}")).await;
    view.ok().map(|view| view.run)
}

/// Turns what a person typed into what goes into an address.
pub(crate) async fn resolve(client: &mut Client, id: &str) -> Result<String, Failure> {
    if id.trim().is_empty() {
        return Err(Failure::new(
            "no run is named; nothing was done",
            "`weighlock runs` lists them, and @last is the last one",
        ));
    }
    if id != "@last" {
        return Ok(escape(id));
    }
    let list: CommandList = client.get("/commands?limit=1").await?;
    match list.commands.first() {
        Some(run) => Ok(run.command_id.clone()),
        None => Err(Failure::new(
            "there is no run yet",
            "start one: weighlock run -- CMD",
        )),
    }
}

/// Resolves an id for a verb that changes files: `@last` is accepted only in
/// the directory where the last run's files are.
pub(crate) async fn resolve_here(client: &mut Client, id: &str) -> Result<String, Failure> {
    let resolved = resolve(client, id).await?;
    if id == "@last" {
        let view: CommandView = client.get(&format!("/commands/{resolved}")).await?;
        check_here(&view.run)?;
    }
    Ok(resolved)
}

/// Refuses a run of another place than the current directory.
fn check_here(run: &Run) -> Result<(), Failure> {
    let place = place(run);
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    if here.is_ok_and(|here| here.starts_with(place)) {
        return Ok(());
    }
    let id = &run.short_id;
    Err(Failure::new(
        format!(
            "the last run, {id} (`{}`), was in {}; nothing was done",
            text::command_line(&run.command, 60),
            text::one_line(place, usize::MAX)
        ),
        format!("if that is the one, name it: {id}"),
    ))
}

/// What stands beside a run that the audit contradicts.
const ALTERED: &str =
    "⚠ this is not what was recorded: somebody has edited the database (weighlock audit verify)";

/// Where a run's files are.
pub(crate) fn place(run: &Run) -> &str {
    let sandbox = run.detail.sandbox.as_ref();
    let directory = sandbox.and_then(|sandbox| sandbox.directory.as_deref());
    directory.unwrap_or(&run.cwd)
}

/// Returns everything about a run, one thing on each line; with the terminal
/// that it was typed at, where it was.
pub(crate) fn lines(view: &CommandView, terminal: Option<&Run>) -> Vec<String> {
    let run = &view.run;
    let detail = &run.detail;
    let mut rows: Vec<(&str, String)> = vec![
        ("run", format!("{}  ({})", run.short_id, run.command_id)),
        ("command", text::safe_command(&run.command)),
        ("state", ending(run)),
    ];
    let mut add = |name, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    add("altered", run.altered.then(|| ALTERED.to_owned()));
    add(
        "asked for",
        detail.original.as_deref().map(text::safe_command),
    );
    add("what for", detail.description.as_deref().map(text::safe));
    add(
        "why",
        detail
            .reason
            .as_ref()
            .map(|reason| text::safe(&reason.text)),
    );
    add(
        "rule",
        detail
            .reason
            .as_ref()
            .and_then(|reason| reason.rule.clone())
            .map(|rule| text::safe(&rule)),
    );
    add(
        "hint",
        detail
            .reason
            .as_ref()
            .and_then(|reason| reason.remedy.clone()),
    );
    add("directory", Some(text::safe(&run.cwd)));
    add("shell", Some(detail.shell.clone()));
    add(
        "asked by",
        Some(format!(
            "{}, {}",
            text::safe(&run.requested_by),
            run.created_at
        )),
    );
    add("approved by", run.approved_by.as_deref().map(text::safe));
    add("approval", run.approval_id.clone());
    add("session", run.session_id.clone());
    add("ended", run.ended_at.clone());
    add(
        "limit",
        Some(detail.timeout_ms)
            .filter(|&ms| ms > 0)
            .map(|ms| text::duration(ms as f64)),
    );
    add(
        "pipeline",
        detail.pipestatus.as_ref().map(|codes| {
            let codes: Vec<String> = codes.iter().map(i32::to_string).collect();
            format!("exit codes {}", codes.join(" | "))
        }),
    );
    add(
        "used",
        detail.usage.as_ref().map(|used| {
            format!(
                "{} CPU, {} at most in one process",
                text::duration(used.cpu_ms),
                text::size(used.peak_memory_bytes)
            )
        }),
    );
    add(
        "now",
        view.load.as_ref().map(|load| {
            format!(
                "{} processes, {}",
                load.processes,
                text::size(load.memory_bytes)
            )
        }),
    );
    // What is typed has no walls of its own.
    let around = terminal.and_then(|terminal| terminal.detail.sandbox.as_ref());
    if let Some(sandbox) = around.or(detail.sandbox.as_ref()) {
        add("sandbox", Some(in_words(sandbox, &walls(run, terminal))));
        for layer in &sandbox.layers {
            let mark = match layer.holds.as_str() {
                "whole" => '✓',
                "partly" => '!',
                "unwanted" => '-',
                _ => '✗',
            };
            let line = format!("{mark} {:<10} {}", layer.name, text::safe(&layer.how));
            add("", Some(line));
        }
    }
    for denial in &detail.denials {
        add("stopped by", Some(text::safe(&denial.text)));
        add("", Some(text::safe(&denial.remedy)));
    }
    for left in &detail.left_running {
        add(
            "left",
            Some(format!(
                "{} (pid {}), {}",
                text::safe_command(&left.command),
                left.pid,
                left.fate
            )),
        );
    }
    add("changes", changed(run));
    add("output", Some(output(run)));
    let applied = effect::applied_note(run);
    for warning in { detail.warnings.iter() }.filter(|&warning| Some(warning) != applied) {
        add("warning", Some(text::safe(warning)));
    }
    { rows.into_iter() }
        .map(|(name, value)| {
            let value = value.replace('\n', "\n             ");
            format!("{name:<12} {value}")
        })
        .collect()
}

/// How strong the walls are, or whose they are.
fn walls(run: &Run, terminal: Option<&Run>) -> String {
    let level = |run: &Run| run.detail.sandbox.as_ref()?.level.clone();
    match (&run.detail.in_terminal, terminal) {
        (Some(_), Some(terminal)) => {
            let name = terminal.detail.terminal.as_ref();
            let name = name.map_or("", |terminal| &terminal.name);
            let (name, id) = (text::one_line(name, 40), &terminal.short_id);
            let level = level(terminal).map_or_else(String::new, |level| format!(": {level}"));
            format!("within the walls of terminal {name} ({id}){level}")
        }
        (Some(id), None) => format!("within the walls of its terminal ({})", text::safe(id)),
        (None, _) => format!("walls {}", level(run).unwrap_or("not known yet".into())),
    }
}

fn in_words(sandbox: &SandboxView, walls: &str) -> String {
    let files = match (sandbox.files.as_str(), &sandbox.directory) {
        ("write", Some(dir)) => format!("writes in {}", text::safe(dir)),
        ("copy", Some(dir)) => format!("writes to a copy of {}", text::safe(dir)),
        ("read", Some(dir)) => format!("reads in {}", text::safe(dir)),
        _ => "an empty home directory".into(),
    };
    format!(
        "{}: {files}, network {}, {walls}",
        text::safe(&sandbox.name),
        sandbox.network
    )
}

fn output(run: &Run) -> String {
    let output = &run.detail.output;
    if output.bytes == 0 {
        return "none".into();
    }
    let mut text = format!(
        "{} in {} lines ({} bytes stdout, {} bytes stderr)",
        text::size(output.bytes),
        output.lines,
        output.stdout_bytes,
        output.stderr_bytes
    );
    if output.dropped_bytes > 0 {
        text.push_str(&format!(
            ", {} bytes in the middle not kept",
            output.dropped_bytes
        ));
    }
    if output.lost_bytes > 0 {
        text.push_str(&format!(
            ", {} bytes could not be stored",
            output.lost_bytes
        ));
    }
    if output.binary {
        text.push_str(", binary");
    }
    if output.removed {
        text.push_str(", removed to make room");
    }
    text
}

/// Whether it is for a terminal in which something else goes on.
pub(crate) fn is_queued(run: &Run) -> bool {
    let reason = run.detail.reason.as_ref();
    run.state == State::Running && reason.is_some_and(|reason| reason.code == "queued")
}

/// How a run ended, or that it has not.
pub(crate) fn ending(run: &Run) -> String {
    let took = run
        .detail
        .duration_ms
        .map_or(String::new(), |ms| format!(" in {}", text::duration(ms)));
    let reason = run.detail.reason.as_ref();
    match run.state {
        State::Waiting if effect::is_asked_about(run) => match run.exit_code {
            Some(code) => format!("◔ exit {code}{took}, its changes wait for approval"),
            None => "◔ ended, its changes wait for approval".into(),
        },
        State::Waiting => "◔ waiting for approval".into(),
        State::Held => "◔ held until work is resumed".into(),
        State::Expired => format!("◌ expired, nobody answered; {}", nothing(run)),
        State::Withdrawn => format!("◌ withdrawn, {}", nothing(run)),
        State::Running if is_queued(run) => "◔ waits for its turn in the terminal".into(),
        State::Running => "● running".into(),
        State::Succeeded => format!("✓ exit 0{took}"),
        State::Failed => match run.exit_code {
            Some(0) => "✗ exit 0, but its changes were not applied".into(),
            Some(code) => format!("✗ exit {code}{took}"),
            None => "✗ not started".into(),
        },
        State::TimedOut => {
            let reason = reason.map_or("time limit", |reason| reason.text.trim_end_matches('.'));
            format!("⏱ {reason}")
        }
        State::Killed => match (reason, run.signal) {
            (Some(reason), _) => format!("■ {}", text::safe(reason.text.trim_end_matches('.'))),
            (None, signal) => format!("■ ended by signal {}{took}", signal.unwrap_or_default()),
        },
        State::Blocked => format!("⛔ blocked, {}", nothing(run)),
        State::Rejected => format!("⊘ rejected, {}", nothing(run)),
        State::Lost => "? lost".into(),
    }
}

/// What did not happen: a command that ran on a copy has run.
pub(crate) fn nothing(run: &Run) -> &'static str {
    match run.detail.changes {
        Some(_) => "nothing was applied",
        None => "nothing was run",
    }
}

/// What it changed, and what became of that.
fn changed(run: &Run) -> Option<String> {
    let changes = run.detail.changes.as_ref()?;
    let id = &run.short_id;
    let by = |name: &Option<String>| name.as_deref().map_or("somebody".into(), text::safe);
    let fate = match changes.state.as_str() {
        "none" => return Some("none".into()),
        "held" => format!(
            "not applied yet: weighlock diff {id}, weighlock commit {id}, weighlock discard {id}"
        ),
        "applied" => {
            let by = match changes.applied_by.as_deref() {
                Some("policy") => "applied unasked".to_owned(),
                _ => format!("applied by {}", by(&changes.applied_by)),
            };
            match changes.can_undo {
                true => format!("{by}, can be undone: weighlock undo {id}"),
                false => format!("{by}, cannot be undone any more"),
            }
        }
        "undone" => format!("undone by {}", by(&changes.undone_by)),
        state => text::safe(state),
    };
    let mut lines = vec![format!("{}; {fate}", text::safe(&changes.summary))];
    lines.extend(
        changes
            .paths
            .iter()
            .map(|path| text::one_line(path, usize::MAX)),
    );
    let more = changes.count().saturating_sub(changes.paths.len() as u64);
    if more > 0 {
        lines.push(format!("… and {more} more: weighlock diff {id} --stat"));
    }
    Some(lines.join("\n"))
}
