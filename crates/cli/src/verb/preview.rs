//! `weighlock preview`: see what a command changes before it changes anything.

use std::ffi::OsString;
use std::process::ExitCode;

use super::run::{self, Asks, RunOptions};
use crate::client::Failure;
use crate::paths::Paths;

/// Run a command on a copy, show its changes, and ask whether to apply them
#[derive(clap::Args)]
#[command(
    before_help = "Examples:
  weighlock preview 'sed -i s/a/b/ README.md'      one word is shell text
  weighlock preview -- make format                 several words are taken as they are
  weighlock preview --no-wait 'npm run build'      leave the answer to a person, and go on",
    after_help = "The same as `weighlock run --preview`. Nothing changes before you answer. The \
copy covers files only, not other effects such as network requests."
)]
pub(crate) struct Args {
    #[command(flatten)]
    options: RunOptions,
    /// The command: one word of shell text, or a program and its arguments
    #[arg(required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn preview(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let asks = Asks {
        preview: true,
        review: None,
    };
    run::start(&args.options, &args.command, asks, paths)
}
