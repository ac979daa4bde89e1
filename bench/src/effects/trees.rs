//! Many small files: unpacked, and read through.

use std::fs;
use std::time::Instant;

use serde_json::json;

use super::{Copies, DIRECT, PAUSE, bare, order, plant, walled};
use crate::server::Server;
use crate::table::{Goal, Row, Samples, Unit};
use crate::{Effort, Result};

const UNPACKED: usize = 5_000;
const READ: usize = 10_000;

const WARM_UP: usize = 1;

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let mut rows = unpack(effort)?;
    rows.extend(search(effort)?);
    Ok(rows)
}

fn unpack(effort: &Effort) -> Result<Vec<Row>> {
    let direct = Server::start(DIRECT)?;
    let mut walls = direct.connect()?;
    let mut copies = Copies::start()?;
    let (beside, below) = (direct.base(), copies.server.base());
    plant(&beside.join("out"), UNPACKED)?;
    bare(&beside, "tar cf files.tar out && rm -r out")?;
    fs::copy(beside.join("files.tar"), below.join("files.tar"))?;
    let mut samples: [Samples; 4] = Default::default();
    for round in 0..WARM_UP + effort.crowds {
        for turn in order::<3>(round) {
            std::thread::sleep(PAUSE);
            let took = match turn {
                0 => vec![(0, bare(&beside, "tar xf files.tar")?)],
                1 => vec![(1, walled(&mut walls, "tar xf files.tar")?)],
                _ => {
                    let held = copies.preview("tar xf files.tar", None)?;
                    copies.discard(&held)?;
                    vec![(2, held.lasted()?), (3, held.took)]
                }
            };
            if turn < 2 {
                fs::remove_dir_all(beside.join("out"))?;
            }
            if round >= WARM_UP {
                took.iter()
                    .for_each(|(row, t)| samples[*row].push_millis(*t));
            }
        }
    }
    let [bare, walls, copy, asked] = &samples;
    let row = |what, samples| Row::new(what, Unit::Millis, samples);
    Ok(vec![
        row("`tar xf` of 5,000 files, bare", bare),
        row("the same behind walls, no copy", walls).against("bare", bare),
        row("the same on a copy", copy).against("walls", walls),
        row("  until its changes are asked about", asked).against("walls", walls),
    ])
}

fn search(effort: &Effort) -> Result<Vec<Row>> {
    let mut copies = Copies::start()?;
    let base = copies.server.base();
    plant(&base.join("tree"), READ)?;
    let grep = "grep -r 'file 77 of' tree";
    copies.preview(
        "for n in 0 1 2 3 4 5 6 7 8 9; do echo x >> tree/d$n/new; done",
        Some("draft"),
    )?;
    let mut samples: [Samples; 3] = Default::default();
    for round in 0..WARM_UP + effort.bytes {
        for turn in order::<3>(round) {
            std::thread::sleep(PAUSE);
            let took = match turn {
                0 => bare(&base, grep)?,
                session => {
                    let session = ["plain", "draft"][session - 1];
                    let body = json!({ "command": grep, "session_id": session });
                    let began = Instant::now();
                    let run = copies.client.call("POST", "/commands", &body)?;
                    let took = began.elapsed();
                    if run["state"] != "succeeded" {
                        return Err(format!("`{grep}` did not succeed: {run}").into());
                    }
                    took
                }
            };
            if round >= WARM_UP {
                samples[turn].push_millis(took);
            }
        }
    }
    let [bare, plain, draft] = &samples;
    let row = |what, samples| Row::new(what, Unit::Millis, samples);
    Ok(vec![
        row("`grep -r` in 10,000 files, bare", bare),
        row("the same behind walls", plain)
            .against("bare", bare)
            .goal(Goal::AtMost(1.1)),
        row("the same over undecided changes", draft).against("walls", plain),
    ])
}
