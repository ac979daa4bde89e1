//! `weighlock explain`: what the policy makes of a command. Runs nothing.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use weighlock_engine::{Explanation, Health};
use weighlock_server::ExplainRequest;

use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;
use crate::{given, judged, text};

/// Show the verdict on a command and its reasons, without running it
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock explain 'git status && rm -rf build/'   one word is shell text
  weighlock explain -- rm -rf build/                several words are taken as they are
  weighlock explain 'npm test' --agent coder
  weighlock explain 'make | tee log' --json")]
pub(crate) struct Args {
    /// The command: one word of shell text, or a program and its arguments
    #[arg(required = true, value_name = "CMD")]
    command: Vec<OsString>,
    /// The sandbox it would run in
    #[arg(short, long, value_name = "NAME")]
    sandbox: Option<String>,
    /// The agent profile it would run under
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The directory it would run in [default: the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The shell that would run it: sh or bash
    #[arg(long, value_name = "SHELL", value_parser = ["sh", "bash"])]
    shell: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn explain(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let mut request = ExplainRequest {
        command: given::command(&args.command)?,
        agent: args.agent.clone(),
        sandbox: args.sandbox.clone(),
        cwd: Some(given::cwd(args.cwd.as_deref())?),
        shell: args.shell.as_deref().map(given::shell),
        ..ExplainRequest::default()
    };
    let judged: Explanation = block_on(async {
        let mut client = Client::open(paths).await?;
        if args.cwd.is_none() {
            request.cwd = place(&mut client, request.sandbox.as_deref(), request.cwd).await?;
        }
        client.post("/policies/explain", &request).await
    })?;
    if args.json {
        text::print_json(&judged);
        return Ok(ExitCode::SUCCESS);
    }
    for warning in &judged.warnings {
        eprintln!("warning: {}", text::safe(warning));
    }
    print!(
        "{}",
        judged::page(&judged, judged::width(std::io::stdout()))
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns `cwd` if it is inside the named sandbox. Otherwise returns none, and
/// the server judges in the sandbox's own directory.
pub(crate) async fn place(
    client: &mut Client,
    sandbox: Option<&str>,
    cwd: Option<String>,
) -> Result<Option<String>, Failure> {
    let (Some(sandbox), Some(cwd)) = (sandbox, &cwd) else {
        return Ok(cwd);
    };
    let health: Health = client.get("/health").await?;
    let mut sandboxes = health.sandboxes.iter();
    let directory = sandboxes
        .find(|known| known.name == sandbox)
        .and_then(|known| known.directory.as_ref());
    let here = std::path::Path::new(cwd).canonicalize();
    Ok(match (directory, here) {
        (Some(directory), Ok(here)) if here.starts_with(directory) => Some(cwd.clone()),
        _ => None,
    })
}
