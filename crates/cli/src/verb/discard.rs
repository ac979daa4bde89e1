//! `weighlock discard`: throw away what a run has changed on a copy.

use std::process::ExitCode;
use std::time::Duration;

use weighlock_engine::ChangesInfo;
use weighlock_server::{CommandView, FinalizeRequest, Settle};

use super::show::resolve_here;
use crate::client::{Client, Failure, block_on};
use crate::effect::{self, ChangesUrls, Links};
use crate::keys::Keys;
use crate::paths::Paths;
use crate::signals::Signals;
use crate::term::{self, say};
use crate::text::{print_json, safe, were, which_were};
use crate::{ourselves, question};

/// Files that are named before they go, or come.
pub(crate) const NAMED: usize = 20;

/// Discard the changes of a run on a copy
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock discard r_7f3kq2
  weighlock discard r_7f3kq2 -m 'Keep build/reports.'    what the requester is told
  weighlock discard r_7f3kq2 --yes                       without being asked")]
pub(crate) struct Args {
    /// The run: an id, a unique prefix of one, or @last
    id: String,
    /// The reason, which the requester sees verbatim
    #[arg(short = 'm', long = "message", value_name = "WHY")]
    why: Option<String>,
    /// Do not ask for confirmation, even if later changes go too
    #[arg(long)]
    yes: bool,
    /// Print the run as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn discard(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    ourselves::may_decide()?;
    block_on(async {
        let mut client = Client::open(paths).await?;
        let id = resolve_here(&mut client, &args.id).await?;
        let info = ChangesUrls::of_run(&id).fetch(&mut client, NAMED).await?;
        if info.view.state == "held" && !args.yes && !agreed(&info).await? {
            say!("Nothing was discarded.");
            return Ok(ExitCode::FAILURE);
        }
        let request = FinalizeRequest {
            changes: Some(Settle::Discard),
            reason: args.why.clone(),
            ..FinalizeRequest::default()
        };
        // A person may have thought for longer than a connection lasts.
        let mut client = Client::open(paths).await?;
        let path = format!("/commands/{id}/finalize");
        let view: CommandView = client.post(&path, &request).await?;
        if args.json {
            print_json(&view);
            return Ok(ExitCode::SUCCESS);
        }
        let with = match info.needed_by.as_slice() {
            [] => String::new(),
            runs => format!(", and with it {}", runs.join(", ")),
        };
        let id = &view.run.short_id;
        // "1 file is deleted" would say the opposite of what happens here.
        let files = effect::files(&info.view);
        eprintln!("⊘ discarded · {files} would have changed{with}  {id}");
        Ok(ExitCode::SUCCESS)
    })
}

/// Says what goes, and asks where somebody can be asked.
async fn agreed(info: &ChangesInfo) -> Result<bool, Failure> {
    if !term::is_there() {
        return match info.needed_by.is_empty() {
            true => Ok(true),
            false => Err(Failure::new(
                format!(
                    "{} built on it and would go with it; nothing was discarded",
                    were(&info.needed_by)
                ),
                "to discard all of them, add --yes",
            )),
        };
    }
    say!("{}", safe(&info.view.summary));
    effect::lines(info, &Links::default(), NAMED)
        .iter()
        .for_each(|line| say!("  {line}"));
    if !info.needed_by.is_empty() {
        let with = which_were(&info.needed_by);
        say!("discarding it also discards {with} built on it");
    }
    confirm("discard these changes?").await
}

/// Asks a person at the terminal once.
pub(crate) async fn confirm(what: &str) -> Result<bool, Failure> {
    let mut signals = Signals::new()?;
    let mut keys = Keys::new(&mut signals)?;
    Ok(question::confirmed(&mut keys, what, Duration::ZERO).await)
}
