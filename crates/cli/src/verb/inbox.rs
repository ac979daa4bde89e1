//! `weighlock inbox`: what waits for a person.

use std::process::ExitCode;

use weighlock_engine::{ApprovalState, ApprovalView, Risk};
use weighlock_server::ApprovalList;

use crate::client::{Client, Failure, block_on, escape};
use crate::paths::Paths;
use crate::text::{self, command_line, one_line, safe};
use crate::when::{clock, counter, seconds_since};

/// How many are fetched at a time.
const STEP: usize = 500;

/// List requests that wait for approval: high risk first, then the longest
/// waiting
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock inbox
  weighlock inbox --all                  what was decided, too
  weighlock inbox --json                 with the fingerprints that `approve` takes")]
pub(crate) struct Args {
    /// Include decided requests, newest first
    #[arg(long)]
    all: bool,
    /// How many at most
    #[arg(short = 'n', long, default_value_t = 50)]
    limit: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn inbox(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let list = block_on(async {
        let mut client = Client::open(paths).await?;
        let status = if args.all { "all" } else { "pending" };
        fetch(&mut client, status, args.limit).await
    })?;
    if args.json {
        text::print_json(&list);
        return Ok(ExitCode::SUCCESS);
    }
    list.approvals.iter().for_each(print);
    if list.approvals.is_empty() {
        println!("Nothing waits for you.");
    } else if list.waiting > 0 {
        eprintln!("{}", waiting(list.waiting));
    }
    Ok(ExitCode::SUCCESS)
}

/// `2 approvals wait: weighlock approve`
pub(crate) fn waiting(count: u64) -> String {
    match count {
        1 => "1 approval waits: weighlock approve".into(),
        count => format!("{count} approvals wait: weighlock approve"),
    }
}

/// Fetches so many, page by page.
pub(crate) async fn fetch(
    client: &mut Client,
    status: &str,
    limit: usize,
) -> Result<ApprovalList, Failure> {
    let mut found = vec![];
    let mut cursor: Option<String> = None;
    loop {
        let step = (limit - found.len()).clamp(1, STEP);
        let mut path = format!("/approvals?status={status}&limit={step}");
        if let Some(cursor) = cursor.take() {
            path.push_str(&format!("&cursor={}", escape(&cursor)));
        }
        let page: ApprovalList = client.get(&path).await?;
        found.extend(page.approvals);
        cursor = page.cursor;
        if cursor.is_none() || found.len() >= limit {
            return Ok(ApprovalList {
                approvals: found,
                cursor,
                waiting: page.waiting,
            });
        }
    }
}

fn print(approval: &ApprovalView) {
    let id = one_line(&approval.short_id, 12);
    let many = match approval.count {
        0 | 1 => String::new(),
        count => format!("  ×{count}"),
    };
    println!(
        "{id:<10} {:<16} {:>7}  {} · {}{many}",
        label(approval),
        since(approval),
        one_line(&approval.requested_by, 20),
        one_line(&approval.sandbox, 20),
    );
    println!("{:<10} {}", "", command_line(&approval.command, 100));
    println!("{:<10} {}", "", safe(&approval.summary));
    if let Some(effect) = &approval.effect {
        println!("{:<10} {}", "", safe(&effect.header));
    }
}

fn label(approval: &ApprovalView) -> String {
    let by = approval.decided_by.as_deref().unwrap_or("somebody");
    let by = one_line(by, 20);
    match (approval.state, approval.risk) {
        (ApprovalState::Pending, Risk::High) => "High risk".into(),
        (ApprovalState::Pending, _) => "Needs approval".into(),
        (ApprovalState::Approved, _) => format!("Approved by {by}"),
        (ApprovalState::Rejected, _) => format!("Rejected by {by}"),
        (ApprovalState::Expired, _) => "Expired".into(),
        (ApprovalState::Withdrawn, _) => "Withdrawn".into(),
        (ApprovalState::Blocked, _) => "Blocked".into(),
    }
}

/// How long it waits, or when it was over.
fn since(approval: &ApprovalView) -> String {
    match (&approval.decided_at, approval.state) {
        (_, ApprovalState::Pending) => counter(seconds_since(&approval.created_at)),
        (Some(decided), _) => clock(decided),
        (None, _) => clock(&approval.created_at),
    }
}
