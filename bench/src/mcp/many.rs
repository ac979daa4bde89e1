//! Many calls at once.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::peers::Peer;
use super::stdio::Client;
use super::{ECHO, Turn, by_turns, of, our_tool, ours, peers, streamable};
use crate::server::Server;
use crate::table::{Row, Unit, not_measured};
use crate::{Effort, Result, crowd};

/// How many are called at once.
const AT_ONCE: usize = 50;

const WARM_UP: usize = 1;

/// What so many leave to be done is not charged to the next in turn.
const PAUSE: Duration = Duration::from_millis(500);

const BARE: &str = "50 bare `sh -c 'echo hi'` at once";
const STDIO: &str = "50 calls at once over stdio";
const HTTP: &str = "50 calls at once over HTTP, on 50 connections";

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let server = Server::start_listening()?;
    let peers = peers::all();
    let started: Vec<_> = peers.iter().filter_map(able).collect();
    let (mut stdio, run) = (Client::start(&mut ours(&server))?, our_tool());
    let token = streamable::token(&server)?;
    let http = (0..AT_ONCE).map(|_| streamable::Client::open(&server, &token));
    let mut http = http.collect::<Result<Vec<_>>>()?;
    let mut turns = vec![
        Turn::whole(BARE, spawn),
        Turn::whole(STDIO, || stdio.calls(&run, AT_ONCE)),
        Turn::whole(HTTP, || crowd::all(&mut http, streamable::Client::call)),
    ];
    for (peer, mut client) in started {
        let deed = move || client.calls(&peer.tool, AT_ONCE);
        turns.push(Turn::whole(peer.name(), deed).of_peer());
    }
    let samples = by_turns(&mut turns, WARM_UP, effort.crowds, PAUSE)?;
    let bare = of(&samples, BARE)?;
    let row = |(name, taken): &(&str, _)| {
        let what = match [BARE, STDIO, HTTP].contains(name) {
            true => (*name).to_owned(),
            false => format!("50 calls at once: {name}"),
        };
        Row::new(what, Unit::Millis, taken).against("bare", bare)
    };
    Ok(samples.iter().map(row).collect())
}

/// Starts one that can do it, and says why another cannot.
fn able(peer: &Peer) -> Option<(&Peer, Client)> {
    let tried = peer.start().and_then(|mut client| {
        client.calls(&peer.tool, AT_ONCE)?;
        Ok((peer, client))
    });
    match tried {
        Ok(able) => Some(able),
        Err(error) => {
            not_measured(&format!("50 calls at once: {}", peer.name()), error);
            None
        }
    }
}

/// Starts all from one thread, then waits for them.
fn spawn() -> Result<()> {
    let start = |_| {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", ECHO]).stdout(Stdio::null()).spawn()
    };
    let shells: Vec<Child> = (0..AT_ONCE).map(start).collect::<std::io::Result<_>>()?;
    for mut shell in shells {
        shell.wait()?;
    }
    Ok(())
}
