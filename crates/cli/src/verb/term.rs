//! `weighlock term`: commands that are typed at.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use weighlock_engine::{Run, ScreenView, State, TerminalView, Wanted};
use weighlock_server::{
    CommandView, NewExec, NewTerminal, SentView, TerminalInput, TerminalList, TerminalSignal,
    TerminalSize, WaitRequest, WaitView,
};

use crate::attach::{self, AttachEnd};
use crate::client::{Client, Failure, block_on, escape};
use crate::given;
use crate::names::SandboxNames;
use crate::paths::Paths;
use crate::progress::ProgressLine;
use crate::term::{self, say};
use crate::text::{self, columns, command_line, duration, print_json, safe};
use crate::verb::show::is_queued;

/// Open, watch and control terminals
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock term open dev-server -- npm run dev
  weighlock term list
  weighlock term screen dev-server           what it shows, as text
  weighlock term attach dev-server           watch it; t takes the keyboard
  weighlock term attach dev-server --take    type at it; Ctrl ] hands back
  weighlock term open shell --size 120x40 --env LANG=C.UTF-8 -- bash
  weighlock term exec shell -- 'cd src && ls'
  weighlock term send shell 'ls -l' --enter
  weighlock term send editor --key Esc --key C-c
  weighlock term signal shell INT
  weighlock term close dev-server")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<TermCommand>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum TermCommand {
    /// List open terminals
    List {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Open a terminal for a command
    Open(OpenTerminal),
    /// Print the screen of a terminal
    Screen {
        /// The terminal: its name, or its id
        name: String,
        /// Print the last lines of its history instead
        #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
        lines: usize,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Watch a terminal, and take its keyboard
    Attach {
        /// The terminal: its name, or its id
        name: String,
        /// Take the keyboard at once
        #[arg(long)]
        take: bool,
    },
    /// Run a command in the shell of a terminal, and wait for its end
    Exec(Exec),
    /// Send input to a terminal
    Send(SendInput),
    /// Resize a terminal
    Size {
        /// The terminal: its name, or its id
        name: String,
        /// Characters and lines, as in 120x40
        #[arg(value_name = "SIZE", value_parser = size)]
        size: TerminalSize,
    },
    /// Send a signal to the foreground processes of a terminal
    Signal {
        /// The terminal: its name, or its id
        name: String,
        /// INT, TERM, HUP, QUIT, KILL, STOP, TSTP, CONT, USR1, USR2 or WINCH
        signal: String,
    },
    /// Close a terminal and end everything in it
    Close {
        /// The terminal: its name, or its id
        name: String,
    },
}

#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock term exec shell -- 'cd src && make'
  weighlock term exec shell --wait 30s -- make test     it goes on after that")]
struct Exec {
    /// The terminal: its name, or its id
    name: String,
    /// Wait at most this long; the command continues then
    #[arg(long, value_name = "TIME", value_parser = text::parse_patience)]
    wait: Option<Duration>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The command to run
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock term open shell -- bash
  weighlock term open dev-server -d 'The site' -- npm run dev
  weighlock term open shell --size 120x40 --env LANG=C.UTF-8 -- bash")]
struct OpenTerminal {
    /// Name of the terminal
    name: String,
    /// What it is for
    #[arg(short, long, value_name = "WHY")]
    description: Option<String>,
    /// The sandbox to run in
    #[arg(short, long, value_name = "NAME")]
    sandbox: Option<String>,
    /// Where to run [default: here]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Set an environment variable; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = given::pair)]
    env: Vec<(String, String)>,
    /// Characters and lines, as in 120x40 [default: as here]
    #[arg(long, value_parser = size)]
    size: Option<TerminalSize>,
    /// The program to start in it [default: sh]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Print the terminal as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock term send shell 'ls -l' --enter
  weighlock term send editor --key Esc --key C-c
  weighlock term send cat --eof")]
struct SendInput {
    /// The terminal: its name, or its id
    name: String,
    /// The text to type
    text: Option<String>,
    /// A key to press after the text, such as C-c, Esc, Up or F5; may be given
    /// several times
    #[arg(long = "key", value_name = "KEY")]
    keys: Vec<String>,
    /// Press Enter last
    #[arg(long)]
    enter: bool,
    /// Paste the text (bracketed paste) instead of typing it
    #[arg(long)]
    paste: bool,
    /// Send end of input
    #[arg(long)]
    eof: bool,
}

pub(crate) fn term(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let what = args.what.unwrap_or(TermCommand::List { json: args.json });
    block_on(async {
        let mut client = Client::open(paths).await?;
        match what {
            TermCommand::List { json } => list(&mut client, json).await?,
            TermCommand::Open(args) => open(&mut client, args).await?,
            TermCommand::Screen { name, lines, json } => {
                let path = format!("{}/screen?lines={lines}", address(&name));
                let screen: ScreenView = client.get(&path).await?;
                match json {
                    true => print_json(&screen),
                    false => print(&screen, lines > 0),
                }
            }
            TermCommand::Attach { name, take } => attach(paths, &name, take).await?,
            TermCommand::Exec(args) => return exec(&mut client, args).await,
            TermCommand::Send(args) => {
                let path = format!("{}/input", address(&args.name));
                let sent: Option<SentView> = client.post_for(&path, &input(args)).await?;
                if let Some(sent) = sent {
                    let sign = if sent.state == "typed" { "✓" } else { "◔" };
                    sent.text
                        .lines()
                        .for_each(|line| say!("{sign} {}", safe(line)));
                }
            }
            TermCommand::Size { name, size } => {
                let path = format!("{}/size", address(&name));
                client.tell(&path, &size).await?;
            }
            TermCommand::Signal { name, signal } => {
                let path = format!("{}/signal", address(&name));
                client.tell(&path, &TerminalSignal { signal }).await?;
            }
            TermCommand::Close { name } => close(&mut client, &name).await?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn address(name: &str) -> String {
    format!("/terminals/{}", escape(name))
}

async fn list(client: &mut Client, json: bool) -> Result<(), Failure> {
    let list: TerminalList = client.get("/terminals").await?;
    if json {
        print_json(&list);
        return Ok(());
    }
    if list.terminals.is_empty() {
        println!("No terminal is open. `weighlock term open NAME -- COMMAND` opens one.");
        return Ok(());
    }
    let names = SandboxNames::fetch(client).await?;
    let headings = HEADINGS.map(str::to_owned).to_vec();
    let rows = list.terminals.iter().map(|terminal| row(terminal, &names));
    let rows: Vec<Vec<String>> = std::iter::once(headings).chain(rows).collect();
    for line in columns(&rows) {
        println!("{line}");
    }
    Ok(())
}

/// What stands above a list.
const HEADINGS: [&str; 7] = [
    "name", "state", "open for", "owner", "sandbox", "command", "what for",
];

fn row(terminal: &TerminalView, names: &SandboxNames) -> Vec<String> {
    let sign = match terminal.status.as_str() {
        "busy" => "●",
        "waiting" => "◔",
        _ => "○",
    };
    let sandbox = terminal.sandbox_id.as_deref().unwrap_or_default();
    let mut row = vec![
        safe(&terminal.name),
        format!("{sign} {}", status(terminal)),
        age(terminal.uptime_seconds),
        safe(&terminal.requested_by),
        safe(names.of(sandbox)),
        command_line(&terminal.command, term::size().1 / 3),
    ];
    if terminal.description != terminal.command {
        row.push(command_line(&terminal.description, term::size().1 / 3));
    }
    row
}

/// How a terminal is; who types at it, if that is somebody else than its owner.
fn status(terminal: &TerminalView) -> String {
    match &terminal.control.taken_by {
        Some(by) => format!("{} types", safe(by)),
        None => terminal.status.clone(),
    }
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        _ => duration(seconds as f64 * 1000.0),
    }
}

async fn open(client: &mut Client, args: OpenTerminal) -> Result<(), Failure> {
    let command = match args.command.is_empty() {
        true => "sh".to_owned(),
        false => given::command(&args.command)?,
    };
    let cwd = Some(given::cwd(args.cwd.as_deref())?);
    let cwd = match args.cwd {
        Some(_) => cwd,
        None => super::explain::place(client, args.sandbox.as_deref(), cwd).await?,
    };
    let size = args.size.or_else(|| {
        let (rows, columns) = term::size();
        term::is_there().then_some(TerminalSize {
            columns: columns.min(500) as u16,
            rows: rows.min(500) as u16,
        })
    });
    let new = NewTerminal {
        name: args.name,
        description: args.description.unwrap_or_else(|| command.clone()),
        command,
        sandbox_id: args.sandbox,
        cwd,
        env: args.env.into_iter().collect(),
        columns: size.map(|size| size.columns),
        rows: size.map(|size| size.rows),
        ..NewTerminal::default()
    };
    let opened: serde_json::Value = client.post("/terminals", &new).await?;
    if args.json {
        print_json(&opened);
        return Ok(());
    }
    match serde_json::from_value::<TerminalView>(opened.clone()) {
        Ok(terminal) if terminal.status == "waiting" => {
            say!(
                "◔ {} waits for approval   {}",
                safe(&terminal.name),
                terminal.short_id
            );
        }
        Ok(terminal) => {
            say!("● {}   {}", safe(&terminal.name), terminal.short_id);
            say!(
                "  weighlock term screen {0}    weighlock term send {0} TEXT --enter",
                safe(&terminal.name)
            );
        }
        // It was refused, and says why.
        Err(_) => {
            let why = opened["reason"]["text"]
                .as_str()
                .unwrap_or("It was refused.");
            return Err(Failure::new(safe(why), "nothing was run"));
        }
    }
    Ok(())
}

async fn attach(paths: &Paths, name: &str, take: bool) -> Result<(), Failure> {
    if !term::is_there() || !std::io::stdout().is_terminal() {
        return Err(Failure::new(
            "there is no terminal to show it on; nothing was done",
            "`weighlock term screen NAME` prints what it shows",
        ));
    }
    match attach::attach(paths, name, take).await? {
        AttachEnd::Detached => say!("{} goes on. weighlock term attach {0}", safe(name)),
        AttachEnd::Ended { how } => say!("{} has ended ({}).", safe(name), safe(&how)),
    }
    Ok(())
}

async fn close(client: &mut Client, name: &str) -> Result<(), Failure> {
    let terminal: TerminalView = client.get(&address(name)).await?;
    client.remove(&address(&terminal.terminal_id)).await?;
    let ended = ended(client, &terminal.terminal_id, Some(CLOSES_WITHIN)).await?;
    match (ended.state, ended.ended_at) {
        (State::Waiting, Some(_)) => say!(
            "◔ {} is closed; what it changed waits   weighlock approve {}",
            safe(&terminal.name),
            ended.short_id
        ),
        (_, Some(_)) => say!("✓ {} is closed", safe(&terminal.name)),
        (_, None) => say!("◔ {} is being closed", safe(&terminal.name)),
    }
    Ok(())
}

async fn exec(client: &mut Client, args: Exec) -> Result<ExitCode, Failure> {
    let until = args.wait.map(|wait| Instant::now() + wait);
    let left = |until: Instant| until.saturating_duration_since(Instant::now());
    let new = NewExec {
        command: given::command(&args.command)?,
        wait_ms: Some(args.wait.map_or(SOON, |wait| wait.min(SOON)).as_millis() as u64),
    };
    let path = format!("{}/exec", address(&args.name));
    let mut view: CommandView = client.post(&path, &new).await?;
    let mut progress = ProgressLine::new(!args.json);
    while goes_on(&view.run) && until.is_none_or(|until| !left(until).is_zero()) {
        let id = view.run.command_id.clone();
        let waits = progress.during(waits_for(&view.run), async {
            // Looked at again now and then: a turn comes, or an answer.
            let step = until.map_or(LOOKED_AT, |until| left(until).min(LOOKED_AT));
            ended(client, &id, Some(step)).await?;
            client.get(&format!("/commands/{id}")).await
        });
        view = waits.await?;
    }
    drop(progress);
    if args.json {
        print_json(&view);
        return Ok(super::run::exit_code(&view.run));
    }
    print_exec(&view);
    Ok(super::run::exit_code(&view.run))
}

/// After this time, the verb says what it is waiting for.
const SOON: Duration = Duration::from_secs(1);

/// How often is looked what something waits for.
const LOOKED_AT: Duration = Duration::from_secs(2);

/// How long one that is closed is waited for.
const CLOSES_WITHIN: Duration = Duration::from_secs(5);

fn goes_on(run: &Run) -> bool {
    matches!(run.state, State::Running | State::Waiting | State::Held)
}

fn waits_for(run: &Run) -> &'static str {
    match run.state {
        State::Waiting => "waits for approval (weighlock approve); Ctrl C leaves it",
        State::Held => "is held until work is resumed; Ctrl C leaves it",
        _ if is_queued(run) => "waits for its turn in the terminal; Ctrl C leaves it",
        _ => "runs; Ctrl C leaves it",
    }
}

/// Waits for the end of a run; returns it as it is then.
async fn ended(client: &mut Client, id: &str, time: Option<Duration>) -> Result<Run, Failure> {
    let request = WaitRequest {
        wanted: vec![Wanted {
            id: id.to_owned(),
            ..Wanted::default()
        }],
        timeout_ms: time.map(|time| time.as_millis() as u64),
        ..WaitRequest::default()
    };
    let waited: WaitView = client.post("/wait", &request).await?;
    let run = waited.runs.into_iter().next();
    run.ok_or_else(|| {
        Failure::new(
            format!("the server does not say what became of {id}; it was not stopped"),
            "`weighlock show` shows its state",
        )
    })
}

fn print_exec(view: &CommandView) {
    let said = view.text.iter().chain(&view.stdout);
    said.for_each(|text| print!("{}", shown(text)));
    let errors = view.stderr.iter();
    errors.for_each(|text| eprint!("{}", shown(text)));
    let run = &view.run;
    let notes = run.detail.warnings.iter().flat_map(|note| note.lines());
    notes.for_each(|note| say!("! {}", safe(note)));
    match (&run.detail.reason, run.state) {
        (_, State::Running) if is_queued(run) => say!("◔ waits for its turn   {}", run.short_id),
        (_, State::Running) => say!("● goes on   {}", run.short_id),
        (_, State::Waiting) => say!("◔ waits for approval   {}", run.short_id),
        (_, State::Held) => say!("◔ held until work is resumed   {}", run.short_id),
        (Some(reason), _) => say!("⛔ {}", safe(&reason.text)),
        (None, _) => {}
    }
}

/// What a command said, without what would move about in the terminal. Tabs
/// are text.
fn shown(text: &str) -> String {
    let parts: Vec<String> = text.split('\t').map(weighlock_engine::safe_prose).collect();
    parts.join("\t")
}

fn size(text: &str) -> Result<TerminalSize, String> {
    let parts = text.split_once('x');
    let parts = parts.and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
    let (columns, rows) = parts.ok_or("write characters and lines, as in 120x40")?;
    Ok(TerminalSize { columns, rows })
}

fn input(args: SendInput) -> TerminalInput {
    let (text, paste) = match args.paste {
        true => (None, args.text),
        false => (args.text, None),
    };
    TerminalInput {
        text,
        paste,
        keys: args.keys,
        submit: args.enter,
        eof: args.eof,
    }
}

fn print(screen: &ScreenView, history: bool) {
    let lines = match history {
        true => &screen.history,
        false => &screen.rows,
    };
    let blank = lines.iter().rev().take_while(|line| line.is_empty());
    for line in &lines[..lines.len() - blank.count()] {
        println!("{}", safe(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_are_text_and_escapes_are_not() {
        let said = shown("a\tb\u{1b}[31mc\n");
        assert_eq!(said, "a\tb⟦U+001B⟧[31mc\n");
    }
}
