//! An agent at the door for agents, whose client may be killed, and which
//! starts a server when there is none.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::Actor;
use crate::Result;
use crate::soak::ledger::{Kind, Order, Told};

/// How many calls a client makes in its life.
const CALLS: u64 = 8;

pub(super) fn act(actor: &mut Actor<'_>) {
    let Ok(mut child) = actor
        .stage
        .world
        .weighlock(&["mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
    else {
        return;
    };
    actor.ledger().count("clients of the door for agents");
    for number in 0..actor.dice.below(CALLS) + 1 {
        let mark = actor.mark();
        let exit = actor.dice.below(2) as i64 * 4;
        let text = format!(
            "echo {mark} >> ran; sleep 0.0{}; exit {exit}",
            actor.dice.below(9)
        );
        let answered = call(&mut child, number, &text);
        actor.ledger().order(Order {
            mark,
            kind: Kind::Agent,
            exit,
            // What it says is held against the record by the mark alone.
            told: Told::Nothing,
        });
        if answered.is_err() {
            break;
        }
    }
    if actor.dice.below(3) == 0 {
        actor.ledger().count("clients that vanished");
        let mark = actor.mark();
        let text = format!("echo {mark} >> ran; sleep 0.2");
        let _ = say(&mut child, &tool(99, &text));
        actor.pause(0, 100);
        actor.ledger().order(Order {
            mark,
            kind: Kind::Agent,
            exit: 0,
            told: Told::Nothing,
        });
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn call(child: &mut Child, number: u64, text: &str) -> Result<Value> {
    if number == 0 {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "soak", "version": "1" } });
        say(
            child,
            &json!({ "jsonrpc": "2.0", "id": 1000, "method": "initialize",
            "params": params }),
        )?;
        hear(child, 1000)?;
        say(
            child,
            &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        )?;
    }
    say(child, &tool(number, text))?;
    hear(child, number)
}

fn tool(number: u64, text: &str) -> Value {
    let params = json!({ "name": "run", "arguments": { "command": text } });
    json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params })
}

fn say(child: &mut Child, message: &Value) -> Result<()> {
    let input = child.stdin.as_mut().ok_or("no input")?;
    Ok(writeln!(input, "{message}")?)
}

/// Waits for the answer to a request. Nothing is read ahead: one comes at a
/// time.
fn hear(child: &mut Child, number: u64) -> Result<Value> {
    let mut lines = BufReader::with_capacity(1, child.stdout.as_mut().ok_or("no output")?);
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Err("the client has ended".into());
        }
        let message: Value = serde_json::from_str(&line)?;
        if message["id"] == number {
            return Ok(message);
        }
    }
}
