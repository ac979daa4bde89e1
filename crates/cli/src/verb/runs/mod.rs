//! `weighlock runs`: what was asked for lately.

mod filter;

use std::process::ExitCode;

use weighlock_engine::{Run, State};
use weighlock_server::CommandList;

use crate::client::{Client, Failure, block_on, escape};
use crate::paths::Paths;
use crate::text;
use crate::verb::show::is_queued;
use crate::when::clock;
use filter::RunFilter;

/// How many are fetched at a time.
const STEP: usize = 500;

/// List runs, newest first
#[derive(clap::Args)]
#[command(
    before_help = "Examples:
  weighlock runs
  weighlock runs failed                      by state
  weighlock runs cargo test                  by text
  weighlock runs coder failed since:24h      of an agent, lately
  weighlock runs sandbox:webshop by:ana      where, and who allowed it
  weighlock runs --limit 500 --json-lines",
    after_help = "Filters: a state (waiting, held, running, succeeded, failed, timed_out, killed, \
blocked, rejected, expired, withdrawn, lost) or status (pending, approved, executed), the name of \
an agent or person, agent:NAME, status:STATUS, state:STATE, sandbox:NAME, by:NAME, session:ID, \
since:TIME, until:TIME (24h for a day ago, 14:02, 2026-01-15), verdict:auto|ask|reject, exit:CODE \
or exit:!0, rule:NAME, terminal:NAME, id:PREFIX. All other words are searched in the command."
)]
pub(crate) struct Args {
    /// Filters, and words in the command
    query: Vec<String>,
    /// How many at most
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: usize,
    /// Print one JSON object
    #[arg(long, conflicts_with = "json_lines")]
    json: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json_lines: bool,
}

pub(crate) fn runs(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let runs = block_on(async {
        let mut client = Client::open(paths).await?;
        fetch(&mut client, args).await
    })?;
    if args.json {
        text::print_json(&CommandList {
            commands: runs,
            cursor: None,
            count: None,
            more: false,
        });
    } else if args.json_lines {
        for run in &runs {
            println!("{}", serde_json::to_string(run).expect("always JSON"));
        }
    } else {
        print(&runs);
    }
    Ok(ExitCode::SUCCESS)
}

async fn fetch(client: &mut Client, args: &Args) -> Result<Vec<Run>, Failure> {
    let filter = RunFilter::read(&args.query, client).await?;
    let mut found: Vec<Run> = vec![];
    let mut cursor: Option<String> = None;
    while found.len() < args.limit {
        let step = (args.limit - found.len()).min(STEP);
        let mut path = format!("/commands?limit={step}{}", filter.query());
        if let Some(cursor) = cursor.take() {
            path.push_str(&format!("&cursor={}", escape(&cursor)));
        }
        let page: CommandList = client.get(&path).await?;
        found.extend(page.commands);
        match page.cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    Ok(found)
}

fn print(runs: &[Run]) {
    if runs.is_empty() {
        println!("No runs.");
        return;
    }
    for run in runs {
        let took = run.detail.duration_ms.map_or(String::new(), text::duration);
        let altered = if run.altered { "  ⚠ altered" } else { "" };
        println!(
            "{:<9} {:<10} {:<12} {:<44} {:>10}  {}{altered}",
            clock(&run.created_at),
            run.short_id,
            text::one_line(&run.requested_by, 12),
            text::command_line(&run.command, 44),
            took,
            result(run),
        );
    }
}

/// The result in a word, as in the run list of the pages.
pub(crate) fn result(run: &Run) -> String {
    match run.state {
        State::Waiting => "◔ waiting".into(),
        State::Held => "◔ held".into(),
        State::Expired => "◌ expired".into(),
        State::Withdrawn => "◌ withdrawn".into(),
        State::Running if is_queued(run) => "◔ queued".into(),
        State::Running => "running…".into(),
        State::Succeeded => "✓ 0".into(),
        State::Failed => match run.exit_code {
            Some(code) => format!("✗ {code}"),
            None => "✗ not started".into(),
        },
        State::TimedOut => match &run.detail.reason {
            Some(reason) if reason.code == "idle_limit" => "⏱ silent".into(),
            _ => format!("⏱ after {}", text::duration(run.detail.timeout_ms as f64)),
        },
        State::Killed => match &run.detail.reason {
            Some(_) => "■ stopped".into(),
            None => format!("■ signal {}", run.signal.unwrap_or_default()),
        },
        State::Blocked => "⛔ blocked".into(),
        State::Rejected => "⊘ rejected".into(),
        State::Lost => "? lost".into(),
    }
}
