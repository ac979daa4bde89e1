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

use rustix::process::Signal;
use serde_json::{Value, json};

use chaos::Chaos;
use check::left;
use check::records::{self, Records};
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

/// How much more memory a server may have in the second half of its calm time
/// than in the first, in KiB, beside half as much: loads differ.
const MORE_KIB: u64 = 16 * 1024;

/// What a server has that has done a bit of everything, in KiB. On a busy machine
/// the first half may see one that has not yet.
const WARM_KIB: u64 = 64 * 1024;

/// How many more descriptors than a fresh server: connections to the database
/// that are kept.
const MORE_DESCRIPTORS: usize = 8;

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
    let grown = std::thread::scope(|scope| {
        scope.spawn(|| stage.play());
        let half = calm + (until - calm) / 2;
        let grown = scope.spawn(move || (peak(world, calm, half), peak(world, half, until)));
        let dice = Dice::new(options.seed, 0);
        let mut chaos = Chaos {
            world,
            ledger,
            dice,
        };
        chaos.reign(calm, true);
        chaos.reign(until, false);
        grown.join()
    });
    check_memory(ledger, grown.map_err(|_| "memory was not looked at")?);
    settle(world, ledger)?;
    check_server(world, ledger)?;
    check_audit(world, ledger)?;
    let records = Records::read(world, ledger)?;
    let checked = records.check();
    records.check_names();
    println!(
        "{checked:>8}  commands held against {} on record",
        records.all.len()
    );
    world.end_server(Signal::TERM);
    left::check_processes(ledger);
    left::check_mounts(&mounts, ledger);
    left::check_cgroups(ledger);
    left::check_state(world, &records.all, ledger);
    Ok(())
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

/// The same load takes the same memory, however long it goes on.
fn check_memory(ledger: &Ledger, (before, after): (u64, u64)) {
    println!("{after:>8}  KiB of memory at the most, {before} in the same time before");
    let warm = before.max(WARM_KIB);
    if after > warm + warm / 2 + MORE_KIB {
        ledger.fault(format!("memory grew from {before} to {after} KiB"));
    }
}

/// What a server has after all that, against a fresh one.
fn check_server(world: &World, ledger: &Ledger) -> Result<()> {
    let pid = world.server_pid().ok_or("no server")?;
    let descriptors = left::descriptors(pid);
    world.end_server(Signal::TERM);
    world.serve()?;
    let pid = world.server_pid().ok_or("no server")?;
    let fresh = left::descriptors(pid);
    println!("{descriptors:>8}  descriptors at the end, {fresh} when fresh");
    if descriptors > fresh + MORE_DESCRIPTORS {
        ledger.fault(format!(
            "{descriptors} descriptors, a fresh server has {fresh}"
        ));
    }
    Ok(())
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
