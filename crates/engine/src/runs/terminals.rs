//! Finding the runs that are terminals, and what waits for its turn there.

use serde::Deserialize;
use serde::de::IgnoredAny;
use weighlock_store::{Command, Filter, State};

use super::Runs;
use crate::error::{Error, brief};
use crate::mutex::lock;
use crate::principal::Principal;
use crate::view::RunRecord;
use crate::view::{Reason, Run};

/// How many of the newest runs are looked through for one that was closed.
const LOOKED_THROUGH: usize = 500;

impl Runs {
    /// Returns why a command that is to be typed at a terminal has not begun.
    pub(crate) fn queued(&self, run: &Run) -> Option<Reason> {
        let terminal = run.detail.in_terminal.as_ref();
        let terminal = terminal.filter(|_| run.state == State::Running)?;
        let live = self.lives.get(terminal)?;
        let waits = !lock(&live.typed).contains(&run.command_id);
        waits.then(|| {
            let text = "It waits for its turn: something else runs in the terminal, or somebody \
                        types there. Nothing of it was run yet.";
            Reason::new("queued", text).with_remedy("wait for it, or stop it")
        })
    }

    /// Finds a terminal by the id of its run, or by its name if only one of
    /// that name can be seen.
    pub fn find_terminal(&self, id: &str, who: &Principal) -> Result<Run, Error> {
        let sees = |run: &Run| who.sees(&run.requested_by, run.sandbox_id.as_deref());
        let mut found = self
            .lives
            .terminals(|run| run.command_id == id && sees(run));
        if let Some(run) = found.pop() {
            return Ok(run);
        }
        // A name counts before the beginning of any id.
        if let Some(run) = self.terminal_called(id, who)? {
            return Ok(run);
        }
        let none = || Error::NoSuchTerminal { name: brief(id) };
        let run = self.find(id, who).map_err(|error| match error {
            Error::NoSuchRun { .. } => none(),
            error => error,
        })?;
        match run.detail.terminal {
            Some(_) => Ok(run),
            None => Err(none()),
        }
    }

    /// Finds a terminal by its name: one that runs or waits, or else the last
    /// that was closed lately.
    pub(crate) fn terminal_called(
        &self,
        name: &str,
        who: &Principal,
    ) -> Result<Option<Run>, Error> {
        // No name begins like an id.
        if name.starts_with("r_") {
            return Ok(None);
        }
        let wanted = |run: &Run| {
            let terminal = run.detail.terminal.as_ref();
            terminal.is_some_and(|terminal| terminal.name == name)
                && who.sees(&run.requested_by, run.sandbox_id.as_deref())
        };
        let mut found = self.lives.terminals(wanted);
        if found.is_empty() {
            found = self.open_terminals()?;
            found.retain(wanted);
        }
        if found.is_empty() {
            let newest = self.core.store.commands().list(&Filter {
                limit: LOOKED_THROUGH,
                ..Filter::default()
            })?;
            let newest = newest.into_iter().filter(has_terminal);
            return Ok(newest.map(Run::from_command).find(wanted));
        }
        match (found.pop(), found.pop()) {
            (Some(_), Some(_)) => Err(Error::Ambiguous { id: brief(name) }),
            (found, _) => Ok(found),
        }
    }

    /// All that run, or wait for an answer so that they may: not those that
    /// have ended and whose changes wait for one.
    pub(crate) fn open_terminals(&self) -> Result<Vec<Run>, Error> {
        let open = self.core.store.commands().open()?.into_iter();
        let pending = self.core.store.pending().all()?.into_iter();
        let runs = open.chain(pending).filter(has_terminal);
        let is_open = |run: &Run| run.detail.changes.is_none();
        Ok(runs.map(Run::from_command).filter(is_open).collect())
    }
}

/// Whether a command has a terminal. Of many most have none, and need not be
/// read as a whole.
fn has_terminal(command: &Command) -> bool {
    #[derive(Deserialize)]
    struct Glance {
        terminal: Option<IgnoredAny>,
    }
    serde_json::from_str::<Glance>(&command.detail).is_ok_and(|seen| seen.terminal.is_some())
}
