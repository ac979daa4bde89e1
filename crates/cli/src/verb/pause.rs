//! `weighlock pause`: the emergency brake.

use std::process::ExitCode;

use weighlock_engine::PauseView;
use weighlock_server::{PauseList, PauseRequest};

use crate::client::{Client, Failure, block_on};
use crate::ourselves;
use crate::paths::Paths;
use crate::text::{one_line, print_json};
use crate::when::minute;

/// Pause: hold new runs of everyone or of one; nothing is rejected
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock pause                        everything
  weighlock pause coder -m 'Let me look first.'
  weighlock stop --all                   also what runs already
  weighlock resume")]
pub(crate) struct Args {
    /// One agent or person [default: everyone]
    name: Option<String>,
    /// Why
    #[arg(short = 'm', long = "message", value_name = "WHY")]
    why: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn pause(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let request = PauseRequest {
        principal: args.name,
        reason: args.why,
    };
    hold(&request, args.json, paths)
}

/// Pauses, and says what is paused then.
pub(crate) fn hold(request: &PauseRequest, json: bool, paths: &Paths) -> Result<ExitCode, Failure> {
    ourselves::may_decide()?;
    let list: PauseList = block_on(async {
        let mut client = Client::open(paths).await?;
        client.post("/pause", request).await
    })?;
    match json {
        true => print_json(&list),
        false => print(&list.pauses),
    }
    Ok(ExitCode::SUCCESS)
}

/// Says what is paused.
pub(crate) fn print(pauses: &[PauseView]) {
    { pauses.iter() }.for_each(|pause| println!("{}", in_words(pause)));
}

/// `Everything is paused by ana since 14:02. New runs are held: weighlock resume`
pub(crate) fn in_words(pause: &PauseView) -> String {
    let (what, resume) = match &pause.principal {
        None => ("Everything".to_owned(), "weighlock resume".to_owned()),
        Some(name) => {
            let name = one_line(name, 40);
            (name.clone(), format!("weighlock resume {name}"))
        }
    };
    let why = pause.reason.as_deref();
    let why = why.map_or_else(String::new, |why| format!(" “{}”", one_line(why, 60)));
    format!(
        "{what} is paused by {} since {}.{why} New runs are held: {resume}",
        one_line(&pause.by, 40),
        minute(&pause.since)
    )
}
