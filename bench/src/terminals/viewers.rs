//! A terminal that is flooded, and many who watch it: how much its program can
//! write meanwhile. Nobody who watches may hold it up.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::pty::Bare;
use super::{close, closed, open};
use crate::http::Client;
use crate::server::Server;
use crate::table::{Goal, Row, Samples, Unit};
use crate::web_socket::Viewer;
use crate::{Effort, Result, say};

/// How many watch.
const COUNTS: [usize; 4] = [0, 1, 10, 100];

/// Until those who have begun to watch are where the output is.
const CALM: Duration = Duration::from_millis(300);

/// How long it is watched.
const WATCHED: Duration = Duration::from_secs(1);

/// More than is written in any time.
const ENDLESS: &str = "flood 1000000000000000";

/// What a bare reader takes at once.
const PIECE: usize = 64 * 1024;

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let server = Server::start("")?;
    let mut client = server.connect()?;
    let flood = say::command(ENDLESS)?;
    let (mut bare, mut stalled) = (Samples::default(), Samples::default());
    let mut written: [Samples; 4] = Default::default();
    let mut sent: [Samples; 4] = Default::default();
    for _ in 0..effort.crowds {
        std::thread::sleep(CALM);
        bare.push(drained(&flood)?);
        let id = open(&mut client, "flood", &flood)?;
        for (number, count) in COUNTS.into_iter().enumerate() {
            let (wrote, saw) = watched(&server, &mut client, &id, count)?;
            written[number].push(wrote);
            sent[number].push(saw);
        }
        let asleep = Viewer::open(&server, &id)?;
        std::thread::sleep(CALM);
        stalled.push(speed(&mut client, &id)?);
        drop(asleep);
        close(&mut client, &id)?;
        closed(&mut client, &id)?;
    }
    let [none, ..] = &written;
    let row = |what: String, samples| {
        Row::new(what, Unit::MegabytesPerSecond, samples).against("unwatched", none)
    };
    let mut rows = vec![
        row("a flood at a bare terminal, read and dropped".into(), &bare),
        row("a flood that nobody watches".into(), none),
    ];
    for (count, samples) in COUNTS.into_iter().zip(&written).skip(1) {
        rows.push(row(format!("watched by {count}"), samples));
    }
    rows.push(row("watched by one who has stalled".into(), &stalled).goal(Goal::Alike));
    for (count, samples) in COUNTS.into_iter().zip(&sent).skip(1) {
        let what = format!("output sent to {count} who watch, snapshots aside");
        rows.push(Row::new(what, Unit::MegabytesPerSecond, samples));
    }
    Ok(rows)
}

/// Returns how fast the program writes while so many watch, and how much they
/// are sent together.
fn watched(server: &Server, client: &mut Client, id: &str, count: usize) -> Result<(f64, f64)> {
    let came = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let viewers = (0..count).map(|_| Viewer::open(server, id));
        let viewers: Vec<Viewer> = viewers.collect::<Result<_>>()?;
        let ends = viewers
            .into_iter()
            .map(|viewer| watch(scope, viewer, &came));
        let ends: Vec<_> = ends.collect::<Result<_>>()?;
        std::thread::sleep(CALM);
        let (before, began) = (came.load(Ordering::Relaxed), Instant::now());
        let wrote = speed(client, id);
        let saw = came.load(Ordering::Relaxed) - before;
        let saw = saw as f64 / 1e6 / began.elapsed().as_secs_f64();
        ends.into_iter().for_each(|end| end());
        Ok((wrote?, saw))
    })
}

/// Watches on a thread of its own; returns what ends that.
fn watch<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut viewer: Viewer,
    came: &'scope AtomicU64,
) -> Result<impl FnOnce() + use<>> {
    let end = viewer.end()?;
    scope.spawn(move || {
        while let Ok(bytes) = viewer.output() {
            came.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
    });
    Ok(end)
}

/// Returns how fast the program writes, in MB/s.
fn speed(client: &mut Client, id: &str) -> Result<f64> {
    let path = format!("/commands/{id}");
    let mut offset = || -> Result<u64> {
        let run = client.call("GET", &path, &Value::Null)?;
        let offset = run["output"]["bytes"].as_u64();
        offset.ok_or_else(|| format!("no output: {run}").into())
    };
    let (before, began) = (offset()?, Instant::now());
    std::thread::sleep(WATCHED);
    let grown = offset()? - before;
    Ok(grown as f64 / 1e6 / began.elapsed().as_secs_f64())
}

fn drained(command: &str) -> Result<f64> {
    let mut bare = Bare::open(command)?;
    let mut piece = vec![0; PIECE];
    let (mut read, began) = (0, Instant::now());
    while began.elapsed() < WATCHED {
        read += bare.master.read(&mut piece)?;
    }
    Ok(read as f64 / 1e6 / began.elapsed().as_secs_f64())
}
