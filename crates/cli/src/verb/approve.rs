//! `weighlock approve`: decide what waits, one question after the other.

use std::collections::HashSet;
use std::process::ExitCode;

use weighlock_engine::{ApprovalState, ApprovalView, DecisionKind, Role, Run};
use weighlock_server::{CommandView, DecisionRequest, Me};

use super::show::ending;
use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;
use crate::question::{self, Put, QuestionOutcome};
use crate::signals::Signals;
use crate::term::{self, say};
use crate::text::{self, aligned, print_json};
use crate::{effect, judged, ourselves};

/// How long `approve` waits for the approved command to end. Most commands have
/// ended by then, and a person should not sit waiting for a longer one.
const END_MS: u64 = 2000;

/// Decide on requests that wait for approval
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock approve                              everything that waits, one by one
  weighlock approve ap_7f3kq2
  weighlock inbox --json                         in a script: look, and then
  weighlock approve ap_7f3kq2 --fingerprint F    approve exactly what was looked at")]
pub(crate) struct Args {
    /// The approval: an id, or a unique prefix of one
    id: Option<String>,
    /// Approve without confirmation; only at a terminal, or with --fingerprint
    #[arg(long, requires = "id")]
    yes: bool,
    /// Approve only if the request still has this fingerprint, from `weighlock
    /// inbox --json`
    #[arg(long, value_name = "F", requires = "id")]
    fingerprint: Option<String>,
    /// Print the approval as one JSON object
    #[arg(long, requires = "id")]
    json: bool,
}

pub(crate) fn approve(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    ourselves::may_answer(args.id.as_deref(), paths)?;
    let terminal = term::is_there();
    block_on(async {
        let named = args.id.as_deref();
        match (named, &args.fingerprint) {
            (Some(id), Some(fingerprint)) => exactly(id, fingerprint, args.json, paths).await,
            (Some(id), None) if args.yes && terminal => as_it_is(id, args.json, paths).await,
            _ if !terminal => Err(Failure::new(
                "nobody can be asked without a terminal; nothing was decided",
                "look with `weighlock inbox --json`, then `weighlock approve ID --fingerprint F`",
            )),
            (Some(id), None) => one(id, paths).await,
            (None, _) => all(paths).await,
        }
    })
}

