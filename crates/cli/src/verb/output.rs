//! `weighlock output`: what a run said.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use weighlock_server::{CommandView, FoundLines, Frame, LineView, LinesView};

use super::show::resolve;
use crate::client::{Client, Failure, block_on, escape};
use crate::frames::FrameDecoder;
use crate::paths::Paths;
use crate::text;

/// How many lines are fetched at a time.
const STEP: u64 = 10_000;

/// Print the output of a run, while it runs or after
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock output @last
  weighlock output @last --lines 500000:500010
  weighlock output @last --find 'error|warning'
  weighlock output @last --follow
  weighlock output @last --raw > file      the exact bytes")]
pub(crate) struct Args {
    /// The run: an id, a unique prefix of one, or @last
    id: String,
    /// Only these lines, counted from 1: 10:40, 10:, :40 or 10
    #[arg(long, value_name = "FROM:TO", value_parser = range)]
    lines: Option<(u64, u64)>,
    /// Only lines that match this regular expression, with their numbers
    #[arg(long, value_name = "REGEX", conflicts_with = "lines")]
    find: Option<String>,
    /// Follow the output until the run ends
    #[arg(short, long, conflicts_with_all = ["lines", "find"])]
    follow: bool,
    /// Print the exact bytes of both streams, in order, to standard output
    #[arg(long, conflicts_with_all = ["lines", "find"])]
    raw: bool,
    /// Print what an agent gets: shortened by the preset's rule
    #[arg(long, conflicts_with_all = ["lines", "find", "follow", "raw"])]
    agent: bool,
    /// Print a JSON object for each line, with its stream, time and offset
    #[arg(long, conflicts_with_all = ["follow", "raw", "agent"])]
    json_lines: bool,
}

pub(crate) fn output(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    block_on(async {
        let mut client = Client::open(paths).await?;
        let id = resolve(&mut client, &args.id).await?;
        match (&args.find, args.lines) {
            (Some(pattern), _) => find(&mut client, &id, pattern, args.json_lines).await,
            (None, Some(range)) => lines(&mut client, &id, range, args.json_lines).await,
            (None, None) if args.json_lines => lines(&mut client, &id, (1, u64::MAX), true).await,
            (None, None) if args.agent => agent(&mut client, &id).await,
            (None, None) => all(&mut client, &id, args).await,
        }
    })
}

