//! One large file, written anew.

use std::time::Duration;

use super::{Copies, PAUSE, order};
use crate::table::{Goal, Row, Samples, Unit};
use crate::{Effort, Result, say};

const SMALL: u64 = 4 << 10;
const LARGE: u64 = 1 << 30;

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let mut copies = Copies::start()?;
    let (mut asked, mut commit): ([Samples; 2], [Samples; 2]) = Default::default();
    for size in [SMALL, LARGE] {
        turn(&mut copies, size)?;
    }
    for round in 0..effort.floods {
        for size in order::<2>(round) {
            let (question, applied) = turn(&mut copies, [SMALL, LARGE][size])?;
            asked[size].push_millis(question);
            commit[size].push_millis(applied);
        }
    }
    let row = |what, samples| Row::new(what, Unit::Millis, samples);
    let [small, large] = &asked;
    let [commit_small, commit_large] = &commit;
    Ok(vec![
        row("4 KiB written anew: from its end to the question", small),
        row("1 GiB written anew: from its end to the question", large)
            .against("4 KiB", small)
            .goal(Goal::Alike),
        row("4 KiB applied", commit_small),
        row("1 GiB applied", commit_large).against("4 KiB", commit_small),
    ])
}

/// Writes one of the two files anew, and applies it. Returns how long it took
/// from the last word of the command until the question was there.
fn turn(copies: &mut Copies, size: u64) -> Result<(Duration, Duration)> {
    std::thread::sleep(PAUSE);
    let write = say::command(&format!("flood {size}"))?;
    let done = say::command("now")?;
    let held = copies.preview(&format!("{write} > file{size}; {done}"), None)?;
    let asked = say::now();
    let said = held.run["stdout"].as_str().unwrap_or_default();
    let ended: u64 = said.trim().parse()?;
    let commit = copies.commit(&held)?;
    Ok((Duration::from_nanos(asked.saturating_sub(ended)), commit))
}
