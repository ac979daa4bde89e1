//! `weighlock resume`: let work go on.

use std::process::ExitCode;

use weighlock_server::{PauseList, PauseRequest};

use super::pause;
use crate::client::{Client, Failure, block_on};
use crate::ourselves;
use crate::paths::Paths;
use crate::text::{one_line, print_json};

/// Resume: start held runs and accept new ones
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
    go_on(args.name, args.json, paths)
}

/// Resumes, and says what is still paused.
pub(crate) fn go_on(
    principal: Option<String>,
    json: bool,
    paths: &Paths,
) -> Result<ExitCode, Failure> {
    ourselves::may_decide()?;
    let request = PauseRequest {
        principal,
        reason: None,
    };
    let (before, now): (PauseList, PauseList) = block_on(async {
        let mut client = Client::open(paths).await?;
        let before = client.get("/pauses").await?;
        Ok((before, client.post("/resume", &request).await?))
    })?;
    if json {
        print_json(&now);
        return Ok(ExitCode::SUCCESS);
    }
    let mut paused = before.pauses.iter().map(|pause| &pause.principal);
    let was_paused = paused.any(|paused| *paused == request.principal);
    println!("{}", done(request.principal.as_deref(), was_paused));
    pause::print(&now.pauses);
    Ok(ExitCode::SUCCESS)
}

/// `Resumed. New runs start, and what was held goes on.`
fn done(name: Option<&str>, was_paused: bool) -> String {
    let name = name.map(|name| one_line(name, 40));
    match (name, was_paused) {
        (None, true) => "Resumed. New runs start, and what was held goes on.".into(),
        (Some(name), true) => {
            format!("{name} is resumed. New runs start, and what was held goes on.")
        }
        (None, false) => "Work was not paused.".into(),
        (Some(name), false) => format!("{name} was not paused."),
    }
}
