//! `weighlock audit log`: who did what, where, between two times.

use std::process::ExitCode;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Client, Failure, block_on, escape};
use crate::names::SandboxNames;
use crate::paths::Paths;
use crate::text::{self, command_line, one_line};
use crate::when;

/// How many are fetched at a time.
const STEP: usize = 1000;

#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock audit log --sandbox webshop --since 24h
  weighlock audit log --who coder --kind run.started --since 2026-01-15 --until 2026-01-16
  weighlock audit log --kind approval. --json-lines")]
pub(super) struct Args {
    /// Only in this sandbox
    #[arg(short, long, value_name = "NAME")]
    sandbox: Option<String>,
    /// Only from this time on: 24h (ago), 14:02, 2026-01-15, 2026-01-15T14:02
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    since: Option<String>,
    /// Only before this time
    #[arg(long, value_name = "TIME", value_parser = when::parse)]
    until: Option<String>,
    /// Only what this person or agent did
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only this kind, as `run.started`, or with `run.` all that begin so
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// How many at most, oldest first [default: all]
    #[arg(short = 'n', long)]
    limit: Option<usize>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "json_lines")]
    json: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json_lines: bool,
}

/// A page of the record.
#[derive(Deserialize)]
struct AuditPage {
    entries: Vec<Value>,
    #[serde(default)]
    next: Option<u64>,
}

pub(super) fn log(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let (entries, names) = block_on(async {
        let mut client = Client::open(paths).await?;
        let names = SandboxNames::fetch(&mut client).await?;
        let query = query(args, &names);
        let entries = fetch(&mut client, &query, args.limit.unwrap_or(usize::MAX)).await?;
        Ok((entries, names))
    })?;
    if args.json {
        text::print_json(&json!({ "entries": entries }));
    } else if args.json_lines {
        entries.iter().for_each(|entry| println!("{entry}"));
    } else if entries.is_empty() {
        println!("No entries.");
    } else {
        let rows: Vec<_> = entries.iter().map(|entry| row(entry, &names)).collect();
        text::columns(&rows)
            .iter()
            .for_each(|line| println!("{line}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn query(args: &Args, names: &SandboxNames) -> String {
    let sandbox = args.sandbox.as_deref();
    let sandbox = sandbox.map(|name| names.id(name).to_owned());
    let said = [
        ("sandbox", &sandbox),
        ("actor", &args.who),
        ("kind", &args.kind),
        ("from", &args.since),
        ("to", &args.until),
    ];
    let said = { said.into_iter() }.filter_map(|(name, value)| Some((name, value.as_ref()?)));
    said.map(|(name, value)| format!("&{name}={}", escape(value)))
        .collect()
}

async fn fetch(client: &mut Client, query: &str, limit: usize) -> Result<Vec<Value>, Failure> {
    let mut found: Vec<Value> = vec![];
    let mut after = 0;
    loop {
        let step = (limit - found.len()).min(STEP);
        let page: AuditPage = client
            .get(&format!("/audit?limit={step}&after={after}{query}"))
            .await?;
        found.extend(page.entries);
        match page.next {
            Some(next) if found.len() < limit => after = next,
            _ => return Ok(found),
        }
    }
}

fn row(entry: &Value, names: &SandboxNames) -> Vec<String> {
    let text = |name: &str, width| one_line(entry[name].as_str().unwrap_or_default(), width);
    vec![
        when::exact(entry["time"].as_str().unwrap_or_default()),
        entry["seq"].to_string(),
        text("actor", 20),
        text("kind", 24),
        one_line(names.of(entry["sandbox"].as_str().unwrap_or_default()), 30),
        text("run", 30),
        about(&entry["detail"]),
    ]
}

/// The one thing of an entry that says most.
fn about(detail: &Value) -> String {
    if let Some(command) = detail["command"].as_str() {
        return command_line(command, 80);
    }
    let wanted = [
        "state",
        "reason",
        "rule",
        "label",
        "name",
        "for",
        "principal",
        "approval",
    ];
    let mut found = wanted.iter().filter_map(|&name| detail[name].as_str());
    found
        .next()
        .map_or_else(String::new, |text| one_line(text, 80))
}
