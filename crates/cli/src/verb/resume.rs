//! `weighlock resume`: let work go on.

use std::process::ExitCode;

use weighlock_server::PauseRequest;

use crate::client::Failure;
use crate::paths::Paths;

/// Let runs start again, and what was held go on
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock resume
  weighlock resume coder")]
pub(crate) struct Args {
    /// The agent or person that was paused [default: everyone]
    name: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn resume(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let request = PauseRequest {
        principal: args.name,
        reason: None,
    };
    super::pause::set("/resume", &request, args.json, paths)
}
