//! `weighlock run`: one command, from here, with its output passed through.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::io::AsyncReadExt;
use tokio::signal::unix::{Signal, SignalKind, signal};
use weighlock_engine::{Run, State};
use weighlock_server::{CommandView, FRAME_HEADER, Frame, NewCommand, ShellName, StopRequest};

use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;
use crate::text;

/// A pipe on standard input that says nothing for so long is one that somebody
/// forgot to close; waiting for it would hang the command.
const SILENT_PIPE: Duration = Duration::from_millis(100);

/// After so long without output, a line says that the command still runs.
const QUIET: Duration = Duration::from_secs(1);

/// How long the last output of a command that was stopped may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long a command that is asked to stop has to end in order.
const GRACE_MS: u64 = 2000;

/// Run one command
#[derive(clap::Args)]
#[command(
    before_help = "Examples:
  weighlock run -- git status
  weighlock run -- 'grep -rn TODO src | head'      one word is shell text
  weighlock run -- echo 'a b' '*'                  several words are taken as they are
  weighlock run -d 'Run the tests' --timeout 10m -- npm test
  weighlock run --bg -- npm run dev
  weighlock run --json -- make",
    after_help = "Exit codes: the command's own; 124 time limit; 125 weighlock itself failed; \
126 blocked; 127 command not found; 128+n ended by signal n; 75 still running after --wait."
)]
pub(crate) struct Args {
    /// What it is for, in a few words
    #[arg(short, long, value_name = "WHY")]
    description: Option<String>,
    /// End it after this time: 500ms, 90s, 2m, 1h
    #[arg(long, value_name = "TIME", value_parser = text::parse_time, allow_hyphen_values = true)]
    timeout: Option<i64>,
    /// End it after this time without output
    #[arg(long, value_name = "TIME", value_parser = text::parse_time, allow_hyphen_values = true)]
    idle: Option<i64>,
    /// Wait at most this long, then leave it running in the background
    #[arg(long, value_name = "TIME", value_parser = text::parse_patience, conflicts_with = "bg")]
    wait: Option<Duration>,
    /// Run it in the background and return at once
    #[arg(long, alias = "no-wait")]
    bg: bool,
    /// Let what the shell leaves running go on
    #[arg(long)]
    keep: bool,
    /// Run it in this directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<std::path::PathBuf>,
    /// Set an environment variable; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// What reads the command: sh or bash
    #[arg(long, value_name = "SHELL", default_value = "sh", value_parser = ["sh", "bash"])]
    shell: String,
    /// Pass on standard input however long it takes
    #[arg(short = 'i', long, conflicts_with = "no_stdin")]
    stdin: bool,
    /// Give it no standard input
    #[arg(long)]
    no_stdin: bool,
    /// Print the whole result as one JSON object instead of the output
    #[arg(long)]
    json: bool,
    /// Print nothing of our own
    #[arg(short, long)]
    quiet: bool,
    /// The command: one word of shell text, or a program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    command: Vec<std::ffi::OsString>,
}

pub(crate) fn run(args: Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let input = Source::choose(&args);
    let request = request(&args, input)?;
    block_on(async {
        let mut client = Client::open(paths).await?;
        // From before the start: no Ctrl C may end us and leave the command.
        let signals = Signals::new()?;
        let begun: CommandView = client.post("/commands", &request).await?;
        let mut show = Show::new(&args);
        if begun.run.state == State::Blocked {
            show.blocked(&begun);
            return Ok(ExitCode::from(126));
        }
        show.warnings(&begun.run);
        if args.bg {
            show.in_background(&begun);
            return Ok(ExitCode::SUCCESS);
        }
        show.begun(&begun.run);
        let mut attending = Attending {
            client,
            paths,
            id: begun.run.command_id.clone(),
            asked_to_stop: 0,
            signals,
            show,
        };
        let ended = attending.attend(input, args.wait).await?;
        attending.show.ended(&ended);
        Ok(exit_code(&ended.run))
    })
}