/// Approves what was looked at before.
async fn exactly(
    id: &str,
    fingerprint: &str,
    json: bool,
    paths: &Paths,
) -> Result<ExitCode, Failure> {
    let decision = DecisionRequest {
        kind: DecisionKind::ApproveOnce,
        fingerprint: fingerprint.to_owned(),
        reason: None,
        through: None,
        command: None,
        rules: vec![],
        blocks: vec![],
    };
    let approval = question::decide(paths, id, &decision).await?;
    match json {
        true => print_json(&approval),
        false => report(&approval, paths).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows a question, and approves what was shown.
async fn as_it_is(id: &str, json: bool, paths: &Paths) -> Result<ExitCode, Failure> {
    let asked = question::look(paths, id).await?;
    for line in question::lines(&asked, Put::default(), judged::width(std::io::stderr())) {
        say!("{line}");
    }
    exactly(&asked.approval_id, &asked.fingerprint, json, paths).await
}

async fn one(id: &str, paths: &Paths) -> Result<ExitCode, Failure> {
    may_decide(paths).await?;
    let mut signals = Signals::new()?;
    let outcome = question::put(paths, &mut signals, id, Put::default()).await?;
    told(outcome, paths).await?;
    Ok(ExitCode::SUCCESS)
}

/// Goes through everything that waits, what comes meanwhile included.
async fn all(paths: &Paths) -> Result<ExitCode, Failure> {
    may_decide(paths).await?;
    let mut signals = Signals::new()?;
    let mut seen = HashSet::new();
    loop {
        let mut client = Client::open(paths).await?;
        let mut waiting = super::inbox::fetch(&mut client, "pending", usize::MAX)
            .await?
            .approvals;
        waiting.retain(|approval| !seen.contains(&approval.approval_id));
        let Some(first) = first(&waiting) else {
            let more = if seen.is_empty() { "" } else { " else" };
            say!("Nothing{more} waits for you.");
            return Ok(ExitCode::SUCCESS);
        };
        let put = Put {
            place: Some((seen.len() + 1, seen.len() + waiting.len())),
            ..Put::default()
        };
        seen.insert(first.approval_id.clone());
        let outcome = question::put(paths, &mut signals, &first.approval_id, put).await?;
        if !told(outcome, paths).await? {
            return Ok(ExitCode::SUCCESS);
        }
        say!("");
    }
}

/// Returns the one to put next: the first, or what it was built on, which can
/// only be applied before it.
fn first(waiting: &[ApprovalView]) -> Option<&ApprovalView> {
    let below = |asked: &ApprovalView| {
        let built_on = { asked.effect.iter() }.flat_map(|effect| &effect.changes.built_on);
        let runs: Vec<&String> = built_on.collect();
        let is_below = |other: &&ApprovalView| {
            other.approval_id != asked.approval_id
                && other.command_ids.iter().any(|run| runs.contains(&run))
        };
        waiting.iter().find(is_below)
    };
    let mut first = waiting.first()?;
    // Nothing was built on itself; but no answer of a server may hold us here.
    for _ in waiting {
        match below(first) {
            Some(earlier) => first = earlier,
            None => break,
        }
    }
    Some(first)
}

/// Refuses early what the server would refuse in the end.
async fn may_decide(paths: &Paths) -> Result<(), Failure> {
    let mut client = Client::open(paths).await?;
    let me: Me = client.get("/me").await?;
    match me.role >= Role::Approver {
        true => Ok(()),
        false => Err(Failure::new(
            format!(
                "{} is {} and may not decide",
                me.principal_id,
                me.role.word()
            ),
            "this needs the role approver",
        )),
    }
}

/// Says what became of a question; returns whether to go on.
pub(crate) async fn told(outcome: QuestionOutcome, paths: &Paths) -> Result<bool, Failure> {
    match outcome {
        QuestionOutcome::Quit | QuestionOutcome::Interrupted => return Ok(false),
        QuestionOutcome::Next => {}
        QuestionOutcome::Over(approval) => say!("{}", question::how_it_ended(&approval)),
        QuestionOutcome::Answered(approval) => report(&approval, paths).await?,
    }
    Ok(true)
}

/// `exit 0 · 38 ms`
pub(crate) fn result(run: &Run) -> String {
    match (run.exit_code, run.detail.duration_ms) {
        (Some(code), Some(took)) => format!("exit {code} · {}", text::duration(took)),
        _ => ending(run),
    }
}

/// Says what an answer has led to.
async fn report(approval: &ApprovalView, paths: &Paths) -> Result<(), Failure> {
    let width = judged::width(std::io::stderr());
    match (approval.state, approval.command_ids.first()) {
        (ApprovalState::Approved, Some(id)) => {
            let mut client = Client::open(paths).await?;
            let path = format!("/commands/{id}?wait_ms={END_MS}");
            let run = client.get::<CommandView>(&path).await?.run;
            let many = match approval.count {
                0 | 1 => String::new(),
                count => format!(" ({count})"),
            };
            let said = match (&approval.effect, effect::is(&run, "applied")) {
                (Some(tried), true) if tried.changes.count() > 0 => {
                    format!("✓ applied · {}", result(&run))
                }
                (Some(_), false) => not_applied(&run),
                _ => format!("✓ approved{many} · {}", result(&run)),
            };
            say!("{}", aligned(&said, &run.short_id, width));
        }
        (ApprovalState::Rejected, _) => {
            say!("{}", aligned("⊘ rejected", &approval.short_id, width))
        }
        (ApprovalState::Pending, _) => say!("✓ approved · another person has to approve it, too"),
        _ => say!("{}", question::how_it_ended(approval)),
    }
    Ok(())
}

/// Says why what was approved is not applied.
pub(crate) fn not_applied(run: &Run) -> String {
    let why = run.detail.reason.as_ref();
    let why = why.map_or_else(String::new, |why| format!(" · {}", text::safe(&why.text)));
    format!("✗ not applied{why}")
}
