//! What running on a copy costs, and what seeing, applying and taking back its
//! changes does, beside what people do by hand.

mod build;
mod large;
mod many;
mod small;
mod trees;

pub(crate) use build::measure as build;
pub(crate) use large::measure as large;
pub(crate) use many::measure as many;
pub(crate) use small::measure as small;
pub(crate) use trees::measure as trees;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Result;
use crate::http::Client;
use crate::server::Server;

/// A server whose commands write behind the same walls, but to the files
/// themselves.
const DIRECT: &str = "preset = \"blacklist\"\n[effects]\nreview = \"before\"\n";

/// What one turn leaves to be done after its answer is not charged to the next.
const PAUSE: Duration = Duration::from_millis(20);

/// A server whose commands work on copies, and a connection to it.
struct Copies {
    server: Server,
    client: Client,
}

/// A command that ran on a copy and whose changes are held.
struct Held {
    id: String,
    run: Value,
    /// Until the question about its changes was there.
    took: Duration,
}

impl Held {
    /// How long the command itself took.
    fn lasted(&self) -> Result<Duration> {
        let millis = self.run["duration_ms"].as_f64().ok_or("no duration")?;
        Ok(Duration::from_secs_f64(millis / 1e3))
    }
}

impl Copies {
    fn start() -> Result<Self> {
        Self::of(Server::start("")?)
    }

    fn of(server: Server) -> Result<Self> {
        let client = server.connect()?;
        Ok(Self { server, client })
    }

    /// Runs a command on a copy, up to the question about its changes.
    fn preview(&mut self, command: &str, session: Option<&str>) -> Result<Held> {
        let mut body = json!({ "command": command, "preview": true });
        if let Some(session) = session {
            body["session_id"] = session.into();
        }
        let began = Instant::now();
        let run = self.client.call("POST", "/commands", &body)?;
        let took = began.elapsed();
        if run["exit_code"] != 0 || run["changes"]["state"] != "held" {
            return Err(format!("`{command}` holds no changes: {run}").into());
        }
        let id = run["command_id"].as_str().ok_or("no id")?.to_owned();
        Ok(Held { id, run, took })
    }

    fn commit(&mut self, held: &Held) -> Result<Duration> {
        self.settle(held, "commit", "applied")
    }

    fn discard(&mut self, held: &Held) -> Result<Duration> {
        self.settle(held, "discard", "discarded")
    }

    fn undo(&mut self, held: &Held) -> Result<Duration> {
        let path = format!("/commands/{}/revert", held.id);
        let began = Instant::now();
        self.client.call("POST", &path, &json!({}))?;
        Ok(began.elapsed())
    }

    fn settle(&mut self, held: &Held, how: &str, now: &str) -> Result<Duration> {
        let path = format!("/commands/{}/finalize", held.id);
        let began = Instant::now();
        let run = self
            .client
            .call("POST", &path, &json!({ "changes": how }))?;
        let took = began.elapsed();
        match run["changes"]["state"] == now {
            true => Ok(took),
            false => Err(format!("not {now}: {run}").into()),
        }
    }
}

/// Runs a command behind walls, to its end.
fn walled(client: &mut Client, command: &str) -> Result<Duration> {
    let began = Instant::now();
    let run = client.run(command)?;
    let took = began.elapsed();
    match run["changes"].is_null() {
        true => Ok(took),
        false => Err(format!("`{command}` ran on a copy").into()),
    }
}

/// Runs a command as people do by hand.
fn bare(dir: &Path, script: &str) -> Result<Duration> {
    let mut shell = Command::new("/bin/sh");
    let shell = shell.args(["-c", script]).current_dir(dir);
    let silent = shell.stdin(Stdio::null()).stdout(Stdio::null());
    let began = Instant::now();
    let ended = silent.status()?;
    let took = began.elapsed();
    match ended.success() {
        true => Ok(took),
        false => Err(format!("`{script}` did not succeed: {ended}").into()),
    }
}

/// Makes a tree of so many small files, a hundred in each directory.
fn plant(tree: &Path, files: usize) -> Result<()> {
    for number in 0..files {
        let dir = tree.join(format!("d{}", number / 100));
        if number % 100 == 0 {
            fs::create_dir_all(&dir)?;
        }
        let line = format!("file {number} of {files}\n");
        fs::write(dir.join(format!("f{number}")), line.repeat(10))?;
    }
    Ok(())
}

/// Returns the order of turns in a round: back and forth, so that no one always
/// follows the same other.
fn order<const N: usize>(round: usize) -> [usize; N] {
    std::array::from_fn(|turn| match round % 2 {
        0 => turn,
        _ => N - 1 - turn,
    })
}
