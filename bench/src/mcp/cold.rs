//! From the start of a server until its first call is answered.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::stdio::Client;
use super::{Turn, by_turns, of, our_tool, ours, peers};
use crate::one::bare;
use crate::server::Server;
use crate::table::{Row, Unit};
use crate::{Effort, Result};

/// Files become cached.
const WARM_UP: usize = 1;

/// What is ended leaves something to be done.
const PAUSE: Duration = Duration::from_millis(300);

const WITH: &str = "first answer of `weighlock mcp`, a server runs";
const WITHOUT: &str = "first answer of `weighlock mcp`, which starts a server";

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let server = Server::start("")?;
    let mut ended = Server::start("")?;
    ended.end();
    let peers = peers::all();
    let mut turns = vec![
        Turn::new(WITH, || first(ours(&server), &our_tool())),
        Turn::new(WITHOUT, || {
            let took = first(ours(&ended), &our_tool());
            let mut stop = ended.command_line();
            bare(stop.args(["serve", "--stop"]).stderr(Stdio::null()))?;
            took
        }),
    ];
    for peer in &peers {
        let turn = Turn::new(peer.name(), || first(peer.command(), &peer.tool));
        turns.push(turn.of_peer());
    }
    let samples = by_turns(&mut turns, WARM_UP, effort.starts, PAUSE)?;
    let with = of(&samples, WITH)?;
    let row = |(name, taken): &(&str, _)| {
        let what = match [WITH, WITHOUT].contains(name) {
            true => (*name).to_owned(),
            false => format!("first answer of {name}"),
        };
        Row::new(what, Unit::Millis, taken).against("a server runs", with)
    };
    Ok(samples.iter().map(row).collect())
}

/// Starts one, has it greet and answer, and ends it.
fn first(mut command: Command, tool: &Value) -> Result<Duration> {
    let began = Instant::now();
    let mut client = Client::start(&mut command)?;
    client.call(tool)?;
    Ok(began.elapsed())
}
