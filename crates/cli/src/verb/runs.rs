//! `weighlock runs`: what was asked for lately.

use std::process::ExitCode;

use weighlock_engine::{Run, State};
use weighlock_server::CommandList;

use crate::client::{Client, Failure, block_on, escape};
use crate::paths::Paths;
use crate::text;

/// List runs, newest first
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock runs
  weighlock runs failed            by state
  weighlock runs cargo test        by text
  weighlock runs --limit 500 --json-lines")]
pub(crate) struct Args {
    /// A state (running, succeeded, failed, timed_out, killed, blocked,
    /// rejected, lost) and words that the command contains
    query: Vec<String>,
    /// How many
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
    let (mut state, mut words) = (None, vec![]);
    for word in &args.query {
        match serde_json::from_value::<State>(word.as_str().into()) {
            Ok(_) if state.is_none() => state = Some(word.clone()),
            _ => words.push(word.as_str()),
        }
    }
    let mut found: Vec<Run> = vec![];
    let mut cursor: Option<String> = None;
    while found.len() < args.limit {
        let mut path = format!("/commands?limit={}", (args.limit - found.len()).min(500));
        for (name, value) in [
            ("state", state.clone()),
            ("q", (!words.is_empty()).then(|| words.join(" "))),
            ("cursor", cursor.take()),
        ] {
            if let Some(value) = value {
                path.push_str(&format!("&{name}={}", escape(&value)));
            }
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
        println!(
            "{:<9} {:<10} {:<44} {:>10}  {}",
            clock(&run.created_at),
            run.short_id,
            text::one_line(&run.command, 44),
            took,
            result(run),
        );
    }
}

/// The result in a word, as in the run list of the pages.
fn result(run: &Run) -> String {
    let code = run.exit_code.unwrap_or_default();
    match run.state {
        State::Running => "running…".into(),
        State::Succeeded => "✓ 0".into(),
        State::Failed => format!("✗ {code}"),
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

/// The time of day here, or the date if that was not today.
fn clock(time: &str) -> String {
    let Ok(time) = time.parse::<jiff::Timestamp>() else {
        return String::new();
    };
    let zone = jiff::tz::TimeZone::system();
    let (then, now) = (
        time.to_zoned(zone.clone()),
        jiff::Timestamp::now().to_zoned(zone),
    );
    if then.date() == now.date() {
        then.strftime("%H:%M:%S").to_string()
    } else {
        then.strftime("%d %b").to_string()
    }
}