fn request(args: &Args, input: Source) -> Result<NewCommand, Failure> {
    let mut words = vec![];
    for word in &args.command {
        let word = word.to_str().ok_or_else(|| {
            Failure::new(
                "the command is not valid UTF-8; nothing was run",
                "put such bytes into a script: $'\\xff' in bash, or printf '\\377'",
            )
        })?;
        words.push(word.to_owned());
    }
    let command = match words.as_slice() {
        [text] => text.clone(),
        words => text::quote(words),
    };
    let here = std::env::current_dir();
    let cwd = match (&args.cwd, here) {
        (Some(cwd), Ok(here)) => here.join(cwd),
        (Some(cwd), Err(_)) => cwd.clone(),
        (None, Ok(here)) => here,
        (None, Err(error)) => {
            return Err(Failure::new(
                format!("the current directory cannot be used: {error}; nothing was run"),
                "go to a directory that exists, or give one with --cwd",
            ));
        }
    };
    Ok(NewCommand {
        command,
        description: args.description.clone(),
        cwd: Some(cwd.to_string_lossy().into_owned()),
        env: args.env.iter().cloned().collect::<BTreeMap<_, _>>(),
        shell: match args.shell.as_str() {
            "bash" => ShellName::Bash,
            _ => ShellName::Sh,
        },
        stdin_open: input != Source::None,
        timeout_ms: args.timeout,
        idle_ms: args.idle,
        // The output is followed meanwhile, so nobody waits for this answer.
        wait_ms: Some(0),
        keep: args.keep,
        ..NewCommand::default()
    })
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".into()),
    }
}

/// Where the command's input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Nowhere.
    None,
    /// Our standard input, which will end.
    Whole,
    /// A pipe that may never end.
    Pipe,
}

impl Source {
    fn choose(args: &Args) -> Self {
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
        } else if kind.is_fifo() || kind.is_socket() {
            Self::Pipe
        } else {
            Self::None
        }
    }
}

/// A run that we watch.
struct Attending<'a> {
    client: Client,
    paths: &'a Paths,
    id: String,
    asked_to_stop: u32,
    signals: Signals,
    show: Show,
}

impl Attending<'_> {
    /// Passes everything on until the command has ended or we waited enough.
    async fn attend(
        &mut self,
        input: Source,
        wait: Option<Duration>,
    ) -> Result<CommandView, Failure> {
        let mut following = Client::open(self.paths).await?;
        let address = format!("/commands/{}/output/raw?frames=true&follow=ended", self.id);
        let frames = Frames::new(following.stream(&address).await?);
        let passing = pass_on(frames, self.show.clone());
        let feeding = feed(self.paths.clone(), self.id.clone(), input);
        tokio::pin!(passing, feeding);
        let mut fed = input == Source::None;
        let mut deadline = wait.map(|wait| tokio::time::Instant::now() + wait);
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        let (tell_stopped, mut stopped) = tokio::sync::mpsc::channel(1);
        loop {
            tokio::select! {
                done = &mut passing => {
                    done?;
                    break;
                }
                note = &mut feeding, if !fed => {
                    fed = true;
                    if let Some(note) = note? {
                        self.show.say(&note);
                    }
                }
                interrupt = self.signals.next() => self.stop(interrupt, tell_stopped.clone()),
                // What was stopped has a moment to hand over its last output.
                Some(()) = stopped.recv() => {
                    deadline = Some(tokio::time::Instant::now() + LAST_WORDS);
                }
                () = until(deadline) => break,
                _ = tick.tick() => self.show_patience().await,
            }
        }
        self.show.hide_status();
        let more = if deadline.is_some_and(|deadline| tokio::time::Instant::now() >= deadline) {
            0
        } else {
            // The output has ended; the record follows at once.
            60_000
        };
        self.client
            .get(&format!("/commands/{}?wait_ms={more}", self.id))
            .await
    }

    /// Asks the run to end: the first time politely.
    fn stop(&mut self, interrupt: bool, tell: tokio::sync::mpsc::Sender<()>) {
        self.asked_to_stop += 1;
        let how = StopRequest {
            interrupt,
            grace_ms: Some(if self.asked_to_stop == 1 { GRACE_MS } else { 0 }),
        };
        let (paths, id) = (self.paths.clone(), self.id.clone());
        tokio::spawn(async move {
            let mut client = Client::open(&paths).await?;
            let path = format!("/commands/{id}/stop");
            let stopped = client.post::<CommandView>(&path, &how).await;
            let _ = tell.send(()).await;
            stopped
        });
    }

    async fn show_patience(&mut self) {
        if !self.show.wants_status() {
            return;
        }
        let path = format!("/commands/{}", self.id);
        if let Ok(now) = self.client.get::<CommandView>(&path).await {
            self.show.status(&now);
        }
    }
}

const SILENT_NOTE: &str = "note: standard input is a pipe that said nothing and was closed for \
                           the command; use --stdin to wait for it";

