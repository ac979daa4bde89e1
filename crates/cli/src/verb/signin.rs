//! `weighlock signin`: a link that signs a person in with a browser.

use std::process::ExitCode;

use weighlock_server::LinkView;

use crate::client::{Client, Failure, block_on};
use crate::ourselves;
use crate::paths::Paths;
use crate::text::{self, counted, safe};

/// Print a one-time link that signs you in with a browser
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock signin")]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn signin(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    ourselves::may_decide()?;
    let (address, mut made): (String, LinkView) = block_on(async {
        let mut client = Client::open(paths).await?;
        // Not before: nobody knows where a server will be that does not run.
        let Some(address) = address(paths) else {
            return Err(Failure::new(
                "the server has no address that a browser could reach; no link was made",
                "`weighlock serve --replace --listen 127.0.0.1:PORT` gives it one",
            ));
        };
        let made = client.post("/signin/link", &serde_json::json!({})).await?;
        Ok((address, made))
    })?;
    made.link = format!("{address}{}", made.link);
    if args.json {
        text::print_json(&made);
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}", safe(&made.link));
    let minutes = counted(made.expires_in_seconds / 60, "minute");
    eprintln!("valid once, {minutes}");
    Ok(ExitCode::SUCCESS)
}

/// Where the server of our state directory can be reached by a browser; known
/// only to those who may read that directory.
fn address(paths: &Paths) -> Option<String> {
    let written = std::fs::read_to_string(super::serve::address_path(paths)).ok()?;
    Some(written.trim().to_owned()).filter(|address| address.starts_with("http"))
}
