//! How soon a byte is seen that a running command writes.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::server::Server;
use crate::table::{Goal, Row, Samples, Unit};
use crate::{Effort, Result, say};

/// Bytes before each frame: the kind, three zeros, and the length.
const FRAME_HEADER: usize = 8;

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let command = say::command("clock")?;
    let server = Server::start("")?;
    let (mut pipe, mut frames) = (Samples::default(), Samples::default());
    for _ in 0..effort.bytes {
        pipe.push(by_pipe(&command)?);
        frames.push(by_frames(&command, &server)?);
    }
    Ok(vec![
        Row::new("first live byte by a bare pipe", Unit::Millis, &pipe).against("pipe", &pipe),
        Row::new("first live byte over the socket", Unit::Millis, &frames)
            .against("pipe", &pipe)
            .promise(Goal::Under(3.0)),
    ])
}

fn by_pipe(command: &str) -> Result<f64> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", command])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut out = child.stdout.take().ok_or("no standard output")?;
    let late = lateness(&mut out)?;
    child.wait()?;
    Ok(late)
}

fn by_frames(command: &str, server: &Server) -> Result<f64> {
    let mut client = server.connect()?;
    let id = client.start(command)?;
    let mut answer = client.follow(&id)?;
    answer.read_exact(&mut [0; FRAME_HEADER])?;
    let late = lateness(&mut answer)?;
    answer.read_to_end(&mut vec![])?;
    Ok(late)
}

/// Returns how many milliseconds ago the clock that arrives was read.
fn lateness(from: &mut impl Read) -> Result<f64> {
    let mut first = [0; 64];
    let read = from.read(&mut first)?;
    let now = say::now();
    let said: u64 = std::str::from_utf8(&first[..read])?.trim().parse()?;
    Ok(now.saturating_sub(said) as f64 / 1e6)
}
