//! Much output: how fast it passes, and how much memory that takes.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::server::{Peak, Server};
use crate::table::{Goal, Row, Samples, Unit};
use crate::{Effort, Result, say};

/// One GiB, as in the goal.
const BYTES: u64 = 1 << 30;

/// Keeps all of it. A run is granted a quarter of the total at the most.
const KEEP_ALL: &str = "[output]\nper_run_mib = 2048\ntotal_mib = 16384\n";

/// How often a keeper's memory is looked at; it lives for about a second.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Memory that does not grow with the output stays far below it, in MiB.
const FLAT: f64 = 64.0;

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let command = say::command(&format!("flood {BYTES}"))?;
    let bounded = Server::start("")?;
    let whole = Server::start(KEEP_ALL)?;
    let (mut peak_bound, mut peak_whole) = (Peak::default(), Peak::default());
    let (mut to_file, mut to_bound, mut to_whole) = Default::default();
    // The first pays for pages and disk blocks that the others find again.
    baseline(&command, &whole, &mut Samples::default())?;
    for _ in 0..effort.floods {
        baseline(&command, &whole, &mut to_file)?;
        peak_bound = peak_bound.max(ours(&command, &bounded, false, &mut to_bound)?);
        peak_whole = peak_whole.max(ours(&command, &whole, true, &mut to_whole)?);
    }
    let speed = |what, samples| {
        Row::new(what, Unit::MegabytesPerSecond, samples).against("cat > file", &to_file)
    };
    let mut rows = vec![
        speed("1 GiB by `cmd | cat > file`", &to_file),
        speed("1 GiB, 64 MiB of it kept", &to_bound).promise(Goal::AtLeast(0.7)),
        speed("1 GiB, all of it kept", &to_whole).promise(Goal::AtLeast(0.7)),
    ];
    rows.extend(memory("64 MiB kept", peak_bound));
    rows.extend(memory("all kept", peak_whole));
    Ok(rows)
}

fn baseline(command: &str, server: &Server, speeds: &mut Samples) -> Result<()> {
    let script = format!("{command} | cat > flood");
    let began = Instant::now();
    let ended = Command::new("/bin/sh")
        .args(["-c", &script])
        .current_dir(server.base())
        .status()?;
    speeds.push(speed(began));
    if !ended.success() {
        return Err(format!("`{script}` did not succeed: {ended}").into());
    }
    Ok(fs::remove_file(server.base().join("flood"))?)
}

fn ours(command: &str, server: &Server, whole: bool, speeds: &mut Samples) -> Result<Peak> {
    let over = AtomicBool::new(false);
    let (record, peak) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| watch(server, &over));
        let record = server.connect().and_then(|mut client| {
            let began = Instant::now();
            let record = client.run(command)?;
            speeds.push(speed(began));
            Ok(record)
        });
        over.store(true, Ordering::Relaxed);
        (record, watch.join().unwrap_or_default())
    });
    let output = &record?["output"];
    if output["bytes"] != BYTES || (output["kept_bytes"] == BYTES) != whole {
        return Err(format!("not the expected output: {output}").into());
    }
    server.forget_output()?;
    Ok(peak)
}

fn watch(server: &Server, over: &AtomicBool) -> Peak {
    let mut peak = Peak::default();
    while !over.load(Ordering::Relaxed) {
        peak = peak.max(server.peak());
        std::thread::sleep(LOOK_EVERY);
    }
    peak
}

fn speed(began: Instant) -> f64 {
    BYTES as f64 / 1e6 / began.elapsed().as_secs_f64()
}

fn memory(which: &str, peak: Peak) -> [Row; 2] {
    let row = |who: &str, bytes: u64| {
        let mut one = Samples::default();
        one.push(bytes as f64 / f64::from(1 << 20));
        let what = format!("most memory of the {who}, {which}");
        Row::new(what, Unit::Mebibytes, &one).promise(Goal::Under(FLAT))
    };
    [row("server", peak.server), row("keeper", peak.keeper)]
}
