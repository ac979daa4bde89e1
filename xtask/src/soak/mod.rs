//! A real server under mixed load, while it is killed, its keepers are killed,
//! its disk fills and its clock jumps. Afterwards the record is held against
//! what really happened.
//!
//! Every command appends its own mark to a file, so that it can be counted
//! what ran. Who does what is chosen by the seed; when it happens is up to the
//! machine, so that the same seed makes the same choices at other moments.

mod apart;
mod chaos;
mod check;
mod client;
mod clock;
mod dice;
mod ledger;
mod load;
mod world;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::process::Signal;
use serde_json::{Value, json};

use chaos::Chaos;
use check::records::{self, Records};
use check::{left, rest};
use dice::Dice;
use ledger::Ledger;
use load::Stage;
use world::World;

use crate::Result;

/// Long enough for all that can happen to happen, short enough for CI.
const SECONDS: u64 = 45;

/// The disk has room for the record of a minute, and more where it is longer.
const DISK_MIB: u64 = 96;

/// What is under way has ended by then: questions expire after four seconds,
/// and no run has more than thirty.
const SETTLED_WITHIN: Duration = Duration::from_secs(90);

/// A soak that is not over so long after its time hangs.
const OVER_WITHIN: Duration = Duration::from_secs(240);

/// The most memory that a server has under this load, in KiB: twice what was seen.
/// Whoever keeps in memory what a slow viewer has not read needs more.
const MOST_KIB: u64 = 160 * 1024;

/// From so many seconds on there is time to look closely at what is forgotten.
const LONG_SECONDS: u64 = 300;

/// How far the clock jumps to see whether it does. Back, because ids never run
/// backwards: ahead would take the rest with it.
const JUMP_SECONDS: i64 = -3600;

struct Options {
    seconds: u64,
    seed: u64,
    program: Option<PathBuf>,
}

pub(crate) fn main(words: Vec<String>) -> Result<ExitCode> {
    let mut options = Options::read(&words)?;
    if apart::is_inside() {
        return soak(&options);
    }
    let program = match options.program.take() {
        Some(program) => program.canonicalize()?,
        None => build()?,
    };
    let words = [
        ("--seconds", options.seconds.to_string()),
        ("--seed", options.seed.to_string()),
        ("--program", program.display().to_string()),
    ];
    let words: Vec<String> = { words.into_iter() }
        .flat_map(|(name, value)| [name.to_owned(), value])
        .collect();
    let why = apart::enter(&words)?;
    println!("SKIPPED: the soak needs mounts and processes of its own: {why}");
    Ok(ExitCode::SUCCESS)
}

impl Options {
    fn read(words: &[String]) -> Result<Self> {
        let mut options = Self {
            seconds: SECONDS,
            seed: std::process::id().into(),
            program: None,
        };
        for pair in words.chunks(2) {
            match pair {
                [name, value] if name == "--seconds" => options.seconds = value.parse()?,
                [name, value] if name == "--seed" => options.seed = value.parse()?,
                [name, value] if name == "--program" => options.program = Some(value.into()),
                _ => return Err(crate::USAGE.into()),
            }
        }
        Ok(options)
    }
}

/// Builds the binary, and returns where it is.
fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--package", "weighlock"])
        .status()?;
    if !built.success() {
        return Err("the binary cannot be built".into());
    }
    Ok(std::env::current_exe()?.with_file_name("weighlock"))
}

fn soak(options: &Options) -> Result<ExitCode> {
    let dir = tempfile::Builder::new().prefix("wlsoak").tempdir()?;
    let program = options.program.clone().ok_or("no program")?;
    let disk_mib = DISK_MIB + options.seconds / 2;
    let world = World::make(&dir.path().canonicalize()?, program, disk_mib)?;
    println!("seed {}, {} seconds", options.seed, options.seconds);
    if let Err(why) = &world.clock {
        println!("SKIPPED: the wall clock does not jump: {why}");
    }
    let ledger = Ledger::default();
    watch(options);
    if let Err(error) = all(&world, &ledger, options) {
        ledger.fault(error.to_string());
    }
    world.end_server(Signal::KILL);
    let faults = ledger.faults();
    for fault in &faults {
        println!("FAILED: {fault}");
    }
    for (what, count) in ledger.counts() {
        println!("{count:>8}  {what}");
    }
    let code = match faults.is_empty() {
        true => ExitCode::SUCCESS,
        false => {
            let kept = keep(dir.path())?;
            println!(
                "seed {} failed {} times; all of it is in {}",
                options.seed,
                faults.len(),
                kept.display()
            );
            ExitCode::FAILURE
        }
    };
    let _ = Command::new("umount").arg("-l").arg(world.state()).status();
    Ok(code)
}

/// Says so when it hangs, instead of hanging.
fn watch(options: &Options) {
    let (seed, limit) = (
        options.seed,
        Duration::from_secs(options.seconds) + OVER_WITHIN,
    );
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        println!("FAILED: seed {seed} is not over after {limit:?}");
        std::process::exit(1);
    });
}