async fn all(client: &mut Client, id: &str, args: &Args) -> Result<ExitCode, Failure> {
    let follow = if args.follow { "closed" } else { "no" };
    let address = format!("/commands/{id}/output/raw?frames=true&follow={follow}");
    let mut frames = FrameDecoder::new(client.stream(&address).await?);
    let mut printer = Printer::new(args.raw);
    while let Some((kind, bytes)) = frames.next().await? {
        if printer.print(kind, &bytes).is_err() {
            // Whoever read our output went away.
            return Ok(ExitCode::SUCCESS);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Passes bytes on, made safe where a terminal would act on them.
struct Printer {
    raw: bool,
    stdout: Safe,
    stderr: Safe,
}

/// One stream on its way to a terminal, or not.
struct Safe {
    wanted: bool,
    /// The beginning of a character whose rest is still to come.
    open: Vec<u8>,
}

impl Printer {
    fn new(raw: bool) -> Self {
        let safe = |terminal: bool| Safe {
            wanted: !raw && terminal,
            open: vec![],
        };
        Self {
            raw,
            stdout: safe(std::io::stdout().is_terminal()),
            stderr: safe(std::io::stderr().is_terminal()),
        }
    }

    fn print(&mut self, kind: Frame, bytes: &[u8]) -> std::io::Result<()> {
        match kind {
            Frame::Gap => {
                let missing = bytes.try_into().map_or(0, u64::from_be_bytes);
                eprintln!("… {missing} bytes are not kept …");
                Ok(())
            }
            Frame::Stderr if !self.raw => self.stderr.write(&mut std::io::stderr().lock(), bytes),
            _ => self.stdout.write(&mut std::io::stdout().lock(), bytes),
        }
    }
}

impl Safe {
    fn write(&mut self, to: &mut impl Write, bytes: &[u8]) -> std::io::Result<()> {
        if self.wanted {
            let mut joined = std::mem::take(&mut self.open);
            joined.extend_from_slice(bytes);
            let whole = joined.len() - unfinished(&joined);
            self.open = joined.split_off(whole);
            let text = String::from_utf8_lossy(&joined);
            let parts: Vec<String> = text.split('\t').map(text::safe).collect();
            to.write_all(parts.join("\t").as_bytes())?;
        } else {
            to.write_all(bytes)?;
        }
        to.flush()
    }
}

/// Returns how many bytes at the end could still become a character.
fn unfinished(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last();
    let open = last.map_or(&[][..], |chunk| chunk.invalid());
    match std::str::from_utf8(open) {
        Err(error) if error.error_len().is_none() => open.len(),
        _ => 0,
    }
}

async fn lines(
    client: &mut Client,
    id: &str,
    (from, to): (u64, u64),
    json: bool,
) -> Result<ExitCode, Failure> {
    let mut next = from;
    while next <= to {
        let count = (to - next).saturating_add(1).min(STEP);
        let page: LinesView = client
            .get(&format!("/commands/{id}/output?from={next}&lines={count}"))
            .await?;
        if let Some((first, last)) = page.missing {
            eprintln!("… lines {first} to {last} are not kept …");
        }
        for line in &page.lines {
            print_line(line, false, json);
        }
        let last = page.lines.last().map(|line| line.line);
        let missing = page.missing.map(|(_, last)| last);
        match last.max(missing) {
            Some(last) => next = last + 1,
            None => break,
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn find(
    client: &mut Client,
    id: &str,
    pattern: &str,
    json: bool,
) -> Result<ExitCode, Failure> {
    let (mut from, mut any) = (1, false);
    loop {
        let address = format!(
            "/commands/{id}/output/find?q={}&from={from}&limit={STEP}",
            escape(pattern)
        );
        let page: FoundLines = client.get(&address).await?;
        for line in &page.lines {
            print_line(line, true, json);
        }
        any |= !page.lines.is_empty();
        match page.lines.last() {
            Some(last) if page.more => from = last.line + 1,
            // As grep: nothing found is not a success.
            _ => return Ok(ExitCode::from(u8::from(!any))),
        }
    }
}

async fn agent(client: &mut Client, id: &str) -> Result<ExitCode, Failure> {
    let view: CommandView = client.get(&format!("/commands/{id}")).await?;
    let mut printer = Printer::new(false);
    let stdout = view.text.or(view.stdout).unwrap_or_default();
    // A reader that went away ends us.
    let _ = printer.print(Frame::Stdout, stdout.as_bytes());
    let _ = printer.print(Frame::Stderr, view.stderr.unwrap_or_default().as_bytes());
    if let Some(note) = view.note {
        eprintln!("{note}");
    }
    Ok(ExitCode::SUCCESS)
}

fn print_line(line: &LineView, numbered: bool, json: bool) {
    if json {
        println!("{}", serde_json::to_string(line).expect("always JSON"));
        return;
    }
    let shown = if std::io::stdout().is_terminal() {
        text::safe_prose(&line.text)
    } else {
        line.text.clone()
    };
    let cut = if line.cut { "…" } else { "" };
    if numbered {
        println!("{}:{shown}{cut}", line.line);
    } else {
        println!("{shown}{cut}");
    }
}

fn range(written: &str) -> Result<(u64, u64), String> {
    let number = |text: &str, default| match text {
        "" => Ok(default),
        text => text
            .parse::<u64>()
            .map_err(|_| format!("`{text}` is no line number")),
    };
    let (from, to) = match written.split_once(':') {
        Some((from, to)) => (number(from, 1)?, number(to, u64::MAX)?),
        None => {
            let line = number(written, 1)?;
            (line, line)
        }
    };
    if from == 0 || to < from {
        return Err("lines are counted from 1, and FROM is not after TO".into());
    }
    Ok((from, to))
}

#[cfg(test)]
mod tests {
    use super::{range, unfinished};

    #[test]
    fn a_cut_character_waits_for_its_rest() {
        assert_eq!(unfinished("café".as_bytes()), 0);
        assert_eq!(unfinished(b"caf\xc3"), 1);
        assert_eq!(unfinished(b"\xf0\x9f\x98"), 3);
        assert_eq!(unfinished(b"\xff\xfe"), 0);
        assert_eq!(unfinished(b""), 0);
    }

    #[test]
    fn ranges_are_read() {
        assert_eq!(range("10:40"), Ok((10, 40)));
        assert_eq!(range("10:"), Ok((10, u64::MAX)));
        assert_eq!(range(":40"), Ok((1, 40)));
        assert_eq!(range("7"), Ok((7, 7)));
        for wrong in ["0", "0:5", "5:4", "a:b", "-1:2", "1:2:3"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