/// Hands over our input; returns what should be said about it.
async fn feed(paths: Paths, id: String, input: Source) -> Result<Option<String>, Failure> {
    if input == Source::None {
        return Ok(None);
    }
    let mut client = Client::open(&paths).await?;
    let mut stdin = tokio::io::stdin();
    let mut buffer = vec![0; 64 * 1024];
    let mut first = true;
    loop {
        let read = stdin.read(&mut buffer);
        let read = if first && input == Source::Pipe {
            tokio::time::timeout(SILENT_PIPE, read).await
        } else {
            Ok(read.await)
        };
        first = false;
        let (bytes, last, note) = match read {
            Ok(Ok(0)) => (Bytes::new(), true, None),
            Ok(Ok(read)) => (Bytes::copy_from_slice(&buffer[..read]), false, None),
            Ok(Err(error)) => (Bytes::new(), true, Some(error.to_string())),
            Err(_) => (Bytes::new(), true, Some(SILENT_NOTE.into())),
        };
        let path = format!("/commands/{id}/stdin?last={last}");
        let wanted = client.feed(&path, bytes).await?;
        if last || !wanted {
            return Ok(note);
        }
    }
}

/// Prints the command's output as it comes. Printing has a thread of its own:
/// a reader that does not read must not keep us from hearing Ctrl C.
async fn pass_on(mut frames: Frames, mut show: Show) -> Result<(), Failure> {
    while let Some((kind, bytes)) = frames.next().await? {
        show.heard(&bytes);
        if show.json {
            continue;
        }
        show.hide_status();
        let printed = tokio::task::spawn_blocking(move || print(kind, &bytes)).await;
        // A reader that went away is no reason to end the command.
        drop(printed);
    }
    Ok(())
}

fn print(kind: Frame, bytes: &[u8]) -> std::io::Result<()> {
    match kind {
        Frame::Stdout => flushed(&mut std::io::stdout().lock(), bytes),
        Frame::Stderr => flushed(&mut std::io::stderr().lock(), bytes),
        Frame::Gap => {
            let missing = bytes.try_into().map_or(0, u64::from_be_bytes);
            let note = format!("… {missing} bytes of output came too fast and are not kept …\n");
            flushed(&mut std::io::stderr().lock(), note.as_bytes())
        }
    }
}

fn flushed(to: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The signals that mean "stop it".
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::new(format!("cannot listen for signals: {error}"), ""))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Returns whether it was Ctrl C.
    async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.interrupt.recv() => true,
            _ = self.terminate.recv() => false,
            _ = self.hang_up.recv() => false,
        }
    }
}

/// Frames out of a stream of bytes.
pub(crate) struct Frames {
    body: Incoming,
    buffer: bytes::BytesMut,
}

impl Frames {
    pub(crate) fn new(body: Incoming) -> Self {
        Self {
            body,
            buffer: bytes::BytesMut::new(),
        }
    }

    /// Returns the next frame; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<(Frame, Bytes)>, Failure> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(piece)) => {
                    if let Ok(bytes) = piece.into_data() {
                        self.buffer.extend_from_slice(&bytes);
                    }
                }
                Some(Err(error)) => {
                    return Err(Failure::new(
                        format!("the connection to the server broke: {error}"),
                        "the run goes on: `weighlock output @last --follow`",
                    ));
                }
            }
        }
    }

    fn take(&mut self) -> Result<Option<(Frame, Bytes)>, Failure> {
        let Some(header) = self.buffer.get(..FRAME_HEADER) else {
            return Ok(None);
        };
        let header = header.try_into().expect("as long as a header");
        let (kind, length) = Frame::read(header)
            .ok_or_else(|| Failure::new("the server's answer is not understood", ""))?;
        if self.buffer.len() < FRAME_HEADER + length {
            return Ok(None);
        }
        let mut frame = self.buffer.split_to(FRAME_HEADER + length);
        Ok(Some((kind, frame.split_off(FRAME_HEADER).freeze())))
    }
}

/// What we print: the command's output as it is, and a few lines of our own on
/// standard error.
#[derive(Clone)]
struct Show {
    json: bool,
    quiet: bool,
    terminal: bool,
    began: Instant,
    screen: Rc<Cell<Screen>>,
}

/// What is on the terminal, whoever put it there.
#[derive(Clone, Copy)]
struct Screen {
    last_output: Instant,
    last_status: Option<Instant>,
    at_line_start: bool,
}

impl Show {
    fn new(args: &Args) -> Self {
        let now = Instant::now();
        Self {
            json: args.json,
            quiet: args.quiet || args.json,
            terminal: std::io::stderr().is_terminal(),
            began: now,
            screen: Rc::new(Cell::new(Screen {
                last_output: now,
                last_status: None,
                at_line_start: true,
            })),
        }
    }

    fn say(&mut self, line: &str) {
        if !self.quiet {
            self.hide_status();
            eprintln!("{line}");
        }
    }

    /// One line with something at its right end.
    fn aligned(&mut self, left: &str, right: &str) {
        let pad = 72_usize.saturating_sub(left.chars().count() + right.chars().count());
        self.say(&format!("{left}{}{right}", " ".repeat(pad.max(2))));
    }

