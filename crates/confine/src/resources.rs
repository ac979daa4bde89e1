//! What a run uses now: its processes, and the ports that it listens on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use rustix::process::Pid;

use crate::members::{below, field, pids_below, resident_bytes};

/// How many processes of one run are looked at.
const MOST: usize = 1000;

/// What the kernel calls a socket that waits for connections.
const LISTENS: &str = "0A";

/// One process of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// As the host sees it.
    pub pid: u32,
    /// The one that started it, if that is of the run.
    pub parent: Option<u32>,
    /// Its command line.
    pub command: String,
    /// Time that it has computed for, in microseconds.
    pub cpu_micros: u64,
    /// Its resident memory.
    pub memory_bytes: u64,
}

/// Lists the processes of a run by its keeper; not the first inside, which is
/// ours.
pub fn processes_below(keeper: u32) -> Vec<Process> {
    let Some(root) = Pid::from_raw(keeper.cast_signed()) else {
        return vec![];
    };
    let members = below(root, MOST);
    let parents: HashMap<u32, u32> = { members.iter() }
        .filter_map(|member| Some((member.pid, field(member.pid, 4)?)))
        .collect();
    let ours = |pid: u32| parents.get(&pid) == Some(&keeper);
    let inside = members.iter().filter(|member| !ours(member.pid));
    inside
        .map(|member| Process {
            pid: member.pid,
            parent: { parents.get(&member.pid).copied() }
                .filter(|parent| parents.contains_key(parent) && !ours(*parent)),
            command: member.command(),
            cpu_micros: cpu_micros(member.pid),
            memory_bytes: resident_bytes(member.pid).unwrap_or(0),
        })
        .collect()
}

/// Returns the ports that a run listens on, by its keeper.
pub fn ports_below(keeper: u32) -> Vec<u16> {
    let Some(root) = Pid::from_raw(keeper.cast_signed()) else {
        return vec![];
    };
    let pids = pids_below(root, MOST);
    let mut looked_at = HashSet::new();
    let mut ports = BTreeSet::new();
    for &pid in &pids {
        let Some(network) = network_of(&pid.to_string()) else {
            continue;
        };
        if !looked_at.insert(network.clone()) {
            continue;
        }
        let heard = listening(pid);
        // Where others listen too, only what is the run's own counts.
        let shared = network_of("self") == Some(network);
        let own = shared.then(|| sockets_of(&pids));
        let mine = |inode: &u64| own.as_ref().is_none_or(|own| own.contains(inode));
        ports.extend(
            { heard.iter() }
                .filter(|(_, inode)| mine(inode))
                .map(|(port, _)| *port),
        );
    }
    ports.into_iter().collect()
}

fn cpu_micros(pid: u32) -> u64 {
    let ticks = |number| field::<u64>(pid, number).unwrap_or(0);
    (ticks(14) + ticks(15)) * 1_000_000 / rustix::param::clock_ticks_per_second()
}

fn network_of(pid: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

/// Lists ports that are listened on where a process is, with their sockets.
fn listening(pid: u32) -> Vec<(u16, u64)> {
    ["tcp", "tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).ok())
        .flat_map(|table| {
            let rows = table.lines().skip(1);
            rows.filter_map(listener).collect::<Vec<_>>()
        })
        .collect()
}

/// Reads a line of the kernel's table: number, own address, other address,
/// state, and later the socket.
fn listener(row: &str) -> Option<(u16, u64)> {
    let words: Vec<&str> = row.split_ascii_whitespace().collect();
    if *words.get(3)? != LISTENS {
        return None;
    }
    let (_, port) = words.get(1)?.rsplit_once(':')?;
    Some((
        u16::from_str_radix(port, 16).ok()?,
        words.get(9)?.parse().ok()?,
    ))
}

fn sockets_of(pids: &[u32]) -> HashSet<u64> {
    let open = |pid: &u32| {
        fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
    };
    { pids.iter() }
        .flat_map(open)
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|target| {
            let name = target.to_str()?.strip_prefix("socket:[")?;
            name.strip_suffix(']')?.parse().ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_listens_is_found_in_the_kernels_table() {
        let row = |state: &str| {
            format!(
                "   0: 0100007F:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 \
                 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0"
            )
        };
        assert_eq!(listener(&row("0A")), Some((8080, 4711)));
        assert_eq!(listener(&row("01")), None);
        assert_eq!(listener("nonsense"), None);
    }

    #[test]
    fn a_listener_of_a_process_below_is_found_and_another_ones_is_not() {
        let mine = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = mine.local_addr().unwrap().port();
        // We are below our own parent, and nothing is below a process that is
        // not there.
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        assert!(ports_below(parent.cast_unsigned()).contains(&port));
        assert!(ports_below(u32::MAX >> 1).is_empty());
    }
}
