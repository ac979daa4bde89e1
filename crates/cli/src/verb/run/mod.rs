//! `weighlock run`: one command, from here, with its output passed through.

mod ask;
mod attend;
mod lacked;
mod show;
mod told;
mod wait;

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::Instant;
use weighlock_engine::{Review, Run, State};
use weighlock_server::{CommandView, NewCommand};

use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;
use crate::signals::Signals;
use crate::{effect, given, ourselves, text};
use ask::Asking;
use attend::Attending;
use show::Show;

/// Most commands end at once, and then one answer tells all. Longer, and the
/// first output would wait for it.
const FIRST_WAIT_MS: i64 = 10;

/// Run one command
#[derive(clap::Args)]
#[command(
    before_help = "Examples:
  weighlock run -- git status
  weighlock run -- 'grep -rn TODO src | head'      one word is shell text
  weighlock run -- echo 'a b' '*'                  several words are taken as they are
  weighlock run -d 'Run the tests' --timeout 10m -- npm test
  weighlock run --bg -- npm run dev
  weighlock run --sandbox webshop -- make          in another directory's walls
  weighlock run --no-wait -- rm -r build           leave it to a person, and go on
  weighlock run --preview -- make format           see what it changes, and then apply it
  weighlock run --review before -- ./deploy        be asked before it runs, not after
  weighlock run --json -- make",
    after_help = "Exit codes: the command's own; 2 wrong usage; 124 time limit; 125 weighlock \
itself failed; \
126 blocked or rejected; 127 command not found; 128+n ended by signal n; 75 still waiting, \
expired, withdrawn, or still running after --wait.

A command that is not proved read-only runs on a copy, if the kernel supports that, and a person \
decides about its changes: exit code and output are the command's, and nothing changes before the \
decision.

If a command needs approval and you may decide, you are asked at the terminal; q leaves the \
request waiting. Otherwise the request waits in the inbox, and this command waits for the \
decision; without a terminal it prints the command that approves it. Ctrl C withdraws the request \
and discards its changes on the copy."
)]
pub(crate) struct Args {
    #[command(flatten)]
    options: RunOptions,
    /// Run it on a copy, and ask about every change
    #[arg(long, conflicts_with = "review")]
    preview: bool,
    /// When a person is asked: before it runs, about its effects on a copy, or
    /// only about changes that always need approval (for those who may decide)
    /// [default: the sandbox's]
    #[arg(long, value_name = "WHEN", value_parser = ["before", "effects", "none"])]
    review: Option<String>,
    /// The command: one word of shell text, or a program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<std::ffi::OsString>,
}

/// How a command is run.
#[derive(clap::Args)]
pub(crate) struct RunOptions {
    /// The sandbox to run in [default: your default sandbox, usually the one of
    /// the base directory]
    #[arg(short, long, value_name = "NAME")]
    sandbox: Option<String>,
    /// What the command is for, in a few words
    #[arg(short, long, value_name = "WHY")]
    description: Option<String>,
    /// Time limit: 500ms, 90s, 2m, 1h; a bare number is seconds [default: 2m,
    /// in the background 24h; or from the settings]
    #[arg(long, value_name = "TIME", value_parser = text::parse_time, allow_hyphen_values = true)]
    timeout: Option<i64>,
    /// Stop it after this time without output
    #[arg(long, value_name = "TIME", value_parser = text::parse_time, allow_hyphen_values = true)]
    idle: Option<i64>,
    /// Wait at most this long, then leave it running, or waiting
    #[arg(long, value_name = "TIME", value_parser = text::parse_patience, conflicts_with = "bg")]
    wait: Option<Duration>,
    /// Run it in the background and return at once
    #[arg(long, conflicts_with = "stdin")]
    bg: bool,
    /// If it needs approval, do not ask here: print the run's id and return at
    /// once
    #[arg(long)]
    no_wait: bool,
    /// Let processes continue that the shell leaves running
    #[arg(long)]
    keep: bool,
    /// Run it in this directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<std::path::PathBuf>,
    /// Set an environment variable; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = given::pair)]
    env: Vec<(String, String)>,
    /// The shell that runs the command: sh or bash [default: sh where both read
    /// it alike, else bash]
    #[arg(long, value_name = "SHELL", value_parser = ["sh", "bash"])]
    shell: Option<String>,
    /// The agent profile, whose rules make the policy stricter
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Pass on standard input however long it takes
    #[arg(short = 'i', long, conflicts_with = "no_stdin")]
    stdin: bool,
    /// Give it no standard input
    #[arg(long)]
    no_stdin: bool,
    /// Print the whole result as one JSON object instead of the output
    #[arg(long)]
    json: bool,
    /// Print no messages except requests for approval
    #[arg(short, long)]
    quiet: bool,
}

/// What is asked of a person, and when.
#[derive(Default)]
pub(crate) struct Asks {
    /// About every change, once it was tried on a copy.
    pub(crate) preview: bool,
    /// Otherwise than the sandbox would have it.
    pub(crate) review: Option<Review>,
}

pub(crate) fn run(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let asks = Asks {
        preview: args.preview,
        review: { args.review.as_deref() }.map(|when| match when {
            "before" => Review::Before,
            "effects" => Review::Effects,
            _ => Review::None,
        }),
    };
    if asks.review == Some(Review::None) {
        ourselves::may_decide()?;
    }
    start(&args.options, &args.command, asks, paths)
}

