//! What happens to the server meanwhile.

use std::fs;
use std::time::Instant;

use rustix::process::Signal;

use super::dice::Dice;
use super::ledger::Ledger;
use super::world::{World, parent, processes, send};
use crate::Result;

/// Seconds from the true time that the wall clock jumps to.
const JUMPS: [i64; 6] = [-86_400, -3600, 0, 60, 3600, 86_400];

/// Whoever does all that.
pub(super) struct Chaos<'a> {
    pub(super) world: &'a World,
    pub(super) ledger: &'a Ledger,
    pub(super) dice: Dice,
}

impl Chaos<'_> {
    /// Goes on until then; servers are killed only if it may.
    pub(super) fn reign(&mut self, until: Instant, kills_servers: bool) {
        while Instant::now() < until {
            let pause = self.dice.millis(200, 1200);
            std::thread::sleep(pause.min(until.saturating_duration_since(Instant::now())));
            let what = self.dice.below(12);
            let done = match what {
                0..=4 if kills_servers => self.kill_server(),
                5 if kills_servers => self.replace_server(),
                0..=7 => self.kill_keepers(),
                8 => self.kill_nursery(),
                9 | 10 => self.fill_disk(kills_servers),
                _ => self.jump(),
            };
            if let Err(error) = done {
                self.ledger.fault(error.to_string());
                return;
            }
        }
    }

    fn kill_server(&mut self) -> Result<()> {
        self.world.end_server(Signal::KILL);
        self.ledger.count("servers killed");
        std::thread::sleep(self.dice.millis(0, 300));
        self.world.serve()
    }

    /// As an upgrade does: the old one ends in order.
    fn replace_server(&mut self) -> Result<()> {
        match self.dice.below(2) {
            0 => self.world.end_server(Signal::TERM),
            _ => std::thread::sleep(self.dice.millis(0, 50)),
        }
        self.ledger.count("servers replaced");
        self.world.serve()
    }

    fn kill_keepers(&mut self) -> Result<()> {
        for _ in 0..=self.dice.below(3) {
            if let Some(&keeper) = self.dice.one(&self.world.keepers()) {
                send(keeper, Signal::KILL);
                self.ledger.count("keepers killed");
            }
        }
        Ok(())
    }

    /// Kills whoever makes keepers for the server.
    fn kill_nursery(&mut self) -> Result<()> {
        let Some(server) = self.world.server_pid() else {
            return Ok(());
        };
        for pid in processes().filter(|&pid| parent(pid) == Some(server)) {
            send(pid, Signal::KILL);
            self.ledger.count("nurseries killed");
        }
        Ok(())
    }

    fn fill_disk(&mut self, kills_servers: bool) -> Result<()> {
        let filler = self.world.fill()?;
        self.ledger.count("disks filled");
        std::thread::sleep(self.dice.millis(100, 1500));
        let killed = kills_servers && self.dice.below(3) == 0;
        if killed {
            self.world.end_server(Signal::KILL);
            self.ledger.count("servers killed");
            self.ledger.count("servers killed on a full disk");
        }
        fs::remove_file(filler)?;
        if killed { self.world.serve() } else { Ok(()) }
    }

    fn jump(&mut self) -> Result<()> {
        if let Ok(clock) = &self.world.clock
            && let Some(&to) = self.dice.one(&JUMPS)
        {
            clock.jump_to(to)?;
            self.ledger.count("jumps of the wall clock");
        }
        Ok(())
    }
}
