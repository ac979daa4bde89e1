//! `weighlock mcp`: the door for agents, for a client that starts it.

mod install;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::{Method, StatusCode};
use serde_json::json;
use weighlock_mcp::{Api, ApiResponse, Ask, Options, Toolset, serve_stdio};
use weighlock_server::ProblemDocument;

use crate::client::{Client, Failure, TOKEN, block_on};
use crate::given;
use crate::paths::Paths;

/// For how long a server that was lost is looked for again.
const AGAIN_WITHIN: Duration = Duration::from_secs(30);

/// Connections that are kept open while nothing is asked.
const MOST_IDLE: usize = 8;

/// And how often.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Serve the Model Context Protocol (MCP) over stdio, or set up a client
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    before_help = "Examples:
  weighlock mcp install claude-code             set a client up, once
  weighlock mcp                                 what it runs from then on
  weighlock mcp --agent coder --session webshop
  WEIGHLOCK_TOKEN=wl_… weighlock mcp            as the agent that the token is of"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    deed: Option<McpCommand>,
    #[command(flatten)]
    choice: ToolArgs,
}

#[derive(clap::Subcommand)]
enum McpCommand {
    Install(Box<install::Args>),
}

/// Which tools there are, and whose.
#[derive(clap::Args)]
struct ToolArgs {
    /// A toolset to offer; may be given several times
    #[arg(long = "toolset", value_name = "NAME", default_value = "weighlock")]
    toolsets: Vec<Toolset>,
    /// The agent profile, whose rules make the policy stricter
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The session its runs belong to: a client that names it again finds them
    /// [default: a new one]
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// The sandbox to run in [default: your default sandbox]
    #[arg(short, long, value_name = "NAME")]
    sandbox: Option<String>,
    /// Where commands run that name no directory [default: where the client
    /// starts this]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// If a command needs approval and you may decide, ask you through the
    /// client, if it can
    #[arg(long)]
    ask: bool,
    /// Refuse commands without a description
    #[arg(long)]
    require_description: bool,
}

pub(crate) fn mcp(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    match args.deed {
        None => serve(args.choice, paths),
        Some(McpCommand::Install(args)) => install::install(&args, paths),
    }
}

fn serve(choice: ToolArgs, paths: &Paths) -> Result<ExitCode, Failure> {
    let paths = paths.clone();
    block_on(async move {
        let mut client = Client::open(&paths).await?;
        check_token(&mut client).await?;
        let cwd = place(&mut client, &choice).await?;
        let options = Options {
            toolsets: choice.toolsets,
            agent: choice.agent,
            session: choice.session,
            sandbox: choice.sandbox,
            cwd,
            ask: choice.ask,
            require_description: choice.require_description,
        };
        let socket = Socket {
            paths,
            idle: Mutex::new(vec![client]),
        };
        let served = serve_stdio(Box::new(socket), options).await;
        served.map_err(|error| Failure::new(format!("the client was lost: {error}"), ""))?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Refuses to begin with a token that does not count: no call would do anything.
async fn check_token(client: &mut Client) -> Result<(), Failure> {
    let (status, _) = client.pass(Method::GET, "/me", None, Bytes::new()).await?;
    match status {
        StatusCode::UNAUTHORIZED => Err(Failure::new(
            format!("the token in {TOKEN} does not count; nothing was started"),
            "make another with `weighlock people token NAME`",
        )),
        _ => Ok(()),
    }
}

/// Where commands run that do not say: here. Who has a directory of their own
/// can be nowhere else, wherever a client starts us.
async fn place(client: &mut Client, choice: &ToolArgs) -> Result<Option<String>, Failure> {
    let here = given::cwd(choice.cwd.as_deref())?;
    if choice.cwd.is_some() {
        return Ok(Some(here));
    }
    let sandbox = choice.sandbox.as_deref();
    let here = super::explain::place(client, sandbox, Some(here)).await?;
    let asked = json!({ "command": "true", "sandbox": sandbox, "cwd": here });
    let asked = client.pass(
        Method::POST,
        "/policies/explain",
        None,
        asked.to_string().into(),
    );
    let (_, said) = asked.await?;
    let problem = serde_json::from_slice::<ProblemDocument>(&said);
    let outside = problem.is_ok_and(|problem| problem.code == "sandbox_violation");
    Ok(here.filter(|_| !outside))
}

impl ToolArgs {
    /// The same again, as a client's settings have to say it.
    fn words(&self) -> Result<Vec<String>, Failure> {
        let mut words = vec![];
        if self.toolsets != [Toolset::Weighlock] {
            let names = self.toolsets.iter().map(Toolset::to_string);
            words.extend(names.flat_map(|name| ["--toolset".to_owned(), name]));
        }
        let cwd = match &self.cwd {
            Some(dir) => Some(given::cwd(Some(dir))?),
            None => None,
        };
        let named = [
            ("--agent", &self.agent),
            ("--session", &self.session),
            ("--sandbox", &self.sandbox),
            ("--cwd", &cwd),
        ];
        for (flag, value) in named {
            words.extend({ value.iter() }.flat_map(|value| [flag.to_owned(), value.clone()]));
        }
        let flags = [
            ("--ask", self.ask),
            ("--require-description", self.require_description),
        ];
        let given = flags.iter().filter(|(_, given)| *given);
        words.extend(given.map(|(flag, _)| (*flag).to_owned()));
        Ok(words)
    }
}

/// The server's socket, with as many connections as there are calls at once.
struct Socket {
    paths: Paths,
    idle: Mutex<Vec<Client>>,
}

impl Api for Socket {
    fn ask(&self, ask: Ask) -> BoxFuture<'_, Result<ApiResponse, (String, String)>> {
        Box::pin(async move {
            let answer = self.ask_until(ask, Instant::now() + AGAIN_WITHIN).await;
            answer.map_err(|failure| (failure.what, failure.hint))
        })
    }
}

impl Socket {
    /// Asks, and again where the server has gone away meanwhile: what may have
    /// been done is asked for once more only if that does no harm.
    async fn ask_until(&self, ask: Ask, deadline: Instant) -> Result<ApiResponse, Failure> {
        loop {
            let failure = match self.connection().await {
                Ok(mut client) => {
                    let key = ask.key.as_deref();
                    let passed = client.pass(ask.method.clone(), &ask.path, key, ask.body.clone());
                    match passed.await {
                        Ok((status, body)) => {
                            let mut idle = self.idle();
                            if idle.len() < MOST_IDLE {
                                idle.push(client);
                            }
                            drop(idle);
                            let status = status.as_u16();
                            return Ok(ApiResponse { status, body });
                        }
                        Err(failure) if !ask.is_repeatable() => return Err(failure),
                        Err(failure) => failure,
                    }
                }
                Err(failure) => failure,
            };
            if Instant::now() > deadline {
                return Err(failure);
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// One that nobody uses, or a new one.
    async fn connection(&self) -> Result<Client, Failure> {
        loop {
            let Some(client) = self.idle().pop() else {
                return Client::open(&self.paths).await;
            };
            if !client.is_closed() {
                return Ok(client);
            }
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Client>> {
        self.idle.lock().unwrap_or_else(|lock| lock.into_inner())
    }
}
