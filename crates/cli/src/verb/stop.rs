//! `weighlock stop`: end runs and everything they started.

use std::process::ExitCode;

use weighlock_engine::Run;
use weighlock_server::{CommandList, CommandView, StopRequest};

use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;

use super::show::{ending, resolve};

/// Stop a run and everything it started
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock stop r_7f3kq2
  weighlock stop --all")]
pub(crate) struct Args {
    /// The run: an id, a unique prefix of one, or @last
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    id: Option<String>,
    /// Stop all runs
    #[arg(long)]
    all: bool,
    /// Kill at once, without asking the processes to end first
    #[arg(short, long)]
    force: bool,
}

pub(crate) fn stop(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    block_on(async {
        let mut client = Client::open(paths).await?;
        let ids = match &args.id {
            Some(id) => vec![resolve(&mut client, id).await?],
            None => running(&mut client).await?,
        };
        if ids.is_empty() {
            println!("Nothing runs.");
        }
        let how = StopRequest {
            interrupt: false,
            grace_ms: args.force.then_some(0),
        };
        let mut done = ExitCode::SUCCESS;
        for id in ids {
            let address = format!("/commands/{id}/stop");
            match client.post::<CommandView>(&address, &how).await {
                Ok(view) => {
                    println!("{}  {}", view.run.short_id, stopped(&view.run));
                    if view.run.open {
                        done = ExitCode::FAILURE;
                    }
                }
                // With --all, one that ends by itself meanwhile is as good.
                Err(_) if args.all => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(done)
    })
}

/// A run whose shell had ended before says how; now the rest ended too.
fn stopped(run: &Run) -> String {
    match run.detail.left_running.len() {
        0 => ending(run),
        left => format!("{}, and {left} left running were ended", ending(run)),
    }
}

async fn running(client: &mut Client) -> Result<Vec<String>, Failure> {
    let list: CommandList = client.get("/commands?open=true&limit=500").await?;
    Ok(list
        .commands
        .into_iter()
        .map(|run| run.command_id)
        .collect())
}
