//! The memory of servers at which nothing happens.

use std::time::Duration;

use serde_json::Value;

use super::stdio::Client;
use super::{our_tool, ours, peers};
use crate::server::{Process, Server};
use crate::table::{Row, Samples, Unit, not_measured};
use crate::{Effort, Result};

/// Until what a start and a call leave to be done is done.
const CALM: Duration = Duration::from_secs(3);

const MIB: f64 = 1024.0 * 1024.0;

pub(crate) fn measure(_: &Effort) -> Result<Vec<Row>> {
    let server = Server::start_listening()?;
    let client = called(Client::start(&mut ours(&server))?, &our_tool())?;
    let one = memory(&[Process(client.pid())]);
    let all = server.processes();
    let (first, below) = all.split_first().ok_or("the server has ended")?;
    let row = |what: &str, samples: &Samples| Row::new(what, Unit::Mebibytes, samples);
    let mut rows = vec![
        row("idle: `weighlock mcp`", &one),
        row(
            "idle: the server, which all clients share",
            &memory(&[*first]),
        ),
        row("idle: its nursery and waiting keepers", &memory(below)),
    ];
    drop(client);
    // One at a time: of what two share, each would have only half.
    for peer in peers::all() {
        let what = format!("idle: {}", peer.name());
        match peer.start().and_then(|client| called(client, &peer.tool)) {
            Ok(client) => rows.push(row(&what, &memory(&Process(client.pid()).tree()))),
            Err(error) => not_measured(&what, error),
        }
    }
    Ok(rows)
}

/// Has it do once what it is for, and then nothing.
fn called(mut client: Client, tool: &Value) -> Result<Client> {
    client.call(tool)?;
    std::thread::sleep(CALM);
    Ok(client)
}

fn memory(processes: &[Process]) -> Samples {
    let bytes: u64 = processes.iter().map(Process::memory).sum();
    Samples::of(&[bytes as f64 / MIB])
}
