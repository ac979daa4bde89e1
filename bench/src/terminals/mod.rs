//! Terminals: how soon a line is answered, what one costs, and what many who
//! watch do, beside tmux and a bare terminal.

mod echo;
mod emulator;
mod idle;
mod opening;
mod pty;
mod tmux;
mod viewers;

pub(crate) use echo::measure as echo;
pub(crate) use emulator::measure as emulator;
pub(crate) use idle::measure as idle;
pub(crate) use opening::measure as opening;
pub(crate) use viewers::measure as viewers;

use serde_json::{Value, json};

use crate::Result;
use crate::http::Client;

/// What is open in most of them: says again what it is told.
const CAT: &str = "cat";

/// Opens a terminal and returns its id.
fn open(client: &mut Client, name: &str, command: &str) -> Result<String> {
    let new = json!({ "name": name, "description": "is measured", "command": command,
                      "session_id": "bench" });
    let opened = client.call("POST", "/terminals", &new)?;
    match opened["terminal_id"].as_str() {
        Some(id) => Ok(id.to_owned()),
        None => Err(format!("not opened: {opened}").into()),
    }
}

fn close(client: &mut Client, id: &str) -> Result<()> {
    let path = format!("/terminals/{id}");
    client.call("DELETE", &path, &Value::Null).map(drop)
}

/// Waits until nothing of a terminal is left.
fn closed(client: &mut Client, id: &str) -> Result<()> {
    let path = format!("/commands/{id}?wait_ms=10000");
    let run = client.call("GET", &path, &Value::Null)?;
    match run["open"] == true {
        true => Err(format!("still open: {run}").into()),
        false => Ok(()),
    }
}
