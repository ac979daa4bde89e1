//! `weighlock reject`: say no to one thing that waits.

use std::process::ExitCode;

use weighlock_engine::DecisionKind;
use weighlock_server::DecisionRequest;

use crate::client::{Failure, block_on};
use crate::ourselves;
use crate::paths::Paths;
use crate::question;
use crate::text::{one_line, print_json, were};

/// Reject a request that waits for approval
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock reject ap_7f3kq2
  weighlock reject ap_7f3kq2 -m 'Keep build/reports, delete only build/cache.'")]
pub(crate) struct Args {
    /// The approval: an id, or a unique prefix of one
    id: String,
    /// The reason, which the requester sees verbatim
    #[arg(short = 'm', long = "message", value_name = "WHY")]
    why: Option<String>,
    /// Print the approval as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn reject(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    ourselves::may_answer(Some(&args.id), paths)?;
    let (asked, rejected) = block_on(async {
        let asked = question::fetch(paths, &args.id).await?;
        let decision = DecisionRequest {
            reason: args.why.clone(),
            ..question::decision(&asked, DecisionKind::Reject)
        };
        let rejected = question::decide(paths, &asked.approval_id, &decision).await?;
        Ok((asked, rejected))
    })?;
    if args.json {
        print_json(&rejected);
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("⊘ rejected  {}", one_line(&rejected.short_id, 20));
    let with = asked.effect.map(|effect| effect.needed_by);
    let with = with.unwrap_or_default();
    if !with.is_empty() {
        eprintln!("  {} built on it, and went with it", were(&with));
    }
    Ok(ExitCode::SUCCESS)
}
