//! The turns of all that build walls, in a process of one thread.

use std::collections::{HashMap, HashSet};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::ours::Ours;
use super::{Found, others};
use crate::Result;

/// Stands before the number of rounds.
pub(crate) const VERB: &str = "--walls";

/// Rounds before the first that counts.
const WARM_UP: usize = 5;

/// What one turn leaves to the kernel is not charged to the next.
const PAUSE: Duration = Duration::from_millis(3);

pub(super) const SPAWN: &str = "bare `/bin/true`";
pub(super) const SHELL: &str = "bare `/bin/sh -c true`, no walls";
pub(super) const WALLS: &str = "walls around `/bin/true`";
pub(super) const WALLED_SHELL: &str = "walls around `/bin/sh -c true`";
const AHEAD: &str = "  what was prepared ahead of that";
const AFTER: &str = "  what is put away after it";
const WHOLE: &str = "walls around `/bin/true`, nothing ahead";
const UNSHARE: &str = "`unshare` around `/bin/true`";
const BUBBLEWRAP: &str = "bubblewrap around `/bin/true`";

/// In the order of the table.
pub(super) const NAMES: [&str; 9] = [
    SPAWN,
    SHELL,
    WALLS,
    AHEAD,
    AFTER,
    WALLED_SHELL,
    WHOLE,
    UNSHARE,
    BUBBLEWRAP,
];

/// Measures, and says the milliseconds as JSON.
pub(crate) fn serve(words: &[String]) -> Result<()> {
    let [rounds] = words else {
        return Err("how many rounds?".into());
    };
    let found = rounds_of(rounds.parse()?)?;
    serde_json::to_writer(std::io::stdout(), &found)?;
    Ok(())
}

/// Takes one turn and says what took how long.
type Turn<'a> = Box<dyn FnMut() -> Result<Vec<(&'static str, Duration)>> + 'a>;

fn rounds_of(rounds: usize) -> Result<Found> {
    let ours = Ours::new()?;
    let mut turns: Vec<Turn<'_>> = vec![
        Box::new(|| time(SPAWN, &mut Command::new("/bin/true"))),
        Box::new(|| time(SHELL, Command::new("/bin/sh").args(["-c", "true"]))),
        Box::new(|| {
            let took = ours.run(&["/bin/true"])?;
            let parts = [
                (WALLS, took.run),
                (AHEAD, took.ahead),
                (AFTER, took.after),
                (WHOLE, took.ahead + took.run),
            ];
            Ok(parts.into())
        }),
        Box::new(|| {
            let took = ours.run(&["/bin/sh", "-c", "true"])?;
            Ok(vec![(WALLED_SHELL, took.run)])
        }),
    ];
    let ours_and_bare = turns.len();
    let (mut peers, mut failed) = (vec![], HashSet::new());
    for (name, mut command) in [
        (UNSHARE, others::unshare()),
        (BUBBLEWRAP, others::bubblewrap(&ours.files)),
    ] {
        match time(name, &mut command) {
            Ok(_) => {
                turns.push(Box::new(move || time(name, &mut command)));
                peers.push(name);
            }
            Err(error) => eprintln!("walls: {name} is not measured: {error}"),
        }
    }
    let mut found: Found = HashMap::new();
    for round in 0..WARM_UP + rounds {
        for turn in 0..turns.len() {
            // Back and forth, so that no one always follows the same other.
            let last = turns.len() - 1;
            let turn = if round % 2 == 0 { turn } else { last - turn };
            std::thread::sleep(PAUSE);
            if failed.contains(&turn) {
                continue;
            }
            let took = match turns[turn]() {
                Ok(took) => took,
                Err(error) if turn >= ours_and_bare => {
                    eprintln!("walls: {error}");
                    failed.insert(turn);
                    continue;
                }
                Err(error) => return Err(error),
            };
            if round >= WARM_UP {
                for (name, time) in took {
                    let times = found.entry(name.into()).or_default();
                    times.push(time.as_secs_f64() * 1e3);
                }
            }
        }
    }
    // Half of what is held against ours would mislead.
    for (turn, name) in (ours_and_bare..).zip(&peers) {
        if failed.contains(&turn) {
            found.remove(*name);
        }
    }
    Ok(found)
}

fn time(name: &'static str, command: &mut Command) -> Result<Vec<(&'static str, Duration)>> {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null());
    let began = Instant::now();
    let ended = silent.status()?;
    let took = began.elapsed();
    if ended.success() {
        Ok(vec![(name, took)])
    } else {
        Err(format!("{command:?}: {ended}").into())
    }
}
