//! Finding runs again: by what people type, by id, and as lists.

use weighlock_store::{Count, Filter};

use super::Runs;
use super::tasks::run_of_task;
use crate::error::{Error, brief};
use crate::principal::Principal;
use crate::view::Run;
use crate::view::RunRecord;
use crate::view::count_output;

impl Runs {
    /// Finds a run by its id, or by an unambiguous beginning of its short id.
    /// What somebody may not see is not there.
    pub fn find(&self, id: &str, who: &Principal) -> Result<Run, Error> {
        let id = &*run_of_task(id);
        // The whole name of a terminal says more than how an id begins.
        if let Some(run) = self.terminal_called(id, who)? {
            return Ok(self.freshen(run));
        }
        let mut found = match id.strip_prefix("r_") {
            // Every id begins like that.
            Some("") => vec![],
            _ => self.core.store.commands().named(id)?,
        };
        found.retain(|command| who.sees(&command.requested_by, command.sandbox.as_deref()));
        match (found.pop(), found.pop()) {
            (None, _) => Err(Error::NoSuchRun { id: brief(id) }),
            (Some(_), Some(_)) => Err(Error::Ambiguous { id: brief(id) }),
            (Some(command), None) => Ok(self.freshen(Run::from_command(command))),
        }
    }

    /// Finds a run by its whole id, for ourselves.
    pub(crate) fn recall(&self, id: &str) -> Result<Run, Error> {
        let found = self.core.store.commands().named(id)?.pop();
        let found = found.ok_or_else(|| Error::NoSuchRun { id: id.into() })?;
        Ok(self.freshen(Run::from_command(found)))
    }

    /// Lists runs that somebody may see, newest first.
    pub fn list(&self, filter: Filter, who: &Principal) -> Result<Vec<Run>, Error> {
        let found = self.core.list_visible(filter, who)?.into_iter();
        let runs = found.map(|command| self.freshen(Run::from_command(command)));
        let mut runs: Vec<_> = runs.collect();
        self.compare_with_audit(&mut runs)?;
        Ok(runs)
    }

    /// Finds a run as [`Runs::find`] does, and compares it with the audit.
    pub fn find_checked(&self, id: &str, who: &Principal) -> Result<Run, Error> {
        let mut run = self.find(id, who)?;
        self.compare_with_audit(std::slice::from_mut(&mut run))?;
        Ok(run)
    }

    /// Marks the runs that are not what the audit says of them.
    fn compare_with_audit(&self, runs: &mut [Run]) -> Result<(), Error> {
        let ids: Vec<_> = runs.iter().map(|run| run.command_id.as_str()).collect();
        let altered = self.core.store.audit().altered(&ids)?;
        for run in runs {
            run.altered = altered.contains(&run.command_id);
        }
        Ok(())
    }

    /// Counts runs that somebody may see, up to the filter's limit.
    pub fn count(&self, filter: Filter, who: &Principal) -> Result<Count, Error> {
        Ok(self.core.store.commands().count(&Filter {
            visible: who.visible(),
            ..filter
        })?)
    }

    /// Adds what the store does not have while a run is under way.
    pub(crate) fn freshen(&self, mut run: Run) -> Run {
        if let Some(live) = self.lives.get(&run.command_id) {
            count_output(&mut run.detail.output, &live.job.status().output);
        }
        if let Some(why) = self.queued(&run) {
            run.started_at = None;
            run.detail.reason = Some(why);
        }
        run
    }
}
