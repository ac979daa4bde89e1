//! `weighlock replay`: what a terminal showed, once more.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::client::{Failure, block_on};
use crate::paths::Paths;
use crate::replay::{
    FASTEST, Player, RecordingFile, ReplayDesk, SLOWEST, ScannedRecording, Transcript,
    TranscriptLine, clock, parse_clock, play,
};
use crate::term::say;
use crate::text;

/// Play the recording of a terminal or a run
#[derive(clap::Args)]
#[command(
    before_help = "Examples:
  weighlock replay dev-server
  weighlock replay @last --at 8:31 --speed 2
  weighlock replay dev-server --text | less
  weighlock replay dev-server --export file.cast
  weighlock replay file.cast --idle off",
    after_help = "Keys:
  space      pause; at the end, play it again
  ← →        5 s back, 5 s on; Home and End
  [ ]        previous mark, next mark: commands, approvals, sizes, exits
  < >        half the speed, twice the speed
  /          find text and list the times; n and N go to the next and previous one
  g          go to a time: 8:31, 1:02:03 or 83
  h j k l    scroll what is larger than the window, as ↑ ↓ and the page keys do;
             c goes back to where the cursor is
  q          leave"
)]
pub(crate) struct Args {
    /// A terminal's name, a run's id (or @last), or a file
    what: OsString,
    /// How fast, from 0.5 to 16
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,
    /// Shorten pauses to this; `off` keeps them
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = idle)]
    idle: Idle,
    /// Start at this time: 8:31, 1:02:03 or 83
    #[arg(long, value_name = "TIME", value_parser = parse_clock)]
    at: Option<Duration>,
    /// Print a transcript: each line with its time
    #[arg(long, conflicts_with = "export")]
    text: bool,
    /// Write the recording to a file, for any player of asciicast
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "export")]
    force: bool,
}

/// The longest pause that is played; none for all.
#[derive(Clone, Copy)]
struct Idle(Option<Duration>);

pub(crate) fn replay(args: &Args, paths: Result<Paths, Failure>) -> Result<ExitCode, Failure> {
    let is_for_eyes = !args.text && args.export.is_none();
    if is_for_eyes && !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        let none = Failure::new(
            "a recording is played on a terminal, and there is none; nothing was played",
            "--text prints what it shows, --export FILE saves it",
        );
        eprint!("{none}");
        return Ok(ExitCode::from(2));
    }
    let source = RecordingFile::find(&args.what, paths)?;
    match &args.export {
        Some(target) => export(&source, target, args.force)?,
        None if args.text => print(
            &ScannedRecording::open(source)?,
            args.at.unwrap_or_default(),
        )?,
        None => watch(args, ScannedRecording::open(source)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn watch(args: &Args, recording: ScannedRecording) -> Result<(), Failure> {
    let mut player = Player::new(recording, args.speed, args.idle.0)?;
    player.seek(args.at.unwrap_or_default())?;
    block_on(play(ReplayDesk::new(player)))
}

/// Prints what is not before a time.
fn print(recording: &ScannedRecording, from: Duration) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut put = |entries: Vec<TranscriptLine>| {
        let mut entries = entries.iter().filter(|entry| entry.time >= from);
        entries.try_for_each(|entry| writeln!(out, "{}", line(entry)))
    };
    let mut transcript = Transcript::new(recording.size());
    for event in recording.reader()? {
        let event = event.map_err(|error| recording.failure(error))?;
        if put(transcript.feed(&event)).is_err() {
            // Whoever read it went away.
            return Ok(());
        }
    }
    let _ = put(transcript.finish());
    let _ = out.flush();
    Ok(())
}

/// `8:31  text`, and `8:31  ── $ npm test` for a mark.
fn line(entry: &TranscriptLine) -> String {
    let parts: Vec<String> = entry.text.split('\t').map(text::safe).collect();
    let sign = if entry.is_mark { "── " } else { "" };
    let time = clock(entry.time);
    let line = format!("{time:>8}  {sign}{}", parts.join("\t").replace('\n', " ⏎ "));
    line.trim_end().to_owned()
}

fn export(source: &RecordingFile, target: &Path, force: bool) -> Result<(), Failure> {
    let mut from = source.open()?;
    let done = match force {
        // The old one stays until the new one is whole; it may be the same.
        true => {
            let mut beside = target.as_os_str().to_owned();
            beside.push(format!(".{}", std::process::id()));
            let beside = PathBuf::from(beside);
            write(&mut from, &beside).and_then(|()| std::fs::rename(&beside, target))
        }
        false => write(&mut from, target),
    };
    done.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::new(
            format!("{} is there already; nothing was written", target.display()),
            "--force replaces it",
        ),
        _ => Failure::new(
            format!("cannot write {}: {error}", target.display()),
            "nothing was written; try another directory",
        ),
    })?;
    say!("Written to {}.", text::safe(&target.display().to_string()));
    Ok(())
}

/// Writes a file that was not there, for its owner alone; whole or not at all.
fn write(from: &mut File, target: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(target)?;
    let copied = io::copy(from, &mut file);
    if copied.is_err() {
        let _ = std::fs::remove_file(target);
    }
    copied.map(drop)
}

fn speed(written: &str) -> Result<f64, String> {
    let number = written.trim_end_matches(['x', '×']).parse::<f64>().ok();
    number
        .filter(|number| (SLOWEST..=FASTEST).contains(number))
        .ok_or_else(|| format!("`{written}` is no speed; write a number from 0.5 to 16"))
}

fn idle(written: &str) -> Result<Idle, String> {
    if written == "off" {
        return Ok(Idle(None));
    }
    match text::parse_patience(written)? {
        Duration::ZERO => Err("a pause takes some time; `--idle 100ms` is a short one".into()),
        time => Ok(Idle(Some(time))),
    }
}