fn all(world: &World, ledger: &Ledger, options: &Options) -> Result<()> {
    let mounts = left::mounts();
    world.serve()?;
    check_clock(world)?;
    let crew = world.crew()?;
    let began = Instant::now();
    let until = began + Duration::from_secs(options.seconds);
    // The last third is without dying servers, so that one has a past to show.
    let calm = began + Duration::from_secs(options.seconds) * 2 / 3;
    let stage = Stage {
        world,
        crew: &crew,
        ledger,
        until,
        seed: options.seed,
    };
    let most = std::thread::scope(|scope| {
        scope.spawn(|| stage.play());
        let most = scope.spawn(move || peak(world, calm, until));
        let dice = Dice::new(options.seed, 0);
        let mut chaos = Chaos {
            world,
            ledger,
            dice,
        };
        chaos.reign(calm, true);
        chaos.reign(until, false);
        most.join()
    });
    check_memory(ledger, most.map_err(|_| "memory was not looked at")?);
    settle(world, ledger)?;
    rest::check_past(world, ledger)?;
    let long = options.seconds >= LONG_SECONDS;
    rest::check_growth(world, ledger, if long { 1000 } else { 200 })?;
    check_audit(world, ledger)?;
    let records = Records::read(world, ledger)?;
    let checked = records.check();
    records.check_names();
    records.check_states();
    records.check_recordings();
    println!(
        "{checked:>8}  commands held against {} on record",
        records.all.len()
    );
    world.end_server(Signal::TERM);
    left::check_processes(ledger);
    left::check_mounts(&mounts, ledger);
    left::check_cgroups(&records.all, ledger);
    left::check_state(world, &records.all, ledger);
    left::check_files(world, &records.all, ledger);
    Ok(())
}

/// The server goes by the clock that jumps: a library that it does not load
/// would let every jump go by, and be counted as survived.
fn check_clock(world: &World) -> Result<()> {
    let Ok(clock) = &world.clock else {
        return Ok(());
    };
    clock.jump_to(JUMP_SECONDS)?;
    let run = world
        .owner()
        .post("/commands", &json!({ "command": "true" }));
    clock.jump_to(0)?;
    let run = run.only(200).ok_or("the first command does not run")?;
    let said = run["created_at"].as_str().unwrap_or_default();
    let off = Timestamp::now().as_second() - said.parse::<Timestamp>()?.as_second();
    // Back to where it was, and a while for an answer.
    match (off + JUMP_SECONDS).abs() < 60 {
        true => Ok(()),
        false => Err(format!("the wall clock does not jump: {off} s off after a jump").into()),
    }
}

/// Waits until nothing is under way, and ends what would go on.
fn settle(world: &World, ledger: &Ledger) -> Result<()> {
    if let Ok(clock) = &world.clock {
        clock.jump_to(0)?;
    }
    if world.server_pid().is_none() {
        world.serve()?;
    }
    let owner = world.owner();
    let list = owner.get("/terminals").only(200).ok_or("no terminals")?;
    for terminal in list["terminals"].as_array().into_iter().flatten() {
        let id = terminal["terminal_id"].as_str().unwrap_or_default();
        ledger.look(&owner.ask("DELETE", &format!("/terminals/{id}"), &Value::Null));
    }
    let until = Instant::now() + SETTLED_WITHIN;
    loop {
        let open: Vec<Value> = { records::rows(&owner)?.into_iter() }
            .filter(is_open)
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            for run in open {
                ledger.fault(format!("never ended: {run}"));
            }
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn is_open(run: &Value) -> bool {
    run["open"] == true
        || ["running", "waiting", "held"]
            .iter()
            .any(|state| run["state"] == *state)
}

/// The most memory that the server has had at any moment of a while, in KiB.
fn peak(world: &World, from: Instant, to: Instant) -> u64 {
    let mut most = 0;
    std::thread::sleep(from.saturating_duration_since(Instant::now()));
    while Instant::now() < to {
        most = most.max(world.server_pid().map_or(0, left::memory));
        std::thread::sleep(Duration::from_millis(250));
    }
    most
}

/// What is under way is bounded, and so is the memory that it takes.
fn check_memory(ledger: &Ledger, most: u64) {
    println!("{most:>8}  KiB of memory at the most under load");
    if most > MOST_KIB {
        ledger.fault(format!("the server had {most} KiB of memory under load"));
    }
}

fn check_audit(world: &World, ledger: &Ledger) -> Result<()> {
    let said = world.owner().post("/audit/verify", &json!({})).only(200);
    let said = said.ok_or("the audit cannot be verified")?;
    println!("{:>8}  entries of the audit, which verify", said["entries"]);
    if !said["fault"].is_null() {
        ledger.fault(format!("the audit: {said}"));
    }
    Ok(())
}

/// Copies everything to where it stays.
fn keep(dir: &Path) -> Result<PathBuf> {
    let kept = tempfile::Builder::new()
        .prefix("wlsoak-failed")
        .tempdir()?
        .keep();
    let copied = Command::new("cp").arg("-a").arg(dir).arg(&kept).status()?;
    match copied.success() {
        true => Ok(kept),
        false => Err("what failed cannot be kept".into()),
    }
}
