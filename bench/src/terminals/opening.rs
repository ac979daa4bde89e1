//! How many terminals are opened and closed in a second.

use std::time::{Duration, Instant};

use super::pty::Bare;
use super::tmux::{Control, Tmux};
use super::{CAT, close, closed, open};
use crate::http::Client;
use crate::server::Server;
use crate::table::{Row, Samples, Unit};
use crate::{Effort, Result, crowd};

/// How many are opened at once.
const AT_ONCE: usize = 8;

/// What many terminals leave to be done is not charged to the next in turn.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let server = Server::start("")?;
    let mut clients = crowd::connect(&server, AT_ONCE)?;
    let tmux = Tmux::start()?;
    let mut control = tmux.as_ref().map(Tmux::control).transpose()?;
    let mut samples: [Samples; 5] = Default::default();
    for round in 0..=effort.crowds {
        let mut rate = |turn: usize, opened: usize, began: Instant| {
            // The first pays for what the others find.
            if round > 0 {
                samples[turn].push(opened as f64 / began.elapsed().as_secs_f64());
            }
        };
        let each = effort.each;

        std::thread::sleep(PAUSE);
        let began = Instant::now();
        (0..each).try_for_each(|_| Bare::open(CAT).map(drop))?;
        rate(0, each, began);

        if let (Some(tmux), Some(control)) = (&tmux, &mut control) {
            std::thread::sleep(PAUSE);
            let began = Instant::now();
            (0..each).try_for_each(|_| by_control(control))?;
            rate(1, each, began);

            std::thread::sleep(PAUSE);
            let began = Instant::now();
            (0..each).try_for_each(|_| by_commands(tmux))?;
            rate(2, each, began);
        }

        std::thread::sleep(PAUSE);
        let began = Instant::now();
        ours(&mut clients[0], 0, each)?;
        rate(3, each, began);

        std::thread::sleep(PAUSE);
        let mut numbered: Vec<(usize, &mut Client)> = clients.iter_mut().enumerate().collect();
        let began = Instant::now();
        crowd::all(&mut numbered, |(number, client)| {
            ours(client, *number, each)
        })?;
        rate(4, AT_ONCE * each, began);
    }
    let [bare, control, commands, one, many] = &samples;
    // A bare one is there in less time than load from elsewhere takes away, and
    // differs tenfold from run to run: no measure for the others.
    let (name, other) = match &tmux {
        Some(_) => ("tmux control", control),
        None => ("bare", bare),
    };
    let row = |what, samples| Row::new(what, Unit::OpenedPerSecond, samples).against(name, other);
    let mut rows = vec![row("opened and closed: a bare terminal", bare)];
    if tmux.is_some() {
        rows.push(row("tmux in control mode", control));
        rows.push(row("tmux `new-window`, `kill-window`", commands));
    }
    rows.push(row("over the socket, walled and recorded", one));
    rows.push(row("the same on 8 connections", many));
    Ok(rows)
}

fn by_control(control: &mut Control) -> Result<()> {
    control.call(&format!("new-window -d -n again {CAT}"))?;
    control.call("kill-window -t again")
}

fn by_commands(tmux: &Tmux) -> Result<()> {
    tmux.call(&["new-window", "-d", "-n", "again", CAT])?;
    tmux.call(&["kill-window", "-t", "again"]).map(drop)
}

/// Opens and closes so many, and waits until nothing of them is left.
fn ours(client: &mut Client, number: usize, times: usize) -> Result<()> {
    let mut opened = vec![];
    for _ in 0..times {
        let id = open(client, &format!("t{number}-{}", opened.len()), CAT)?;
        close(client, &id)?;
        opened.push(id);
    }
    opened.iter().try_for_each(|id| closed(client, id))
}
