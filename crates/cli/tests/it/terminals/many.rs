//! Many terminals, and busy ones: what they cost, and that nothing of them
//! stays.

use std::fs;
use std::io::Read;
use std::time::Duration;

use serde_json::Value;

use super::Desk;
use crate::crew::text;
use crate::support::{children, eventually, skip};

const MIB: u64 = 1024 * 1024;

/// How many keepers the nursery has ready at the most.
const READY: usize = 4;

/// The server, and what is below it.
#[derive(Debug, Clone, Copy)]
struct Cost {
    descriptors: usize,
    keepers: usize,
    /// Of the whole machine, on which others work too.
    terminals: usize,
    memory: u64,
}

impl Cost {
    fn of(desk: &Desk) -> Self {
        let server = desk.server_pid();
        let number = fs::read_to_string("/proc/sys/kernel/pty/nr").unwrap();
        Self {
            descriptors: fs::read_dir(format!("/proc/{server}/fd")).unwrap().count(),
            keepers: children(desk.nursery()).len(),
            terminals: number.trim().parse().expect("a number"),
            memory: resident(server),
        }
    }

    /// Whether nothing is left of so many terminals.
    fn is_back_at(self, before: Self, terminals: usize) -> bool {
        self.descriptors <= before.descriptors
            && self.keepers <= READY
            && self.terminals < before.terminals + terminals / 4
    }
}

impl Desk {
    pub(super) fn server_pid(&self) -> u32 {
        self.server.as_ref().expect("a server").child.id()
    }

    /// The process that has keepers ready; all keepers are its children.
    fn nursery(&self) -> u32 {
        let nursery = children(self.server_pid());
        let [(nursery, _)] = nursery[..] else {
            panic!("only the nursery: {nursery:?}");
        };
        nursery
    }

    /// Opens a terminal and closes it.
    fn open_and_close(&self) {
        let opened = self.open("again", "cat");
        self.close("again");
        self.ended(&opened);
    }

    /// How many bytes a terminal has written.
    pub(super) fn written(&self, terminal: &Value) -> u64 {
        let path = format!("/commands/{}", text(terminal, "terminal_id"));
        let run = self.coder().get(&path).expect(200);
        run["output"]["bytes"].as_u64().expect("a number")
    }
}

/// So many, or as many as `WL_LONG` is for.
fn count(usual: usize, long: usize) -> usize {
    match is_long() {
        true => long,
        false => usual,
    }
}

fn is_long() -> bool {
    std::env::var_os("WL_LONG").is_some()
}

#[test]
fn terminals_that_are_closed_leave_nothing_behind() {
    let desk = Desk::lenient();
    let all = count(200, 10_000);
    // Until all that is kept for reuse is there.
    for _ in 0..all / 10 {
        desk.open_and_close();
    }
    let before = Cost::of(&desk);
    for _ in 0..all {
        desk.open_and_close();
    }
    let mut after = before;
    eventually(&format!("back at {before:?}"), || {
        after = Cost::of(&desk);
        after.is_back_at(before, all)
    });
    eprintln!("{all} terminals: {before:?}, then {after:?}");
    if is_long() {
        let grown = after.memory.saturating_sub(before.memory);
        assert!(grown < 32 * MIB, "{grown} bytes for {all} terminals");
    }
    assert_eq!(desk.home.processes(), Vec::<u32>::new());
}

#[test]
fn terminals_in_which_nothing_happens_cost_next_to_nothing() {
    let desk = Desk::lenient();
    let all = count(40, 200);
    desk.open_and_close();
    let memory = |pid| shared_memory(pid);
    let server_before = memory(desk.server_pid());
    let opened: Vec<Value> = (0..all)
        .map(|n| desk.open(&format!("idle-{n}"), "cat"))
        .collect();
    for n in 0..all {
        eventually("idle", || desk.status(&format!("idle-{n}")) == "idle");
    }
    let server = desk.server_pid();
    let nursery = desk.nursery();
    let keepers: Vec<u32> = opened
        .iter()
        .map(|terminal| desk.home.keeper(&text(terminal, "terminal_id")))
        .collect();
    let inits = keepers.iter().flat_map(|&keeper| children(keeper));
    let held: Vec<u32> = inits.map(|(pid, _)| pid).chain(keepers.clone()).collect();
    assert_eq!(held.len(), 2 * all, "each has a keeper and a first process");
    let busy: Vec<u32> = held.iter().copied().chain([server, nursery]).collect();
    check_quiet(&busy);
    let server_grown = memory(server)
        .zip(server_before)
        .map(|(now, before)| now.saturating_sub(before));
    let held: Option<u64> = held.iter().map(|&pid| memory(pid)).sum();
    let Some((server_grown, held)) = server_grown.zip(held) else {
        return skip("the memory of keepers cannot be read");
    };
    let each = (server_grown + held) / all as u64;
    eprintln!("{} KiB for each of {all} terminals", each / 1024);
    if !cfg!(debug_assertions) {
        assert!(each < 3 * MIB, "{each} bytes");
    }
}

