//! One short command at a time.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::server::Server;
use crate::table::{Goal, Row, Samples, Unit};
use crate::{Effort, Result};

/// Runs before the first that counts: files become cached, pools are filled.
const WARM_UP: usize = 5;

/// What one run leaves to be done after its answer is not charged to the next.
/// It is charged in the runs per second of a crowd.
const PAUSE: Duration = Duration::from_millis(20);

const SOCKET: &str = "`true` over the socket, walled and recorded";

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let server = Server::start("")?;
    let mut client = server.connect()?;
    let mut socket = || client.run("true").map(drop);
    let mut line = || {
        let mut run = server.command_line();
        run.args(["run", "-q", "--", "true"]);
        bare(&mut run)
    };
    let mut shell = || bare(Command::new("/bin/sh").args(["-c", "true"]));
    let mut spawn = || bare(&mut Command::new("true"));
    let turns: [&mut dyn FnMut() -> Result<()>; 4] =
        [&mut shell, &mut spawn, &mut socket, &mut line];
    let mut samples: [Samples; 4] = Default::default();
    for round in 0..WARM_UP + effort.runs {
        for turn in 0..turns.len() {
            // Back and forth, so that no one always follows the same other.
            let turn = if round % 2 == 0 { turn } else { 3 - turn };
            std::thread::sleep(PAUSE);
            let began = Instant::now();
            turns[turn]()?;
            if round >= WARM_UP {
                samples[turn].push_millis(began.elapsed());
            }
        }
    }
    let [shell, spawn, socket, line] = &samples;
    let row = |what, samples| Row::new(what, Unit::Millis, samples).against("sh -c true", shell);
    Ok(vec![
        row("bare `sh -c true`", shell),
        row("bare `true`", spawn),
        Row::new(SOCKET, Unit::Millis, socket)
            .against("bare true", spawn)
            .promise(Goal::AtMost(3.0)),
        row(SOCKET, socket),
        row("`weighlock run -q -- true`", line),
    ])
}

/// Runs a program without anything around it.
pub(crate) fn bare(command: &mut Command) -> Result<()> {
    let ended = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    if ended.success() {
        Ok(())
    } else {
        Err(format!("{command:?} did not succeed: {ended}").into())
    }
}
