//! One call after another, each of which runs a command.

use std::process::Command;
use std::time::Duration;

use super::peers::Peer;
use super::stdio::Client;
use super::{ECHO, Turn, by_turns, of, our_tool, ours, peers, streamable};
use crate::one::bare;
use crate::server::Server;
use crate::table::{Goal, Row, Samples, Unit};
use crate::{Effort, Result};

/// Rounds before the first that counts.
const WARM_UP: usize = 10;

/// What a call leaves to be done after its answer is not charged to the next.
const PAUSE: Duration = Duration::from_millis(20);

const SHELL: &str = "bare `sh -c 'echo hi'`";
const SPAWN: &str = "bare `true`";
const SOCKET: &str = "`echo hi` by REST over the socket";
const STDIO: &str = "`tools/call` over stdio, walled and recorded";
const HTTP: &str = "`tools/call` over HTTP, walled and recorded";

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let server = Server::start_listening()?;
    let peers = peers::all();
    let started = peers
        .iter()
        .filter_map(|peer| Some((peer, peer.try_start()?)));
    let started: Vec<_> = started.collect();
    let mut socket = server.connect()?;
    let (mut stdio, run) = (Client::start(&mut ours(&server))?, our_tool());
    let mut http = streamable::Client::open(&server, &streamable::token(&server)?)?;
    let mut turns = vec![
        Turn::whole(SHELL, || bare(Command::new("/bin/sh").args(["-c", ECHO]))),
        Turn::whole(SPAWN, || bare(&mut Command::new("true"))),
        Turn::whole(SOCKET, || socket.run(ECHO).map(drop)),
        Turn::whole(STDIO, || stdio.call(&run)),
        Turn::whole(HTTP, || http.call()),
    ];
    for (peer, mut client) in started {
        let deed = move || client.call(&peer.tool);
        turns.push(Turn::whole(peer.name(), deed).of_peer());
    }
    let samples = by_turns(&mut turns, WARM_UP, effort.runs, PAUSE)?;
    rows(&samples, &peers)
}

fn rows(samples: &[(&'static str, Samples)], peers: &[Peer]) -> Result<Vec<Row>> {
    let (shell, spawn) = (of(samples, SHELL)?, of(samples, SPAWN)?);
    let mut rows = vec![];
    for (name, taken) in samples {
        let row = || Row::new(*name, Unit::Millis, taken);
        rows.push(row().against("sh -c 'echo hi'", shell));
        if ![STDIO, HTTP].contains(name) {
            continue;
        }
        rows.push(row().against("bare true", spawn).promise(Goal::AtMost(3.0)));
        for peer in peers {
            if let Ok(theirs) = of(samples, peer.name()) {
                let same = row().against(peer.name(), theirs);
                rows.push(same.promise(Goal::AtMost(1.0)));
            }
        }
    }
    Ok(rows)
}
