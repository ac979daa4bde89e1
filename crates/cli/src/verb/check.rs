//! `weighlock check`: verdicts for scripts and CI. In-process: no server, no
//! state, no home needed.

use std::ffi::OsString;
use std::io::{BufRead, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weighlock_engine::{Clock, Judge, Principal, Request, Verdict};

use crate::client::Failure;
use crate::paths::{self, default_base};
use crate::{config, given, judged, text};

/// Far above any command that can be run; what is longer is no line of ours.
const MAX_LINE: u64 = 4 * 1024 * 1024;

/// Judge commands without a server and without running them
#[derive(clap::Args)]
#[command(
    before_help = "Examples:
  weighlock check 'git status && rm -rf build/'
  weighlock check --batch < commands.jsonl         one {\"id\", \"command\"} on each line",
    after_help = "Exit codes: 0 auto (it would run), 3 ask (a person would be asked), 4 reject \
(it never \
runs); 1 failed, 2 wrong usage. With --batch: 0, or 1 if a line could not be judged.

It reads the server's settings and rule files, but not the grants in its database."
)]
pub(crate) struct Args {
    /// The command: one word of shell text, or a program and its arguments
    #[arg(value_name = "CMD", conflicts_with = "batch")]
    command: Vec<OsString>,
    /// Judge each line of standard input: JSON with id, command, and optionally
    /// cwd, agent, sandbox
    #[arg(long)]
    batch: bool,
    /// The sandbox it would run in
    #[arg(short, long, value_name = "NAME")]
    sandbox: Option<String>,
    /// The agent profile it would run under
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The directory it would run in; it need not exist
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The configuration file [default: the server's]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// One line of a batch. Other keys are somebody else's.
#[derive(Deserialize)]
struct BatchLine {
    #[serde(default)]
    id: Value,
    command: String,
    cwd: Option<String>,
    agent: Option<String>,
    sandbox: Option<String>,
}

/// What is said to one.
#[derive(Serialize)]
struct BatchAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) fn check(args: &Args) -> Result<ExitCode, Failure> {
    if args.command.is_empty() && !args.batch {
        let what = match std::io::stdin().is_terminal() {
            true => "no command was given",
            false => "no command was given, and standard input is not read without --batch",
        };
        let usage = "weighlock check 'CMD', or weighlock check --batch < FILE";
        eprint!("{}", Failure::new(what, usage));
        return Ok(ExitCode::from(2));
    }
    let judge = judge(args)?;
    if args.batch {
        return batch(args, &judge);
    }
    let command = given::command(&args.command)?;
    let (verdict, reasons) = judge.verdict(&request(args, command, None)?)?;
    if args.json {
        let reasons = reasons.into_iter().map(|reason| reason.text).collect();
        text::print_json(&BatchAnswer::of(None, verdict, reasons));
    } else {
        let why = reasons.first().map(|reason| reason.text.as_str());
        let why = why.map_or(String::new(), |why| format!(": {}", text::safe(why)));
        println!("{}{why}", judged::word(verdict));
    }
    Ok(ExitCode::from(match verdict {
        Verdict::Auto => 0,
        Verdict::Ask => 3,
        Verdict::Reject => 4,
    }))
}

fn judge(args: &Args) -> Result<Judge, Failure> {
    let file = args.config.clone().or_else(paths::config);
    if let Some(file) = args.config.as_ref().filter(|file| !file.exists()) {
        return Err(Failure::new(
            format!("there is no {}", file.display()),
            "docs/config.toml has every setting with its default",
        ));
    }
    // Nothing is kept; and without a file, what is written is nothing.
    let file = file.unwrap_or_else(|| "/dev/null".into());
    let settings = config::load(&file, std::path::Path::new(""), default_base()?)?;
    Ok(Judge::open(&settings.engine, Clock::system())?)
}

fn request(args: &Args, command: String, cwd: Option<String>) -> Result<Request, Failure> {
    let here = match (cwd, &args.sandbox, &args.cwd) {
        (Some(cwd), ..) => Some(cwd),
        // Whoever names a sandbox need not be there.
        (None, Some(_), None) => None,
        (None, _, cwd) => Some(given::cwd(cwd.as_deref())?),
    };
    Ok(Request {
        cwd: here,
        agent: args.agent.clone(),
        sandbox: args.sandbox.clone(),
        ..Request::new(Principal::library("check"), command)
    })
}

/// Answers each line as it comes, in its order.
fn batch(args: &Args, judge: &Judge) -> Result<ExitCode, Failure> {
    let broken = |error: std::io::Error| {
        Failure::new(
            format!("cannot read lines or write answers: {error}; the rest was not checked"),
            "give the lines that have no answer again",
        )
    };
    let mut input = std::io::stdin().lock();
    let mut output = BufWriter::new(std::io::stdout().lock());
    let mut all_well = true;
    let (mut line, mut number) = (vec![], 0_u64);
    while read_line(&mut input, &mut line).map_err(broken)? {
        number += 1;
        let answer = answer(args, judge, &line, number);
        all_well &= answer.error.is_none();
        let text = serde_json::to_string(&answer).expect("answers are always JSON");
        writeln!(output, "{text}").map_err(broken)?;
        // Whoever asks one at a time waits for it.
        if !has_more(&mut input) {
            output.flush().map_err(broken)?;
        }
    }
    output.flush().map_err(broken)?;
    Ok(ExitCode::from(u8::from(!all_well)))
}

/// Reads up to the next newline; a line that is far too long is cut, and then
/// no JSON.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    use std::io::Read;
    line.clear();
    let read = input.by_ref().take(MAX_LINE).read_until(b'\n', line)?;
    if read as u64 == MAX_LINE && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

/// Whether a whole line is already here.
fn has_more(input: &mut std::io::StdinLock<'_>) -> bool {
    // What is buffered cannot be seen without reading more, which could wait.
    let ready = rustix::event::PollFd::new(input, rustix::event::PollFlags::IN);
    let now = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    rustix::event::poll(&mut [ready], Some(&now)).is_ok_and(|ready| ready > 0)
}

fn answer(args: &Args, judge: &Judge, line: &[u8], number: u64) -> BatchAnswer {
    let wrong = |id, what: String| BatchAnswer {
        id,
        verdict: None,
        reasons: None,
        error: Some(what),
    };
    let line: BatchLine = match serde_json::from_slice(line) {
        Ok(line) => line,
        Err(error) => {
            // Whatever is wrong with the rest, its name may be readable.
            let id = serde_json::from_slice::<Value>(line).ok();
            let id = id.and_then(|value| value.get("id").cloned());
            return wrong(id, format!("line {number}: {error}"));
        }
    };
    let request = request(args, line.command, line.cwd).map(|request| Request {
        agent: line.agent.or(request.agent),
        sandbox: line.sandbox.or(request.sandbox),
        ..request
    });
    let judged = request.and_then(|request| Ok(judge.verdict(&request)?));
    match judged {
        Ok((verdict, reasons)) => {
            let reasons = reasons.into_iter().map(|reason| reason.text).collect();
            BatchAnswer::of(Some(line.id), verdict, reasons)
        }
        Err(failure) => wrong(Some(line.id), format!("line {number}: {}", failure.what)),
    }
}

impl BatchAnswer {
    fn of(id: Option<Value>, verdict: Verdict, reasons: Vec<String>) -> Self {
        Self {
            id,
            verdict: Some(verdict),
            reasons: Some(reasons),
            error: None,
        }
    }
}
