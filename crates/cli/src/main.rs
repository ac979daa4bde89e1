//! The weighlock binary: one file per verb.

mod attach;
mod client;
mod config;
mod effect;
mod events;
mod failure;
mod frames;
mod full_screen;
mod given;
mod judged;
mod keys;
mod line;
mod names;
mod ourselves;
mod paths;
mod progress;
mod question;
mod replay;
mod signals;
mod start;
mod term;
mod text;
mod verb;
mod when;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::client::Failure;
use crate::paths::Paths;

/// A shell for AI agents: every command is judged before it runs, ended when
/// its time is up, and on record after.
#[derive(Parser)]
#[command(
    name = "weighlock",
    version,
    before_help = "Examples:
  weighlock run -- git status            run a command; the server starts by itself
  weighlock run --bg -- npm test         run it in the background
  weighlock output @last --follow        read what the latest run says
  weighlock approve                      decide what waits for you
  weighlock preview 'make format'        see what it changes, and then apply it
  weighlock undo @last                   take back what the latest run changed
  weighlock explain 'rm -rf build/'      what would become of it, and why
  weighlock runs failed                  list runs
  weighlock doctor                       see what this machine can do"
)]
struct Cli {
    /// The state directory [env: WEIGHLOCK_STATE_DIR, default:
    /// $XDG_STATE_HOME/weighlock]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "WEIGHLOCK_STATE_DIR",
        hide_env = true,
        help_heading = "Which server"
    )]
    state_dir: Option<std::path::PathBuf>,
    /// The Unix socket of another user's server; with `serve`, where to listen
    /// for other users [env: WEIGHLOCK_SOCKET]
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "WEIGHLOCK_SOCKET",
        hide_env = true,
        help_heading = "Which server"
    )]
    socket: Option<std::path::PathBuf>,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    Run(verb::run::Args),
    Preview(verb::preview::Args),
    Explain(verb::explain::Args),
    Check(verb::check::Args),
    Inbox(verb::inbox::Args),
    Approve(verb::approve::Args),
    Reject(verb::reject::Args),
    Watch(verb::watch::Args),
    Runs(verb::runs::Args),
    Show(verb::show::Args),
    Output(verb::output::Args),
    Diff(verb::diff::Args),
    Commit(verb::commit::Args),
    Discard(verb::discard::Args),
    Undo(verb::undo::Args),
    Draft(verb::draft::Args),
    Stop(verb::stop::Args),
    Tasks(verb::tasks::Args),
    Wait(verb::wait::Args),
    Term(verb::term::Args),
    Replay(verb::replay::Args),
    Pause(verb::pause::Args),
    Resume(verb::resume::Args),
    Policy(verb::policy::Args),
    Blacklist(verb::blacklist::Args),
    Sandbox(Box<verb::sandbox::Args>),
    People(verb::people::Args),
    Notify(verb::notify::Args),
    Audit(verb::audit::Args),
    Backup(verb::backup::Args),
    Restore(verb::restore::Args),
    Signin(verb::signin::Args),
    Serve(verb::serve::Args),
    Mcp(verb::mcp::Args),
    Doctor(verb::doctor::Args),
    Completions(verb::completions::Args),
    Man(verb::man::Args),
    Openapi(verb::openapi::Args),
}

