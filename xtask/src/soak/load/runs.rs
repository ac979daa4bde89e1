//! Runs of every kind: short, long, flooding, forking, in the background; some
//! of clients that vanish.

use serde_json::{Value, json};

use super::Actor;
use crate::soak::client::Client;
use crate::soak::ledger::{Kind, Order, Told};

pub(super) fn act(actor: &mut Actor<'_>) {
    let mark = actor.mark();
    let exit = [0, 0, 1, 7][actor.dice.below(4) as usize];
    let shape = actor.dice.below(12);
    let begin = format!("echo {mark} >> ran");
    let text = match shape {
        0..=3 => format!("{begin}; echo out {mark}; exit {exit}"),
        4 | 5 => format!("{begin}; sleep 0.{}; exit {exit}", shape * 2),
        6 => format!("{begin}; yes {mark} | head -c 3000000; exit {exit}"),
        7 => format!(
            "{begin}; for i in 1 2 3 4 5 6; do (sleep 0.3 &); done; setsid sleep 40 & exit {exit}"
        ),
        8 => format!("{begin}; (sleep 1; echo {mark} >> late) & exit {exit}"),
        9 => format!("{begin}; sleep 100"),
        _ => format!("{begin}; sleep 0.1; exit {exit}"),
    };
    let mut wish = json!({ "command": text });
    if [4, 5, 9].contains(&shape) {
        wish["background"] = true.into();
    }
    if shape == 9 {
        // If nobody can stop it.
        wish["timeout_ms"] = 20_000.into();
    }
    if shape == 8 {
        wish["keep"] = true.into();
    }
    let owner = actor.crew().owner.clone();
    let told = match shape {
        10 | 11 => vanish(actor, &owner, &wish),
        _ => actor.ledger().told(owner.post("/commands", &wish)),
    };
    actor.ledger().count("runs asked for");
    if let (9, Told::Run(run)) = (shape, &told) {
        stop(actor, &owner, run);
    }
    actor.ledger().order(Order {
        mark,
        kind: Kind::Plain,
        exit,
        told,
    });
}

/// Asks, and is gone before there is an answer.
fn vanish(actor: &mut Actor<'_>, who: &Client, wish: &Value) -> Told {
    let line = who.send("POST", "/commands", wish);
    actor.pause(0, 60);
    drop(line);
    actor.ledger().count("clients that vanished");
    Told::Nothing
}

fn stop(actor: &mut Actor<'_>, who: &Client, run: &Value) {
    actor.pause(0, 400);
    let id = run["command_id"].as_str().unwrap_or_default();
    // Whoever cannot be reached is tried again: it would run for long.
    for _ in 0..50 {
        let said = who.post(&format!("/commands/{id}/stop"), &json!({ "grace_ms": 100 }));
        actor.ledger().look(&said);
        if said.status().is_some_and(|status| status < 500) {
            return;
        }
        actor.pause(100, 101);
    }
}