/// Asks for a run, and stays with it until it is settled.
pub(crate) fn start(
    args: &RunOptions,
    command: &[std::ffi::OsString],
    asks: Asks,
    paths: &Paths,
) -> Result<ExitCode, Failure> {
    let input = InputSource::choose(args);
    let mut request = NewCommand {
        command: given::command(command)?,
        preview: asks.preview,
        review: asks.review,
        ..request(args, input)?
    };
    block_on(async {
        let mut client = Client::open(paths).await?;
        if args.cwd.is_none() {
            let sandbox = request.sandbox_id.as_deref();
            request.cwd = super::explain::place(&mut client, sandbox, request.cwd).await?;
        }
        // From before the start: no Ctrl C may end us and leave the command.
        let mut signals = Signals::new()?;
        let mut show = Show::new(args);
        let mut asking = Asking {
            paths,
            signals: &mut signals,
            show: &mut show,
            at_once: args.no_wait || args.bg,
            leaves: args.no_wait,
            patience: args.wait,
        };
        let begun = asking.request(&mut client, &request).await?;
        if let Some(code) = settled(args, &begun, &mut show) {
            return Ok(code);
        }
        let deadline = args.wait.map(|wait| Instant::now() + wait);
        let mut attending = Attending {
            client,
            paths,
            id: begun.run.command_id.clone(),
            asked_to_stop: 0,
            signals,
            show,
            notes: vec![],
        };
        let mut ended = attending.attend(input, args.wait, begun).await?;
        let crossed = attending.show.crossed.get();
        attending.show.hint = lacked::hint(&mut attending.client, &ended.run, crossed).await;
        if effect::is_asked_about(&ended.run) {
            ended = attending.ask(ended, args, deadline).await?;
        }
        Ok(finished(&ended, &mut attending.show))
    })
}

/// Says what became of a request; returns how we end, unless there is more to
/// come.
fn settled(args: &RunOptions, begun: &CommandView, show: &mut Show) -> Option<ExitCode> {
    show.warnings(&begun.run);
    let run = &begun.run;
    let ran = match run.state {
        // On a copy: then it has said something, and comes before the question.
        State::Waiting => effect::is_asked_about(run) && show.left.borrow().is_none(),
        State::Blocked => run.detail.changes.is_some(),
        State::Held | State::Rejected | State::Expired | State::Withdrawn => false,
        _ => true,
    };
    if !ran || args.bg && run.state == State::Waiting {
        return Some(finished(begun, show));
    }
    if args.bg {
        show.in_background(begun);
        return Some(ExitCode::SUCCESS);
    }
    show.begun(run);
    let is_over = !matches!(run.state, State::Running | State::Waiting);
    match is_over && run.detail.output.bytes == 0 {
        true => Some(finished(begun, show)),
        false => None,
    }
}

/// Says how it ended, or that it has not; returns how we end.
fn finished(view: &CommandView, show: &mut Show) -> ExitCode {
    match view.run.state {
        State::Waiting | State::Held => show.left_waiting(view),
        State::Blocked | State::Rejected | State::Expired | State::Withdrawn => show.refused(view),
        _ => show.ended(view),
    }
    exit_code(&view.run)
}

fn request(args: &RunOptions, input: InputSource) -> Result<NewCommand, Failure> {
    Ok(NewCommand {
        description: args.description.clone(),
        sandbox_id: args.sandbox.clone(),
        cwd: Some(given::cwd(args.cwd.as_deref())?),
        env: args.env.iter().cloned().collect::<BTreeMap<_, _>>(),
        agent: args.agent.clone(),
        shell: args.shell.as_deref().map(given::shell),
        stdin_open: input != InputSource::None,
        timeout_ms: args.timeout,
        idle_ms: args.idle,
        wait_ms: Some(FIRST_WAIT_MS),
        background: args.bg,
        // Killed before we can say that it is to stop, we leave nothing running.
        attend: !args.bg,
        keep: args.keep,
        ..NewCommand::default()
    })
}

/// Where the command's input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputSource {
    /// Nowhere.
    None,
    /// Our standard input, which will end.
    Whole,
    /// A pipe that our parent process holds and may never close.
    Pipe,
}

impl InputSource {
    fn choose(args: &RunOptions) -> Self {
        if args.no_stdin || args.bg {
            return Self::None;
        }
        if args.stdin {
            return Self::Whole;
        }
        let Ok(kind) = std::fs::metadata("/proc/self/fd/0").map(|stdin| stdin.file_type()) else {
            return Self::None;
        };
        if kind.is_file() {
            Self::Whole
        } else if kind.is_fifo() && !held_by_an_ancestor() {
            // The other end is a neighbour's, as in `producer | weighlock run`.
            Self::Whole
        } else if kind.is_fifo() || kind.is_socket() {
            Self::Pipe
        } else {
            Self::None
        }
    }
}

/// Tells whether a process that we descend from holds the other end of our
/// standard input: a program that starts others with a pipe for their input
/// often forgets to close it.
fn held_by_an_ancestor() -> bool {
    let Ok(pipe) = std::fs::read_link("/proc/self/fd/0") else {
        return false;
    };
    weighlock_engine::ancestors(std::process::id()).any(|pid| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
        open.into_iter().flatten().flatten().any(|fd| {
            let writes = fd
                .metadata()
                .is_ok_and(|link| link.permissions().mode() & 0o200 != 0);
            writes && std::fs::read_link(fd.path()).is_ok_and(|target| target == pipe)
        })
    })
}

pub(crate) fn exit_code(run: &Run) -> ExitCode {
    let code = match run.state {
        State::Running | State::Waiting | State::Held | State::Expired | State::Withdrawn => 75,
        State::TimedOut => 124,
        State::Blocked | State::Rejected => 126,
        State::Lost => 125,
        // The command did not fail: what it did could not be applied.
        State::Failed if run.exit_code == Some(0) => 125,
        _ => match (run.exit_code, run.signal) {
            (Some(code), _) => code,
            (None, Some(signal)) => 128 + signal,
            (None, None) => 125,
        },
    };
    ExitCode::from(u8::try_from(code).unwrap_or(125))
}
