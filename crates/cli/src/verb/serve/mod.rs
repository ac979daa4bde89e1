//! `weighlock serve`: the server.

mod doors;
mod replace;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::SignalKind;
use weighlock_engine::{Clock, Engine, Nursery, Outbound};
use weighlock_server::Doors;

use crate::client::Failure;
use crate::config::{self, ServerSettings};
use crate::paths::{Paths, default_base};
use crate::signals::listen;

/// Where TCP listens unless something else is said.
pub(crate) const LISTEN: &str = "127.0.0.1:7777";

/// Run the server (other commands start one by themselves)
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock serve
  weighlock serve --base /srv/app --listen 127.0.0.1:8080
  weighlock serve --listen off                 only the Unix socket
  weighlock serve --socket /run/weighlock.sock for other users of this machine, too
  weighlock serve --replace --base /srv        take the place of the one that runs
  weighlock serve --log-format json            for whoever collects logs
  weighlock serve --stop")]
pub(crate) struct Args {
    /// Commands run in this directory or below it [default: your home
    /// directory if you are in it, else the repository around the current
    /// directory, else that]
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
    /// TCP address to listen on beside the Unix socket, or "off" [default:
    /// 127.0.0.1:7777]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The configuration file [default: $XDG_CONFIG_HOME/weighlock/config.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Stop the running server; its runs continue
    #[arg(long)]
    stop: bool,
    /// Replace the running server; its runs continue
    #[arg(long)]
    replace: bool,
    /// Set a damaged database aside and begin a new one
    #[arg(long)]
    recover: bool,
    /// Format of the log on standard error [env: WEIGHLOCK_LOG_FORMAT]
    #[arg(
        long,
        value_name = "FORMAT",
        env = "WEIGHLOCK_LOG_FORMAT",
        hide_env = true,
        default_value = "text"
    )]
    log_format: LogFormat,
    /// Serve the web pages from this directory, for development
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    ui_dir: Option<PathBuf>,
    /// Started by another command: no terminal, no TCP, says `ready`.
    #[arg(long, hide = true)]
    detached: bool,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    /// For people.
    Text,
    /// One JSON object in a line.
    Json,
}

pub(crate) fn serve(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    // Whoever waits for the end of a pipe that we inherited by accident would
    // wait as long as we live.
    weighlock_engine::close_inherited();
    if args.detached {
        // Out of the terminal of whoever started us.
        let _ = rustix::process::setsid();
    }
    let stopped = (args.stop || args.replace) && replace::stop_running(paths)?;
    if args.stop {
        let done = if stopped { "stopped" } else { "no server runs" };
        eprintln!("{done}");
        return Ok(ExitCode::SUCCESS);
    }
    log(args.log_format);
    // Runs get half of that each; ours must not be less.
    weighlock_engine::raise_open_files();
    // When memory runs out, others go first. Only root may ask for that.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-500");
    let settings = settings(&args, paths)?;
    // Before any thread is started, and before any secret is read.
    let nursery = Nursery::new("/proc/self/exe".into(), vec![crate::NURSERY.into()])
        .map_err(|error| Failure::new(format!("cannot start the nursery: {error}"), ""))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot begin: {error}"), ""))?;
    let done = runtime.block_on(run(args, settings, nursery, paths));
    // A thread may still wait for a client that reads nothing.
    runtime.shutdown_background();
    done
}

