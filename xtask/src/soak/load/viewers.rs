//! Those who watch: events, output, screens. Some never read what they asked
//! for.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::Actor;
use crate::soak::client::Client;
use crate::soak::ledger::{Kind, Order};

/// How long somebody reads who reads.
const READS_FOR: Duration = Duration::from_millis(300);

pub(super) fn act(actor: &mut Actor<'_>) {
    let owner = actor.crew().owner.clone();
    let mark = actor.mark();
    let flood = format!("echo {mark} >> ran; yes {mark} | head -c 8000000; sleep 0.2");
    let wish = json!({ "command": flood, "background": true });
    let told = actor.ledger().told(owner.post("/commands", &wish));
    let lines = watch(&owner, &told);
    actor.ledger().order(Order {
        mark,
        kind: Kind::Plain,
        exit: 0,
        told,
    });
    for line in lines {
        actor.ledger().count("viewers");
        match actor.dice.below(3) {
            0 => {
                // Stalled: the pipe to it is full, and nobody may mind.
                actor.ledger().count("viewers that stalled");
                actor.pause(100, 1500);
            }
            1 => read(line),
            _ => drop(line),
        }
    }
}

fn watch(owner: &Client, told: &crate::soak::ledger::Told) -> Vec<UnixStream> {
    let mut lines = vec![owner.send("GET", "/events", &Value::Null)];
    if let crate::soak::ledger::Told::Run(run) = told {
        let id = run["command_id"].as_str().unwrap_or_default();
        for path in [
            format!("/commands/{id}/output/raw?follow=closed"),
            format!("/commands/{id}/stream"),
        ] {
            lines.push(owner.send("GET", &path, &Value::Null));
        }
    }
    if let Some(list) = owner.get("/terminals").only(200)
        && let Some(name) = list["terminals"][0]["terminal_id"].as_str()
    {
        lines.push(owner.watch(&format!("/terminals/{name}/stream")));
    }
    lines.into_iter().flatten().collect()
}

fn read(mut line: UnixStream) {
    let _ = line.set_read_timeout(Some(READS_FOR));
    let mut piece = [0; 64 * 1024];
    while matches!(line.read(&mut piece), Ok(1..)) {}
}
