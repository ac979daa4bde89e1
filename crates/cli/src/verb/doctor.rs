//! `weighlock doctor`: what this machine can do, and what is wrong.

use std::process::ExitCode;

use weighlock_engine::{Check, Health, Level};
use weighlock_server::Checks;

use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;
use crate::text;

/// Check everything, by trying it
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock doctor
  weighlock doctor --json")]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn doctor(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let mut checks = vec![program()];
    match block_on(ask(paths)) {
        Ok((health, found)) => {
            checks.push(server(&health, paths));
            checks.extend(found);
        }
        Err(failure) => checks.push(Check {
            name: "server".into(),
            level: Level::Problem,
            found: failure.what,
            fix: Some(failure.hint),
        }),
    }
    let count = |level| checks.iter().filter(|check| check.level == level).count();
    let (problems, hints) = (count(Level::Problem), count(Level::Hint));
    if args.json {
        text::print_json(&Checks { checks });
    } else {
        for check in &checks {
            print(check);
        }
        println!(
            "{}, {}",
            counted(problems, "problem"),
            counted(hints, "hint")
        );
    }
    Ok(ExitCode::from(u8::from(problems > 0)))
}

async fn ask(paths: &Paths) -> Result<(Health, Vec<Check>), Failure> {
    let mut client = Client::open(paths).await?;
    let health = client.get("/health").await?;
    let found: Checks = client.get("/health/checks").await?;
    Ok((health, found.checks))
}

fn program() -> Check {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Check {
        name: "program".into(),
        level: Level::Ok,
        found: format!(
            "{}, Linux {} {}",
            env!("CARGO_PKG_VERSION"),
            kernel.trim(),
            std::env::consts::ARCH
        ),
        fix: None,
    }
}

fn server(health: &Health, paths: &Paths) -> Check {
    let same = health.version == env!("CARGO_PKG_VERSION");
    Check {
        name: "server".into(),
        level: if same { Level::Ok } else { Level::Hint },
        found: format!(
            "{}, version {}, up {}, commands run below {}",
            paths.socket.display(),
            health.version,
            text::duration(health.uptime_seconds * 1000.0),
            health.base
        ),
        fix: (!same).then(|| "restart it to use this version; runs go on meanwhile".into()),
    }
}

fn print(check: &Check) {
    let mark = match check.level {
        Level::Ok => '✓',
        Level::Hint => '!',
        Level::Problem => '✗',
    };
    println!("{mark} {:<12} {}", check.name, text::safe(&check.found));
    if let Some(fix) = &check.fix {
        println!("  {:<12} fix: {}", "", text::safe(fix));
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