async fn run(
    args: Args,
    settings: ServerSettings,
    nursery: Nursery,
    paths: &Paths,
) -> Result<ExitCode, Failure> {
    if args.recover {
        recover(paths)?;
    }
    let listen = listen_address(&args, &settings);
    let (hosts, ca_file) = (settings.hosts, settings.ca_file);
    let (address, traces) = (settings.address, settings.traces);
    // From before anyone can know of us: who asks us to end is heard.
    let stop = stop_signal()?;
    if args.replace {
        replace::free_state_dir(paths).await?;
    }
    let engine = Engine::open(settings.engine, Clock::system(), nursery).await?;
    // The lock is ours now: a socket that is there is left from before.
    doors::check_place(paths, engine.config())?;
    let socket = doors::bind(paths)?;
    let tcp = match &listen {
        Some(address) => doors::bind_tcp(address, args.listen.is_some()).await?,
        None => None,
    };
    doors::note_address(paths, tcp.as_ref());
    announce(&args, &engine, paths, tcp.as_ref()).await?;
    let open = Doors {
        outbound: Outbound {
            public_url: address.unwrap_or_else(|| doors::link_base(&hosts, tcp.as_ref())),
            ca_file,
        },
        traces,
        socket,
        tcp,
        hosts,
        ui_dir: args.ui_dir,
        within: weighlock_mcp::door,
    };
    weighlock_server::serve(Arc::clone(&engine), open, stop)
        .await
        .map_err(|error| Failure::new(format!("cannot serve: {error}"), ""))?;
    doors::close(paths);
    if let Err(error) = engine.close().await {
        tracing::error!(%error, "cannot record the end of the server");
    }
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &Args, paths: &Paths) -> Result<ServerSettings, Failure> {
    let base = match &args.base {
        Some(base) => base.clone(),
        None => default_base()?,
    };
    let file = args.config.as_ref().unwrap_or(&paths.config);
    if args.config.is_some() && !file.exists() {
        return Err(Failure::new(
            format!("there is no {}", file.display()),
            "docs/config.toml has every setting with its default",
        ));
    }
    let mut settings = config::load(file, &paths.state_dir, base)?;
    let sockets = [&paths.socket, &paths.own_socket];
    settings.engine.hidden = { [file].into_iter().chain(sockets) }.cloned().collect();
    settings.engine.hidden.dedup();
    settings.engine.settings_file = Some(file.clone());
    if let Some(base) = args.base.as_ref().filter(|_| !args.detached) {
        // What a person says on the command line counts most. A command that
        // starts us only says where it is.
        settings.engine.base.clone_from(base);
    }
    Ok(settings)
}

/// The file that says where a browser reaches the server.
pub(crate) fn address_path(paths: &Paths) -> PathBuf {
    paths.state_dir.join("address")
}

fn listen_address(args: &Args, settings: &ServerSettings) -> Option<String> {
    let said = args.listen.clone().or_else(|| settings.listen.clone());
    let address = match said {
        Some(said) => said,
        // Nobody would see its link.
        None if args.detached => return None,
        None => LISTEN.into(),
    };
    (address != "off").then_some(address)
}

async fn announce(
    args: &Args,
    engine: &Arc<Engine>,
    paths: &Paths,
    tcp: Option<&TcpListener>,
) -> Result<(), Failure> {
    if args.detached {
        // Whoever started us waits for this line, and for the end of it.
        println!("ready");
        let _ = std::io::stdout().flush();
        let null = std::fs::File::options().write(true).open("/dev/null");
        if let Ok(null) = null {
            let _ = rustix::stdio::dup2_stdout(null);
        }
        return Ok(());
    }
    if args.log_format == LogFormat::Json {
        // Nothing but JSON; a link is asked for with `weighlock signin`.
        tracing::info!(version = env!("CARGO_PKG_VERSION"), socket = %paths.socket.display(),
                       base = %engine.config().base.display(), "serves");
        return Ok(());
    }
    eprintln!("weighlock {} serves", env!("CARGO_PKG_VERSION"));
    eprintln!("  socket   {}", paths.socket.display());
    eprintln!("  base     {}", engine.config().base.display());
    if let Some(warning) = engine.sandboxes().default_warning() {
        eprintln!("  note     {warning}");
    }
    if let Some(tcp) = tcp.and_then(|tcp| tcp.local_addr().ok()) {
        let link = engine.people().owner_link().await?;
        eprintln!("  address  http://{tcp}/agent/terminal");
        eprintln!("  sign in  http://{tcp}/signin#{link}   (valid once, 10 minutes)");
    }
    eprintln!("try it: weighlock run -- echo hello");
    eprintln!("connect an agent: weighlock mcp install claude-code   (docs/mcp.md has others)");
    Ok(())
}

fn recover(paths: &Paths) -> Result<(), Failure> {
    let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S").to_string();
    match Engine::set_aside(&paths.state_dir, &stamp)? {
        Some(aside) if aside.exists() => {
            eprintln!("the damaged database is at {}", aside.display());
        }
        Some(_) => eprintln!("the database was gone; a new one is begun"),
        None => eprintln!("the database is not damaged; nothing was set aside"),
    }
    Ok(())
}

fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static, Failure> {
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Quiet unless asked: WEIGHLOCK_LOG takes the filters of `tracing`.
fn log(format: LogFormat) {
    let filter =
        tracing_subscriber::EnvFilter::try_from_env("WEIGHLOCK_LOG").unwrap_or_else(|_| {
            tracing_subscriber::EnvFilter::new(match format {
                LogFormat::Text => "warn",
                LogFormat::Json => "info",
            })
        });
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // That a line could not be written would be said in the same place, where
        // a full disk makes saying it a panic.
        .log_internal_errors(false)
        .with_ansi(false);
    match format {
        LogFormat::Json => log.json().init(),
        LogFormat::Text => log.init(),
    }
}