    fn title(run: &Run) -> String {
        let title = run.detail.description.as_ref().unwrap_or(&run.command);
        text::one_line(title, 50)
    }

    fn warnings(&mut self, run: &Run) {
        for warning in &run.detail.warnings {
            self.say(&format!("warning: {}", text::safe(warning)));
        }
    }

    fn begun(&mut self, run: &Run) {
        let place = std::path::Path::new(&run.cwd);
        let place = place
            .file_name()
            .map_or("/".into(), |name| name.to_string_lossy());
        self.aligned(
            &format!("● {}", Self::title(run)),
            &format!("{} · network on", text::one_line(&place, 20)),
        );
    }

    fn in_background(&mut self, begun: &CommandView) {
        if self.json {
            return print_json(begun);
        }
        let (title, id) = (Self::title(&begun.run), &begun.run.short_id);
        self.aligned(&format!("● {title} — in the background"), id);
        self.say(&format!(
            "  weighlock output {id} --follow    weighlock stop {id}"
        ));
        if self.quiet {
            println!("{id}");
        }
    }

    fn blocked(&mut self, view: &CommandView) {
        if self.json {
            return print_json(view);
        }
        // Said even when asked to be quiet: nothing else tells what happened.
        eprintln!("⛔ Blocked — nothing was run");
        if let Some(reason) = &view.run.detail.reason {
            let rule = reason.rule.as_deref().unwrap_or_default();
            eprintln!(
                "   {}   {}   rule \"{}\"",
                text::one_line(&view.run.command, 60),
                reason.text,
                text::safe(rule)
            );
            if let Some(remedy) = &reason.remedy {
                eprintln!("   {remedy}");
            }
        }
    }

    fn heard(&mut self, bytes: &[u8]) {
        self.screen.set(Screen {
            last_output: Instant::now(),
            at_line_start: bytes.ends_with(b"\n"),
            ..self.screen.get()
        });
    }

    fn wants_status(&self) -> bool {
        let screen = self.screen.get();
        let due = screen
            .last_status
            .is_none_or(|last| last.elapsed() >= QUIET);
        let silent = screen.at_line_start && screen.last_output.elapsed() >= QUIET;
        self.terminal && !self.quiet && due && silent
    }

    fn status(&mut self, now: &CommandView) {
        const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
        let seconds = self.began.elapsed().as_secs();
        let spinner = SPINNER[seconds as usize % SPINNER.len()];
        let mut line = format!(
            "{spinner} {}",
            text::duration(self.began.elapsed().as_millis() as f64)
        );
        if let Some(load) = &now.load {
            let plural = if load.processes == 1 { "" } else { "es" };
            line.push_str(&format!(
                " · {} process{plural} · {}",
                load.processes,
                text::size(load.memory_bytes)
            ));
        }
        eprint!("\r\x1b[K{line}");
        self.screen.set(Screen {
            last_status: Some(Instant::now()),
            ..self.screen.get()
        });
    }

    fn hide_status(&mut self) {
        let mut screen = self.screen.get();
        if screen.last_status.take().is_some() {
            eprint!("\r\x1b[K");
            self.screen.set(screen);
        }
    }

    fn ended(&mut self, view: &CommandView) {
        if self.json {
            return print_json(view);
        }
        let run = &view.run;
        if !self.screen.get().at_line_start {
            self.say("");
        }
        self.aligned(&super::show::ending(run), &run.short_id);
        for left in &run.detail.left_running {
            let fate = if left.fate == "kept" {
                "goes on"
            } else {
                "was ended"
            };
            self.say(&format!(
                "  left running, {fate}: {} (pid {})",
                text::one_line(&left.command, 60),
                left.pid
            ));
        }
        if run.state == State::Running {
            let id = &run.short_id;
            self.say(&format!(
                "  weighlock output {id} --follow    weighlock stop {id}"
            ));
        }
        if let Some(because) = &run.detail.output.lost_because {
            self.say(&format!(
                "  {} bytes of output could not be stored: {}",
                run.detail.output.lost_bytes,
                text::safe(because)
            ));
        }
    }
}

pub(crate) fn print_json(value: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(value).expect("views are always JSON");
    println!("{text}");
}

fn exit_code(run: &Run) -> ExitCode {
    let code = match run.state {
        State::Running => 75,
        State::TimedOut => 124,
        State::Blocked => 126,
        State::Lost => 125,
        _ => match (run.exit_code, run.signal) {
            (Some(code), _) => code,
            (None, Some(signal)) => 128 + signal,
            (None, None) => 125,
        },
    };
    ExitCode::from(u8::try_from(code).unwrap_or(125))
}
