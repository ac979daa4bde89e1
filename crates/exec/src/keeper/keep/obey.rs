//! What a keeper does when its server says so.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Phase, RunningJob};
use crate::diary::{Happened, What};
use crate::keeper::terminal::PtyMaster;
use crate::protocol::{KeeperOrder, KeeperReport, Polite};
use crate::status::{self, Cause};

/// How many times output is read before the terminal's state is reported.
const DRAINED_AT_ONCE: usize = 16;

/// Signals that a terminal sends at a key, and drops what is unread: to
/// interrupt, to quit, to suspend.
const INTERRUPTING: [i32; 3] = [
    Signal::INT.as_raw(),
    Signal::QUIT.as_raw(),
    Signal::TSTP.as_raw(),
];

impl RunningJob {
    /// Lets a server in, or does what it says.
    pub(super) fn serve_line(&mut self) {
        if !self.line.is_connected() {
            if self.line.answer_door() {
                self.report();
                // Another server knows nothing of what the last one waited for.
                self.tree.stir();
            }
            return;
        }
        self.line.flush();
        for order in self.line.orders().unwrap_or_default() {
            self.obey(order);
        }
    }

    fn obey(&mut self, order: KeeperOrder) {
        match order {
            KeeperOrder::Stop {
                signal,
                grace_millis,
            } => self.stop(signal, Duration::from_millis(grace_millis)),
            KeeperOrder::Look => self.tree.wake(),
            KeeperOrder::Stdin(bytes) => {
                self.tree.stir();
                self.pipes.stdin.push(&bytes);
                self.hand_over_input();
            }
            // At a terminal a key says so, and others may follow.
            KeeperOrder::CloseStdin if self.pipes.terminal.is_some() => {}
            KeeperOrder::CloseStdin => self.pipes.stdin.close(),
            KeeperOrder::Resize(size) => {
                if let Some(terminal) = &self.pipes.terminal {
                    terminal.resize(size);
                    self.write_down(What::Resized(size));
                }
                self.line.say(&KeeperReport::Resized);
            }
            KeeperOrder::Note(mark) => self.write_down(What::Marked(mark)),
            KeeperOrder::Signal(number) => {
                // As if its key was pressed. A shell that is interrupted in
                // the middle of a line would take the rest for another.
                if INTERRUPTING.contains(&number) {
                    self.drop_unread();
                }
                if let Some(terminal) = &self.pipes.terminal {
                    terminal.signal(number);
                }
            }
            KeeperOrder::Interrupt(key) => {
                self.tree.stir();
                self.drop_unread();
                if let Some(terminal) = &self.pipes.terminal {
                    terminal.press(key);
                }
            }
            KeeperOrder::LookAtTerminal => self.look_at_terminal(),
            // A second start is a mistake of the server; the run is not harmed.
            KeeperOrder::Start { .. } | KeeperOrder::Go => {}
        }
    }

    /// Drops what was typed at the terminal and is unread.
    fn drop_unread(&mut self) {
        let dropped = self.pipes.stdin.forget();
        if let Some(terminal) = &self.pipes.terminal {
            terminal.drop_unread();
        }
        self.line.say(&KeeperReport::StdinTaken(dropped));
    }

    /// Tells how the terminal is, and how much output there was by then.
    fn look_at_terminal(&mut self) {
        let terminal = self.pipes.terminal.as_ref();
        let found = terminal.and_then(PtyMaster::look);
        // A flood is not waited for.
        let _ = (0..DRAINED_AT_ONCE).all(|_| self.take_output());
        let (waits, output) = (self.pipes.stdin.waits(), self.log.totals().bytes());
        let found = found.map(|found| status::TerminalState {
            unread: found.unread || waits,
            output,
            ..found
        });
        if self.unmentioned {
            self.mention_now();
        }
        self.line.say(&KeeperReport::Terminal(found));
    }

    fn write_down(&mut self, what: What) {
        let happened = Happened {
            micros: self.started.elapsed().as_micros() as u64,
            offset: self.log.totals().bytes(),
            what,
        };
        // A recording without it is better than none.
        let _ = self.diary.add(&self.spec.dir, &happened);
    }

    fn stop(&mut self, signal: Polite, grace: Duration) {
        let signal = match signal {
            Polite::Interrupt => Signal::INT,
            Polite::Terminate => Signal::TERM,
        };
        match self.phase {
            Phase::Killed => {}
            // A second request may only shorten the grace time.
            Phase::Ending { by_force_at, cause } => {
                self.phase = Phase::Ending {
                    by_force_at: by_force_at.min(Instant::now() + grace),
                    cause,
                };
            }
            _ => self.end(signal, grace, Cause::Stopped),
        }
    }
}
