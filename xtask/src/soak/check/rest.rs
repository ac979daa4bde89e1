//! What the server and its helpers have when nothing is under way: against fresh
//! ones, and before and after many runs. Under load memory is whatever the load
//! asks for; at rest it is what was forgotten.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::left::{descriptors, memory};
use crate::Result;
use crate::soak::ledger::Ledger;
use crate::soak::world::{World, parent, processes};

/// Runs before the first look: whatever is filled once, is.
const WARM: usize = 100;

/// How long nothing has changed when it is at rest, and how often that is tried.
const STILL: Duration = Duration::from_millis(500);
const TRIES: usize = 40;

/// How much more private memory the server may have for each run, in bytes:
/// what it remembers of ended runs is bounded, and in the store.
const BYTES_EACH: usize = 1024;

/// And beside that, in KiB: pages that an allocator has not given back yet.
const SLACK_KIB: u64 = 2048;

/// How much more the nursery may have after that, and a keeper that waits, in
/// KiB: they do the same again and again, and keep nothing.
const HELPER_KIB: u64 = 64;

/// How many more descriptors a server may have: connections to the database that
/// are kept.
const CONNECTIONS: usize = 8;

/// How much more memory a server with a past may have than a fresh one, in KiB:
/// caches are full, and an allocator gives back what it likes.
const PAST_KIB: u64 = 96 * 1024;

/// The same for its helpers. Which pages are theirs alone depends on who was made
/// of them last, and buffers are as large as the largest order was.
const PAST_HELPER_KIB: u64 = 512;

/// All that there is at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rest {
    server_kib: u64,
    nursery_kib: u64,
    /// Of the largest of those who wait.
    keeper_kib: u64,
    /// Keepers that wait, and their first processes.
    waiting: usize,
    server_descriptors: usize,
    nursery_descriptors: usize,
}

/// A part of it, and what it is called.
type Part<T> = (&'static str, fn(&Rest) -> T);

/// Who has memory, in KiB.
const MEMORY: [Part<u64>; 3] = [
    ("the server", |all| all.server_kib),
    ("the nursery", |all| all.nursery_kib),
    ("a keeper", |all| all.keeper_kib),
];

/// What is counted.
const COUNTS: [Part<usize>; 3] = [
    ("processes wait", |all| all.waiting),
    ("descriptors of the server", |all| all.server_descriptors),
    ("descriptors of the nursery", |all| all.nursery_descriptors),
];

/// Compares what a server with a past has with what a fresh one has in its place.
pub(crate) fn check_past(world: &World, ledger: &Ledger) -> Result<()> {
    let past = rest(world)?;
    world.end_server(Signal::TERM);
    world.serve()?;
    let fresh = rest(world)?;
    println!(
        "{:>8}  descriptors at the end, {} when fresh; the nursery {} and {}",
        past.server_descriptors,
        fresh.server_descriptors,
        past.nursery_descriptors,
        fresh.nursery_descriptors
    );
    past.hold_against(&fresh, &Rest::more(PAST_KIB, PAST_HELPER_KIB), ledger);
    Ok(())
}

/// Lets so many commands run, one after the other, and compares.
pub(crate) fn check_growth(world: &World, ledger: &Ledger, runs: usize) -> Result<()> {
    run(world, WARM)?;
    let before = rest(world)?;
    run(world, runs)?;
    let after = rest(world)?;
    println!(
        "{:>8}  KiB of memory at rest after {runs} runs, {} before; the nursery {} and {}, a \
         keeper {} and {}",
        after.server_kib,
        before.server_kib,
        after.nursery_kib,
        before.nursery_kib,
        after.keeper_kib,
        before.keeper_kib,
    );
    let server_kib = SLACK_KIB + (runs * BYTES_EACH / 1024) as u64;
    after.hold_against(&before, &Rest::more(server_kib, HELPER_KIB), ledger);
    Ok(())
}

impl Rest {
    /// What may have been added, if the server and its helpers may have so much.
    fn more(server_kib: u64, helper_kib: u64) -> Self {
        Self {
            server_kib,
            nursery_kib: helper_kib,
            keeper_kib: helper_kib,
            waiting: 0,
            server_descriptors: CONNECTIONS,
            nursery_descriptors: 0,
        }
    }

    /// Each may be so much more than it was, and no more.
    fn hold_against(&self, then: &Self, more: &Self, ledger: &Ledger) {
        for (who, kib) in MEMORY {
            let (has, had) = (kib(self), kib(then));
            if has > had + kib(more) {
                ledger.fault(format!(
                    "{who} has {has} KiB at rest, and should have {had}"
                ));
            }
        }
        for (what, count) in COUNTS {
            let (has, had) = (count(self), count(then));
            if has > had + count(more) {
                ledger.fault(format!("{has} {what} at rest, and should be {had}"));
            }
        }
    }
}

fn run(world: &World, runs: usize) -> Result<()> {
    let owner = world.owner();
    for _ in 0..runs {
        let done = owner.post("/commands", &json!({ "command": "true" }));
        let done = done.only(200).ok_or("nothing runs in a calm server")?;
        if done["state"] != "succeeded" {
            return Err(format!("`true` did not succeed in a calm server: {done}").into());
        }
    }
    Ok(())
}

/// Waits until all who are ahead of need are there, and nothing moves.
fn rest(world: &World) -> Result<Rest> {
    let mut last = None;
    for _ in 0..TRIES {
        let now = look(world);
        // Memory of a waiting server may still be given back; who is there may not.
        let still = |one: Rest| (one.waiting, one.server_descriptors, one.nursery_descriptors);
        if let (Some(now), Some(before)) = (now, last)
            && still(now) == still(before)
            && now.server_kib.abs_diff(before.server_kib) < SLACK_KIB / 8
        {
            return Ok(now);
        }
        last = now;
        std::thread::sleep(STILL);
    }
    Err(format!("the server does not come to rest: {last:?}").into())
}

fn look(world: &World) -> Option<Rest> {
    let server = world.server_pid()?;
    let below = |of: u32| -> Vec<u32> {
        let all = processes().filter(|&pid| parent(pid) == Some(of));
        all.collect()
    };
    let [nursery] = below(server)[..] else {
        return None;
    };
    let keepers = below(nursery);
    let inits: usize = keepers.iter().map(|&keeper| below(keeper).len()).sum();
    Some(Rest {
        server_kib: memory(server),
        nursery_kib: memory(nursery),
        keeper_kib: { keepers.iter() }.map(|&keeper| memory(keeper)).max()?,
        waiting: keepers.len() + inits,
        server_descriptors: descriptors(server),
        nursery_descriptors: descriptors(nursery),
    })
}