/// Over a while in which nothing happens, hardly any work is done.
fn check_quiet(pids: &[u32]) {
    let all = || pids.iter().map(|&pid| ticks(pid)).sum::<u64>();
    let mut used = u64::MAX;
    // What opening them took may not be done yet.
    for _ in 0..3 {
        let before = all();
        std::thread::sleep(Duration::from_secs(2));
        used = all() - before;
        if used <= 3 {
            break;
        }
    }
    eprintln!("{used} ticks of {} processes in 2 s", pids.len());
    assert!(used <= 3, "{used} ticks of {} processes", pids.len());
}

#[test]
fn a_viewer_that_does_not_read_holds_up_neither_a_flood_nor_the_server() {
    let desk = Desk::lenient();
    let server = desk.server_pid();
    let flood = desk.open("flood", "yes a line that says nothing new");
    let path = format!(
        "/agent/terminal/commands/{}/output/raw?follow=ended",
        text(&flood, "terminal_id")
    );
    let mut viewer = desk.coder().open("GET", &path, b"");
    viewer.read_exact(&mut [0]).unwrap();
    eventually("it has written for a while", || {
        desk.written(&flood) > 8 * MIB
    });
    let (written, memory) = (desk.written(&flood), resident(server));
    let steps = count(25, 250) as u64;
    let grown = (1..=steps).map(|step| {
        eventually("the flood goes on", || {
            desk.written(&flood) >= written + step * 4 * MIB
        });
        resident(server).saturating_sub(memory)
    });
    let most = grown.max().unwrap_or_default();
    eprintln!("{} KiB more after {} MiB", most / 1024, steps * 4);
    assert!(most < 32 * MIB, "{most} bytes");
    // It can still be looked at, and be closed; and the viewer gets the rest.
    desk.sees("flood", "a line that says nothing new");
    desk.close("flood");
    desk.ended(&flood);
    let mut rest = 0;
    let mut some = vec![0; 64 * 1024];
    loop {
        match viewer.read(&mut some).unwrap() {
            0 => break,
            more => rest += more as u64,
        }
    }
    assert!(rest > 8 * MIB, "{rest} bytes");
}

#[test]
fn a_program_that_has_characters_repeated_for_ever_does_not_keep_the_server_busy() {
    let desk = Desk::lenient();
    desk.open_shell("other");
    let server = desk.server_pid();
    let (memory, used) = (resident(server), ticks(server));
    // Done as often as it asks for, this would take minutes.
    let asks = "awk 'BEGIN { for (n = 0; n < 10000; n++) printf \"x\\033[65535b\"; \
                print \"\\nover\" }'; cat";
    desk.open("repeats", asks);
    desk.enter("other", "echo $((6 * 7)) typed");
    desk.sees("other", "42 typed");
    desk.sees("repeats", "xxx\nover");
    let grown = resident(server).saturating_sub(memory);
    assert!(grown < 32 * MIB, "{grown} bytes");
    let used = ticks(server) - used;
    eprintln!("{} KiB more, {used} ticks", grown / 1024);
    assert!(used < 1500, "{used} ticks");
}

/// Processor time of a process so far, in hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(") ").expect("a name").1.split(' ');
    let times = fields.skip(11).take(2);
    times
        .map(|time| time.parse::<u64>().expect("a number"))
        .sum()
}

/// Bytes of memory that a process has, shared ones too.
pub(super) fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    kilobytes(&status, "VmRSS:").expect("it has memory")
}

/// Bytes of memory that a process has, with its part of shared ones.
fn shared_memory(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    kilobytes(&rollup, "Pss:")
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(number * 1024)
}
