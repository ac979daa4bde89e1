//! `weighlock commit`: apply what a run has changed on a copy.

use std::process::ExitCode;

use weighlock_engine::Run;
use weighlock_server::{CommandView, FinalizeRequest, Settle};

use super::approve::{not_applied, result};
use super::show::resolve_here;
use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;
use crate::text::{aligned, print_json};
use crate::{effect, judged, ourselves};

/// Apply the changes of a run to the real files
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock diff r_7f3kq2                    look at it first
  weighlock commit r_7f3kq2
  weighlock diff r_7f3kq2 --stat --json      in a script: look, and then
  weighlock commit r_7f3kq2 --hash H         apply exactly what was looked at")]
pub(crate) struct Args {
    /// The run: an id, a unique prefix of one, or @last
    id: String,
    /// Apply only if the changes still have this hash, from `weighlock diff
    /// --json`
    #[arg(long, value_name = "H")]
    hash: Option<String>,
    /// Print the run as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn commit(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    ourselves::may_decide()?;
    let view: CommandView = block_on(async {
        let mut client = Client::open(paths).await?;
        let id = resolve_here(&mut client, &args.id).await?;
        let request = FinalizeRequest {
            changes: Some(Settle::Commit),
            hash: args.hash.clone(),
            ..FinalizeRequest::default()
        };
        client
            .post(&format!("/commands/{id}/finalize"), &request)
            .await
    })?;
    match args.json {
        true => print_json(&view),
        false => say_applied(&view.run),
    }
    // One of two people who have to approve it has applied nothing yet.
    Ok(ExitCode::from(u8::from(!effect::is(&view.run, "applied"))))
}

/// Says that a run's changes are in the live tree now, or why not.
pub(crate) fn say_applied(run: &Run) {
    let said = match effect::is(run, "applied") {
        true => format!("✓ applied · {}", result(run)),
        false => not_applied(run),
    };
    let width = judged::width(std::io::stderr());
    eprintln!("{}", aligned(&said, &run.short_id, width));
}
