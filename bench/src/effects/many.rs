//! Many changes at once: applied, and taken back.

use std::fs;
use std::time::Duration;

use super::{Copies, PAUSE, bare, order, plant};
use crate::table::{Row, Samples, Unit};
use crate::{Effort, Result};

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let mut copies = Copies::start()?;
    let mut rows = added(&mut copies, 1_000, effort)?;
    rows.extend(added(&mut copies, 10_000, effort)?);
    rows.extend(altered(&mut copies, effort)?);
    Ok(rows)
}

fn added(copies: &mut Copies, files: usize, effort: &Effort) -> Result<Vec<Row>> {
    let base = copies.server.base();
    let seed = format!("seed{files}");
    plant(&base.join(&seed), files)?;
    let make = format!("cp -r {seed} new");
    let by_hand = format!("cp -a {seed} new");
    let [hand, asked, commit, undo] = rounds(effort, |turn| match turn {
        0 => {
            let took = bare(&base, &by_hand)?;
            fs::remove_dir_all(base.join("new"))?;
            Ok(vec![(0, took)])
        }
        _ => settle(copies, &make),
    })?;
    let row = |what: &str, samples: &Samples| {
        let what = format!("{files} new files: {what}");
        Row::new(what, Unit::Millis, samples).against("cp -a", &hand)
    };
    Ok(vec![
        row("`cp -a`", &hand),
        row("`cp -r` on a copy, until asked about", &asked),
        row("applied", &commit),
        row("taken back", &undo),
    ])
}

fn altered(copies: &mut Copies, effort: &Effort) -> Result<Vec<Row>> {
    let base = copies.server.base();
    plant(&base.join("some"), 1_000)?;
    let [hand, asked, commit, undo] = rounds(effort, |turn| match turn {
        0 => {
            let took = bare(&base, "cp -a some other")?;
            fs::remove_dir_all(base.join("other"))?;
            Ok(vec![(0, took)])
        }
        _ => settle(copies, "for f in some/*/*; do echo x >> $f; done"),
    })?;
    let row = |what: &str, samples: &Samples| {
        let what = format!("1000 changed files: {what}");
        Row::new(what, Unit::Millis, samples).against("cp -a", &hand)
    };
    Ok(vec![
        row("`cp -a` of them", &hand),
        row("changed on a copy, until asked about", &asked),
        row("applied", &commit),
        row("taken back", &undo),
    ])
}

fn settle(copies: &mut Copies, command: &str) -> Result<Vec<(usize, Duration)>> {
    let held = copies.preview(command, None)?;
    let commit = copies.commit(&held)?;
    std::thread::sleep(PAUSE);
    let undo = copies.undo(&held)?;
    Ok(vec![(1, held.took), (2, commit), (3, undo)])
}

fn rounds(
    effort: &Effort,
    mut turns: impl FnMut(usize) -> Result<Vec<(usize, Duration)>>,
) -> Result<[Samples; 4]> {
    let mut samples: [Samples; 4] = Default::default();
    for round in 0..1 + effort.crowds {
        for turn in order::<2>(round) {
            std::thread::sleep(PAUSE);
            for (row, took) in turns(turn)? {
                if round >= 1 {
                    samples[row].push_millis(took);
                }
            }
        }
    }
    Ok(samples)
}
