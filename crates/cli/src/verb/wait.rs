//! `weighlock wait`: until runs do something.

use std::process::ExitCode;
use std::time::Duration;

use weighlock_engine::{Met, Run, WaitKind, Wanted};
use weighlock_server::{WaitRequest, WaitView};

use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;
use crate::term::say;
use crate::text::{self, print_json, safe};
use crate::verb::show::resolve;

/// What the server waits for at once, which is longer than any silence that it
/// takes; longer is asked for again.
const STEP: Duration = Duration::from_secs(600);

/// Time was up.
const TIMED_OUT: u8 = 124;

/// Wait until runs end, print something, listen on a port, or read input
#[derive(clap::Args)]
#[command(
    before_help = "Examples:
  weighlock wait r_7f3k                          until it has ended
  weighlock wait r_7f3k r_8a1c --all             until both have
  weighlock wait dev-server --until port:3000 --timeout 10s
  weighlock wait dev-server --until 'output:ready in \\d+'
  weighlock wait shell --until input             until it wants to be typed at
  weighlock wait build --until idle:5s",
    after_help = "Exit codes: 0 the condition is met, 1 it can no longer happen, 124 time is up."
)]
pub(crate) struct Args {
    /// Runs, tasks or terminals
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// What to wait for: exit, output:REGEX, port or port:N, idle or idle:TIME,
    /// stable or stable:TIME, input, keyboard
    #[arg(long, value_name = "WHAT", default_value = "exit", value_parser = parse)]
    until: Vec<WaitCondition>,
    /// Wait for all conditions [default: for the first]
    #[arg(long)]
    all: bool,
    /// Give up after this time
    #[arg(long, value_name = "TIME", value_parser = text::parse_patience)]
    timeout: Option<Duration>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What is waited for, of every run that is named.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WaitCondition(Wanted);

fn parse(written: &str) -> Result<WaitCondition, String> {
    let (what, rest) = match written.split_once(':') {
        Some((what, rest)) => (what, Some(rest)),
        None => (written, None),
    };
    let mut wanted = Wanted::default();
    wanted.until = match (what, rest) {
        ("exit", None) => WaitKind::Exit,
        ("input", None) => WaitKind::Input,
        ("keyboard", None) => WaitKind::Keyboard,
        ("output", Some(pattern)) => {
            wanted.pattern = Some(pattern.to_owned());
            WaitKind::Output
        }
        ("port", port) => {
            let port = port.map(str::parse).transpose();
            wanted.port = port.map_err(|_| "that is no port".to_owned())?;
            WaitKind::Port
        }
        ("idle" | "stable", time) => {
            let time = time.map(text::parse_time).transpose()?;
            wanted.ms = time.map(|ms| ms.max(0).cast_unsigned());
            match what {
                "idle" => WaitKind::Idle,
                _ => WaitKind::Stable,
            }
        }
        _ => {
            return Err(
                "wait for exit, output:REGEX, port:N, idle:TIME, stable:TIME, input or \
                        keyboard"
                    .into(),
            );
        }
    };
    Ok(WaitCondition(wanted))
}

pub(crate) fn wait(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    block_on(async {
        let mut client = Client::open(paths).await?;
        let mut wanted = vec![];
        for id in &args.ids {
            let id = match id.as_str() {
                "@last" => resolve(&mut client, id).await?,
                id => id.to_owned(),
            };
            wanted.extend(args.until.iter().map(|until| Wanted {
                id: id.clone(),
                ..until.0.clone()
            }));
        }
        let waited = ask(&mut client, args, wanted).await?;
        if args.json {
            print_json(&waited);
        } else {
            waited
                .happened
                .iter()
                .for_each(|met| tell(met, &waited.runs));
        }
        Ok(match (waited.met, waited.timed_out) {
            (true, _) => ExitCode::SUCCESS,
            (false, true) => {
                say!("Time was up; what runs goes on.");
                ExitCode::from(TIMED_OUT)
            }
            (false, false) => ExitCode::FAILURE,
        })
    })
}

/// Asks again as long as there is time: what happened before counts.
async fn ask(client: &mut Client, args: &Args, wanted: Vec<Wanted>) -> Result<WaitView, Failure> {
    let until = args.timeout.map(|time| std::time::Instant::now() + time);
    loop {
        let left = until.map_or(STEP, |until| {
            until.saturating_duration_since(std::time::Instant::now())
        });
        let request = WaitRequest {
            wanted: wanted.clone(),
            all: args.all,
            timeout_ms: Some(left.min(STEP).as_millis() as u64),
        };
        let waited: WaitView = client.post("/wait", &request).await?;
        if !waited.timed_out || left <= STEP && until.is_some() {
            return Ok(waited);
        }
    }
}

fn tell(met: &Met, runs: &[Run]) {
    let run = runs.iter().find(|run| run.command_id == met.command_id);
    let name = run.map_or(met.command_id.as_str(), |run| match &run.detail.terminal {
        Some(terminal) => &terminal.name,
        None => &run.short_id,
    });
    let name = safe(name);
    if !met.met {
        println!("✗ {name} has ended without that");
        return;
    }
    let what = match met.until {
        WaitKind::Exit => run.map_or("ended".into(), ended),
        WaitKind::Output => format!("said: {}", safe(met.line.as_deref().unwrap_or_default())),
        WaitKind::Port => format!("listens on {}", met.port.unwrap_or_default()),
        WaitKind::Idle => "is quiet".into(),
        WaitKind::Stable => "shows the same".into(),
        WaitKind::Input => format!(
            "waits for input: {}",
            safe(met.prompt.as_deref().unwrap_or_default())
        ),
        WaitKind::Keyboard => match &met.text {
            Some(text) => safe(text),
            None => "can be typed at".into(),
        },
    };
    println!("✓ {name} {what}");
}

fn ended(run: &Run) -> String {
    match (run.exit_code, run.signal.as_ref()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => run.state.word().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_read() {
        let read = |written| parse(written).map(|until| until.0);
        let port = read("port:3000").unwrap();
        assert_eq!((port.until, port.port), (WaitKind::Port, Some(3000)));
        let output = read("output:a:b").unwrap();
        assert_eq!(output.pattern.as_deref(), Some("a:b"));
        assert_eq!(read("idle:2s").unwrap().ms, Some(2000));
        assert_eq!(read("stable").unwrap().ms, None);
        for wrong in ["", "nothing", "port:x", "output", "exit:1", "idle:soon"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
