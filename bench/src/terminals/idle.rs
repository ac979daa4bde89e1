//! Many terminals at which nothing happens: the memory of each, and the
//! processor time of all.

use std::time::Duration;

use super::tmux::Tmux;
use super::{CAT, open};
use crate::server::{Process, Server};
use crate::table::{Goal, Row, Samples, Unit};
use crate::{Effort, Result};

/// Until what opening leaves to be done is done.
const CALM: Duration = Duration::from_secs(2);

/// And until nobody expects that anything more happens.
const LATER: Duration = Duration::from_secs(30);

/// How long they are watched.
const WATCHED: Duration = Duration::from_secs(5);

/// What no processor time means, in milliseconds of a second: some thread has to
/// look at the clock now and then.
const NOTHING: f64 = 1.0;

const MIB: f64 = 1024.0 * 1024.0;

/// Memory in bytes, shared pages by the share.
#[derive(Clone, Copy, Default)]
struct Memory {
    server: u64,
    /// Keepers, and the first process inside of each terminal.
    keepers: u64,
    /// What was started in the terminals.
    programs: u64,
}

pub(crate) fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let count = effort.terminals;
    let server = Server::start("")?;
    let mut client = server.connect()?;
    // The first pays for what all share.
    open(&mut client, "first", CAT)?;
    std::thread::sleep(CALM);
    let before = memory(&server);
    for number in 0..count {
        open(&mut client, &format!("t{number}"), CAT)?;
    }
    std::thread::sleep(CALM);
    let after = memory(&server);
    let used = idle(&server.processes());
    std::thread::sleep(LATER);
    let later = idle(&server.processes());
    let each = |bytes: fn(&Memory) -> u64| {
        let grown = bytes(&after) as f64 - bytes(&before) as f64;
        Samples::of(&[grown / MIB / count as f64])
    };
    let other = tmux(count)?;
    let memory = |what: &str, samples: Samples| {
        let what = format!("each of {count} idle terminals: {what}");
        let row = Row::new(what, Unit::Mebibytes, &samples);
        match &other {
            Some((window, _)) => row.against("tmux", window),
            None => row,
        }
    };
    let mut rows = vec![
        memory("all of ours", each(|all| all.server + all.keepers)).promise(Goal::Under(3.0)),
        memory("the server's part", each(|all| all.server)),
        memory("the keepers' part", each(|all| all.keepers)),
        memory("its `cat`", each(|all| all.programs)),
    ];
    if let Some((window, _)) = &other {
        rows.push(memory("tmux", Samples::of(&[window.median()])));
    }
    let what = format!("processor time of {count} idle terminals in a second");
    rows.push(Row::new(what, Unit::Millis, &used).promise(Goal::Under(NOTHING)));
    rows.push(Row::new("half a minute later", Unit::Millis, &later).promise(Goal::Under(NOTHING)));
    if let Some((_, others)) = &other {
        rows.push(Row::new("the same of tmux", Unit::Millis, others));
    }
    Ok(rows)
}

/// Returns what a window of tmux takes, and what the processor does for all.
fn tmux(count: usize) -> Result<Option<(Samples, Samples)>> {
    let Some(tmux) = Tmux::start()? else {
        return Ok(None);
    };
    let server = Process(tmux.pid()?);
    let before = server.memory();
    let mut control = tmux.control()?;
    for _ in 0..count {
        control.call(&format!("new-window -d {CAT}"))?;
    }
    drop(control);
    std::thread::sleep(CALM);
    // The process itself, its first window, and those that count.
    let processes = server.tree();
    if processes.len() != 2 + count {
        return Err(format!("tmux has {} processes", processes.len()).into());
    }
    let grown = (server.memory() as f64 - before as f64) / MIB / count as f64;
    Ok(Some((Samples::of(&[grown]), idle(&processes))))
}

fn memory(server: &Server) -> Memory {
    let mut memory = Memory::default();
    let processes = server.processes();
    let ours = processes.first().and_then(Process::program);
    for (number, process) in processes.iter().enumerate() {
        let program = process.program();
        let of = match number {
            0 => &mut memory.server,
            _ if program == ours => &mut memory.keepers,
            _ => &mut memory.programs,
        };
        *of += process.memory();
    }
    memory
}

/// Returns milliseconds of processor time in a second.
fn idle(processes: &[Process]) -> Samples {
    let used = || -> u64 { processes.iter().map(Process::nanoseconds).sum() };
    let before = used();
    std::thread::sleep(WATCHED);
    Samples::of(&[(used() - before) as f64 / 1e6 / WATCHED.as_secs_f64()])
}
