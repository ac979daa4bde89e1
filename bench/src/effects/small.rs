//! A few changes in a large tree: seen, and seen and applied.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Copies, PAUSE, bare, order, plant};
use crate::table::{Goal, Row, Samples, Unit};
use crate::{Effort, Result};

const SMALL: usize = 10_000;
const LARGE: usize = 100_000;

/// Changes ten files of the tree.
const TEN: &str = "for n in 0 1 2 3 4 5 6 7 8 9; do echo x >> tree/d$n/f${n}00; done";

const WARM_UP: usize = 3;

/// Copying by hand takes a minute; how long is no close call.
const BY_HAND: usize = 2;

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let mut copies = Copies::start()?;
    plant(&copies.server.base().join("tree"), SMALL)?;
    let mut rows = apply(&mut copies, effort)?;
    let mut large = Copies::start()?;
    plant(&large.server.base().join("tree"), LARGE)?;
    rows.extend(see(&mut copies, &mut large, effort)?);
    Ok(rows)
}

/// Four changes: two files are altered, one is made, one removed.
fn apply(copies: &mut Copies, effort: &Effort) -> Result<Vec<Row>> {
    let tree = copies.server.base().join("tree");
    let mut samples: [Samples; 5] = Default::default();
    for round in 0..WARM_UP + effort.runs / 3 {
        let four = |number: usize| {
            format!(
                "echo {number} >> tree/d1/f100; echo {number} >> tree/d2/f200; \
                 echo {number} > tree/d3/new{number}; rm tree/d4/f{}",
                400 + number
            )
        };
        std::fs::write(tree.join(format!("d4/f{}", 400 + round)), "to be removed\n")?;
        for turn in order::<3>(round) {
            std::thread::sleep(PAUSE);
            let took: Vec<(usize, Duration)> = match turn {
                0 => vec![(0, spawn()?)],
                1 => {
                    let began = Instant::now();
                    copies.client.run("true")?;
                    vec![(1, began.elapsed())]
                }
                _ => {
                    let held = copies.preview(&four(round), None)?;
                    let commit = copies.commit(&held)?;
                    vec![(2, held.took), (3, commit), (4, held.took + commit)]
                }
            };
            if round >= WARM_UP {
                took.iter()
                    .for_each(|(row, t)| samples[*row].push_millis(*t));
            }
        }
    }
    let [spawn, run, preview, commit, both] = &samples;
    let row = |what, samples| Row::new(what, Unit::Millis, samples).against("bare true", spawn);
    Ok(vec![
        row("bare `true`", spawn),
        row("`true` over the socket", run),
        row("4 changes in 10,000 files, until asked about", preview),
        row("  and until they are applied", commit),
        row("  both", both).promise(Goal::AtMost(25.0)),
    ])
}

fn see(small: &mut Copies, large: &mut Copies, effort: &Effort) -> Result<Vec<Row>> {
    let mut samples: [Samples; 4] = Default::default();
    for round in 0..1 + effort.crowds {
        let turns = order::<4>(round).into_iter();
        for turn in turns.filter(|turn| *turn < 2 || (1..=BY_HAND).contains(&round)) {
            std::thread::sleep(PAUSE);
            let copies = if turn % 2 == 0 {
                &mut *small
            } else {
                &mut *large
            };
            let took = match turn {
                0 | 1 => look(copies)?,
                _ => by_hand(copies)?,
            };
            if round >= 1 {
                samples[turn].push_millis(took);
            }
        }
    }
    let [small, large, hand_small, hand_large] = &samples;
    let row = |what, samples| Row::new(what, Unit::Millis, samples);
    Ok(vec![
        row("10 changes in 10,000 files: `cp -a`, `diff -r`", hand_small),
        row(
            "10 changes in 100,000 files: `cp -a`, `diff -r`",
            hand_large,
        ),
        row("10 changes in 10,000 files, seen", small).against("by hand", hand_small),
        row("10 changes in 100,000 files, seen", large)
            .against("10,000 files", small)
            .promise(Goal::Alike),
        row("the same, against by hand", large).against("by hand", hand_large),
    ])
}

/// Runs it on a copy and reads what it changed.
fn look(copies: &mut Copies) -> Result<Duration> {
    let began = Instant::now();
    let held = copies.preview(TEN, None)?;
    let path = format!("/commands/{}/changes", held.id);
    let seen = copies.client.call("GET", &path, &Value::Null)?;
    let took = began.elapsed();
    copies.discard(&held)?;
    match seen["changes"].as_array().map(Vec::len) {
        Some(10) => Ok(took),
        _ => Err(format!("not ten changes: {seen}").into()),
    }
}

fn by_hand(copies: &Copies) -> Result<Duration> {
    let base = copies.server.base();
    let script = format!("mkdir copy && cp -a tree copy && cd copy && {TEN}");
    let copied = bare(&base, &script)?;
    // It says by its exit code that there are differences.
    let compared = bare(&base, "! diff -r tree copy/tree")?;
    std::fs::remove_dir_all(base.join("copy"))?;
    Ok(copied + compared)
}

fn spawn() -> Result<Duration> {
    let began = Instant::now();
    let ended = Command::new("true").stdin(Stdio::null()).status()?;
    match ended.success() {
        true => Ok(began.elapsed()),
        false => Err("`true` did not succeed".into()),
    }
}
