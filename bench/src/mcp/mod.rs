//! The door for agents, beside servers that run commands without any walls.

mod calls;
mod cold;
mod idle;
mod many;
mod message;
mod peers;
mod stdio;
mod streamable;

pub(crate) use calls::measure as calls;
pub(crate) use cold::measure as cold;
pub(crate) use idle::measure as idle;
pub(crate) use many::measure as many;

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Result;
use crate::server::Server;
use crate::table::{Samples, not_measured};

/// What is run everywhere.
const ECHO: &str = "echo hi";

/// What it says.
const SAID: &str = "hi";

/// `weighlock mcp`, as a client of this server starts it.
fn ours(server: &Server) -> Command {
    let mut command = server.command_line();
    command.arg("mcp");
    command
}

/// What is called of ours.
fn our_tool() -> Value {
    json!({ "name": "run", "arguments": { "command": ECHO } })
}

/// One of those who take turns: its name, and what it does once, which says how
/// long it took.
struct Turn<'a> {
    name: &'static str,
    /// It is not ours, and is left out once it fails.
    peer: bool,
    deed: Box<dyn FnMut() -> Result<Duration> + 'a>,
}

impl<'a> Turn<'a> {
    fn new(name: &'static str, deed: impl FnMut() -> Result<Duration> + 'a) -> Self {
        let (deed, peer) = (Box::new(deed), false);
        Self { name, peer, deed }
    }

    /// Says that it is somebody else's.
    fn of_peer(mut self) -> Self {
        self.peer = true;
        self
    }

    /// One of which all counts.
    fn whole(name: &'static str, mut deed: impl FnMut() -> Result<()> + 'a) -> Self {
        Self::new(name, move || {
            let began = Instant::now();
            deed()?;
            Ok(began.elapsed())
        })
    }
}

/// Lets all have their turns, some of which do not count yet.
fn by_turns(
    turns: &mut [Turn<'_>],
    warm_up: usize,
    rounds: usize,
    pause: Duration,
) -> Result<Vec<(&'static str, Samples)>> {
    let named = |turn: &Turn<'_>| (turn.name, Samples::default());
    let mut samples: Vec<(&str, Samples)> = turns.iter().map(named).collect();
    let mut failed = vec![false; turns.len()];
    let last = turns.len() - 1;
    for round in 0..warm_up + rounds {
        for turn in 0..=last {
            // Back and forth, so that no one always follows the same other.
            let turn = if round % 2 == 0 { turn } else { last - turn };
            if failed[turn] {
                continue;
            }
            std::thread::sleep(pause);
            match (turns[turn].deed)() {
                Ok(took) if round >= warm_up => samples[turn].1.push_millis(took),
                Ok(_) => {}
                Err(error) if turns[turn].peer => {
                    not_measured(turns[turn].name, error);
                    failed[turn] = true;
                }
                Err(error) => return Err(error),
            }
        }
    }
    let measured = samples.into_iter().zip(failed);
    let measured = measured.filter_map(|(samples, failed)| (!failed).then_some(samples));
    Ok(measured.collect())
}

/// Finds the samples of a name.
fn of<'a>(samples: &'a [(&str, Samples)], name: &str) -> Result<&'a Samples> {
    let found = samples.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, samples)| samples)
        .ok_or_else(|| format!("`{name}` had no turn").into())
}
