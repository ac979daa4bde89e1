//! `weighlock completions`: for the shell you type in.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

/// Print completions for your shell
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock completions bash > ~/.local/share/bash-completion/completions/weighlock
  weighlock completions fish > ~/.config/fish/completions/weighlock.fish")]
pub(crate) struct Args {
    /// Which shell
    shell: Shell,
}

pub(crate) fn completions(args: &Args) -> ExitCode {
    let mut command = crate::Cli::command();
    clap_complete::generate(
        args.shell,
        &mut command,
        "weighlock",
        &mut std::io::stdout(),
    );
    ExitCode::SUCCESS
}
