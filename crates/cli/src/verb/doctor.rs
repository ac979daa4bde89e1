//! `weighlock doctor`: what this machine can do, and what is wrong.

use std::process::ExitCode;

use weighlock_engine::{Check, Checks, Health, Level, PolicyView, PrimitiveView};

use crate::client::{Client, Failure, block_on};
use crate::paths::Paths;
use crate::text;

/// Check this machine and the server by trying each feature
#[derive(clap::Args)]
#[command(before_help = "Examples:
  weighlock doctor
  weighlock doctor -v                    with each thing that walls are made of
  weighlock doctor --json")]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Also show each kernel feature that isolation uses
    #[arg(short, long)]
    verbose: bool,
}

pub(crate) fn doctor(args: &Args, paths: &Paths) -> Result<ExitCode, Failure> {
    let mut checks = vec![program()];
    let mut primitives = vec![];
    match block_on(ask(paths)) {
        Ok((health, rules, found)) => {
            checks.push(server(&health, paths));
            checks.push(policy(&rules));
            checks.extend(found.checks);
            primitives = found.primitives;
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
        text::print_json(&Checks { checks, primitives });
    } else {
        for check in &checks {
            print(check);
        }
        if args.verbose {
            println!("Walls are made of:");
            primitives.iter().for_each(explain);
        }
        println!(
            "{}, {}",
            text::counted(problems as u64, "problem"),
            text::counted(hints as u64, "hint")
        );
    }
    Ok(ExitCode::from(u8::from(problems > 0)))
}

async fn ask(paths: &Paths) -> Result<(Health, PolicyView, Checks), Failure> {
    let mut client = Client::open(paths).await?;
    let health = client.get("/health").await?;
    let rules = client.get("/policies").await?;
    let found = client.get("/health/checks").await?;
    Ok((health, rules, found))
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

/// The rules in force, and whether they are those that are written.
fn policy(rules: &PolicyView) -> Check {
    let file = match (&rules.rules_file, rules.broken.as_slice()) {
        (None, []) => "no rule file".to_owned(),
        (Some(file), []) => format!("{file} ok"),
        (_, broken) => broken.join("; "),
    };
    let agents = match rules.agents.as_slice() {
        [] => "no agents".to_owned(),
        agents => format!("agents {}", agents.join(", ")),
    };
    Check {
        name: "policy".into(),
        level: match rules.broken.is_empty() {
            true => Level::Ok,
            false => Level::Problem,
        },
        found: format!("{}, {file}, {agents}", rules.presets.join(" + ")),
        fix: (!rules.broken.is_empty())
            .then(|| "mend the file; `weighlock policy test FILE` says more".into()),
    }
}

/// Prints one line, and what to do about it.
pub(crate) fn print(check: &Check) {
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

fn explain(primitive: &PrimitiveView) {
    let mark = if primitive.ok { '✓' } else { '✗' };
    let found = [&primitive.found, &primitive.error];
    let found: Vec<&str> = { found.into_iter() }
        .flatten()
        .map(String::as_str)
        .collect();
    let line = format!(
        "{mark} {:<17} {}",
        primitive.name,
        text::safe(&found.join(": "))
    );
    println!("{}", line.trim_end());
    if primitive.ok {
        return;
    }
    println!("  {:<17} means: {}", "", text::safe(&primitive.means));
    if let Some(fix) = &primitive.fix {
        println!("  {:<17} fix: {}", "", text::safe(fix));
    }
}