fn main() -> ExitCode {
    // Before anything else: the nursery must stay small and single-threaded.
    if std::env::args_os().nth(1).is_some_and(|arg| arg == NURSERY) {
        return match weighlock_engine::serve_nursery() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let cli = Cli::parse();
    if !matches!(
        cli.verb,
        Some(Verb::Run(_) | Verb::Preview(_) | Verb::Serve(_) | Verb::Mcp(_))
    ) {
        // Whoever reads our output may stop early, as `head` does. A run must
        // be stopped first, and a server goes on.
        weighlock_engine::die_of_broken_pipes();
    }
    let own_failure = match &cli.verb {
        // A command has exit codes of its own; ours must not look like one.
        Some(Verb::Run(_) | Verb::Preview(_)) => 125,
        _ => 1,
    };
    let done = dispatch(cli.verb, Paths::find(cli.state_dir, cli.socket));
    done.unwrap_or_else(|failure| {
        eprint!("{failure}");
        ExitCode::from(own_failure)
    })
}

/// The word by which the server starts the process that makes keepers.
const NURSERY: &str = "__nursery";

/// What works without a server works without a place to keep things, too.
fn dispatch(verb: Option<Verb>, paths: Result<Paths, Failure>) -> Result<ExitCode, Failure> {
    match verb {
        None => verb::status::status(&paths?),
        Some(Verb::Run(args)) => verb::run::run(args, &paths?),
        Some(Verb::Preview(args)) => verb::preview::preview(&args, &paths?),
        Some(Verb::Explain(args)) => verb::explain::explain(&args, &paths?),
        Some(Verb::Check(args)) => verb::check::check(&args),
        Some(Verb::Inbox(args)) => verb::inbox::inbox(&args, &paths?),
        Some(Verb::Approve(args)) => verb::approve::approve(&args, &paths?),
        Some(Verb::Reject(args)) => verb::reject::reject(args, &paths?),
        Some(Verb::Watch(args)) => verb::watch::watch(&args, &paths?),
        Some(Verb::Runs(args)) => verb::runs::runs(&args, &paths?),
        Some(Verb::Show(args)) => verb::show::show(&args, &paths?),
        Some(Verb::Output(args)) => verb::output::output(&args, &paths?),
        Some(Verb::Diff(args)) => verb::diff::diff(&args, &paths?),
        Some(Verb::Commit(args)) => verb::commit::commit(&args, &paths?),
        Some(Verb::Discard(args)) => verb::discard::discard(&args, &paths?),
        Some(Verb::Undo(args)) => verb::undo::undo(&args, &paths?),
        Some(Verb::Draft(args)) => verb::draft::draft(args, &paths?),
        Some(Verb::Stop(args)) => verb::stop::stop(&args, &paths?),
        Some(Verb::Tasks(args)) => verb::tasks::tasks(args, &paths?),
        Some(Verb::Wait(args)) => verb::wait::wait(&args, &paths?),
        Some(Verb::Term(args)) => verb::term::term(args, &paths?),
        Some(Verb::Replay(args)) => verb::replay::replay(&args, paths),
        Some(Verb::Pause(args)) => verb::pause::pause(args, &paths?),
        Some(Verb::Resume(args)) => verb::resume::resume(args, &paths?),
        Some(Verb::Policy(args)) => verb::policy::policy(args, paths),
        Some(Verb::Blacklist(args)) => verb::blacklist::blacklist(args, &paths?),
        Some(Verb::Sandbox(args)) => verb::sandbox::sandbox(*args, &paths?),
        Some(Verb::People(args)) => verb::people::people(args, &paths?),
        Some(Verb::Notify(args)) => verb::notify::notify(args, &paths?),
        Some(Verb::Audit(args)) => verb::audit::audit(args, &paths?),
        Some(Verb::Backup(args)) => verb::backup::backup(args, &paths?),
        Some(Verb::Restore(args)) => verb::restore::restore(&args, &paths?),
        Some(Verb::Signin(args)) => verb::signin::signin(&args, &paths?),
        Some(Verb::Serve(args)) => verb::serve::serve(args, &paths?),
        Some(Verb::Mcp(args)) => verb::mcp::mcp(args, &paths?),
        Some(Verb::Doctor(args)) => verb::doctor::doctor(&args, &paths?),
        Some(Verb::Completions(args)) => Ok(verb::completions::completions(&args)),
        Some(Verb::Man(args)) => verb::man::man(&args),
        Some(Verb::Openapi(_)) => Ok(verb::openapi::openapi()),
    }
}
