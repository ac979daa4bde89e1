//! Many at once.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::http::Client;
use crate::server::Server;
use crate::table::{Row, Samples, Unit};
use crate::{Effort, Result};

/// How many sleep at once.
const SLEEPERS: usize = 100;

/// How many run one command after another at once.
const RUNNERS: usize = 8;

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let server = Server::start("")?;
    let mut sleepers = connect(&server, SLEEPERS)?;
    let mut runners = connect(&server, RUNNERS)?;
    let (mut sleep_bare, mut sleep_ours) = (Samples::default(), Samples::default());
    let (mut rate_bare, mut rate_ours) = (Samples::default(), Samples::default());
    let rate = |began: Instant| (RUNNERS * effort.each) as f64 / began.elapsed().as_secs_f64();
    for _ in 0..effort.crowds {
        let began = Instant::now();
        sleep()?;
        sleep_bare.push_millis(began.elapsed());

        let began = Instant::now();
        all(&mut sleepers, |client| client.run("sleep 0.1").map(drop))?;
        sleep_ours.push_millis(began.elapsed());

        let began = Instant::now();
        all(&mut [(); RUNNERS], |()| repeat(effort.each, spawn))?;
        rate_bare.push(rate(began));

        let began = Instant::now();
        all(&mut runners, |client| {
            repeat(effort.each, || client.run("true").map(drop))
        })?;
        rate_ours.push(rate(began));
    }
    let crowd = |what, samples| Row::new(what, Unit::Millis, samples).against("bare", &sleep_bare);
    let runs =
        |what, samples| Row::new(what, Unit::RunsPerSecond, samples).against("bare", &rate_bare);
    Ok(vec![
        crowd("100 bare `sh -c 'sleep 0.1'` at once", &sleep_bare),
        crowd("100 of `sleep 0.1` on 100 connections", &sleep_ours),
        runs("bare `sh -c true`, 8 threads", &rate_bare),
        runs("`true` on 8 connections", &rate_ours),
    ])
}

pub(crate) fn connect(server: &Server, count: usize) -> Result<Vec<Client>> {
    (0..count).map(|_| server.connect()).collect()
}

/// Starts all sleepers from one thread, then waits for them.
fn sleep() -> Result<()> {
    let sleepers: Vec<Child> = (0..SLEEPERS)
        .map(|_| Command::new("/bin/sh").args(["-c", "sleep 0.1"]).spawn())
        .collect::<std::io::Result<_>>()?;
    for mut sleeper in sleepers {
        sleeper.wait()?;
    }
    Ok(())
}

fn spawn() -> Result<()> {
    Command::new("/bin/sh")
        .args(["-c", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()?;
    Ok(())
}

fn repeat(times: usize, mut deed: impl FnMut() -> Result<()>) -> Result<()> {
    (0..times).try_for_each(|_| deed())
}

/// Does something with each, all at once, and waits for all.
pub(crate) fn all<T: Send>(
    each: &mut [T],
    deed: impl Fn(&mut T) -> Result<()> + Sync,
) -> Result<()> {
    let deed = &deed;
    std::thread::scope(|scope| {
        let threads: Vec<_> = each
            .iter_mut()
            .map(|one| scope.spawn(move || deed(one).map_err(|error| error.to_string())))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err("a thread panicked".into()))
                .map_err(Into::into)
        })
    })
}
