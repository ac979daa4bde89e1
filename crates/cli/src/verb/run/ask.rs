//! Asking for a run; and where a person has to allow it first, asking the
//! person: here, or wherever one looks at the inbox.

use std::time::Duration;

use tokio::time::Instant;
use weighlock_api::{CommandView, Me, NewCommand, Role, Run, State};

use super::show::Show;
use super::wait::{self, WaitOutcome};
use crate::client::{Client, Failure};
use crate::effect;
use crate::ourselves;
use crate::paths::Paths;
use crate::question::{self, Put, QuestionOutcome};
use crate::signals::Signals;
use crate::term::{self, say};

/// A request under way.
pub(super) struct Asking<'a> {
    pub(super) paths: &'a Paths,
    pub(super) signals: &'a mut Signals,
    pub(super) show: &'a mut Show,
    /// The caller does not wait until a person answers elsewhere.
    pub(super) at_once: bool,
    /// Nobody is asked here, either.
    pub(super) leaves: bool,
    /// How long they wait otherwise; for ever if not said.
    pub(super) patience: Option<Duration>,
}

impl Asking<'_> {
    /// Asks for a run. It has begun then, or never will, or it waits and
    /// nobody waits for it.
    pub(super) async fn request(
        &mut self,
        client: &mut Client,
        request: &NewCommand,
    ) -> Result<CommandView, Failure> {
        let deadline = self.patience.map(|patience| Instant::now() + patience);
        let view: CommandView = client.post("/commands", request).await?;
        let is_open = |run: &Run| {
            matches!(run.state, State::Waiting | State::Held) && !effect::is_asked_about(run)
        };
        // Somebody may have been quicker than the answer that they are asked.
        if view.run.approved_by.is_some() && !is_open(&view.run) {
            self.show.answered(&view.run);
        }
        self.answered(client, view, deadline, is_open).await
    }

    /// Asks about what a run has changed on a copy. That is applied then, or
    /// never will be, or it waits and nobody waits for it.
    pub(super) async fn changes(
        &mut self,
        client: &mut Client,
        view: CommandView,
        deadline: Option<Instant>,
    ) -> Result<CommandView, Failure> {
        // Somebody may have it tried once more.
        let open = |run: &Run| matches!(run.state, State::Waiting | State::Running);
        self.answered(client, view, deadline, open).await
    }

    /// Waits while a question is open, and asks the person at this terminal
    /// once.
    async fn answered(
        &mut self,
        client: &mut Client,
        mut view: CommandView,
        deadline: Option<Instant>,
        is_open: impl Fn(&Run) -> bool,
    ) -> Result<CommandView, Failure> {
        let (mut asked_here, mut said) = (false, None);
        while is_open(&view.run) {
            let waits = view.run.state == State::Waiting;
            if waits && !asked_here && !self.leaves && self.can_decide(client, &view).await? {
                asked_here = true;
                match self.ask_here(view).await? {
                    WaitOutcome::Answered(now) => view = now,
                    WaitOutcome::Left(now) => return Ok(now),
                }
                continue;
            }
            let changes = view.run.detail.changes.as_ref();
            let now = (view.run.state, changes.map(|changes| changes.hash.clone()));
            if view.run.state != State::Running && said.as_ref() != Some(&now) {
                self.show.waits(self.paths, &view, self.at_once).await?;
                said = Some(now);
            }
            if self.at_once {
                return Ok(view);
            }
            match wait::until_answered(self.paths, &view, self.signals, self.show, deadline).await?
            {
                WaitOutcome::Answered(now) => view = now,
                WaitOutcome::Left(now) => return Ok(now),
            }
            self.show.answered(&view.run);
        }
        Ok(view)
    }

    /// Returns whether the person at this terminal may decide and can be asked.
    async fn can_decide(&self, client: &mut Client, view: &CommandView) -> Result<bool, Failure> {
        if self.show.json || !term::is_there() || ourselves::may_decide().is_err() {
            return Ok(false);
        }
        let me: Me = client.get("/me").await?;
        let here = |names: &Vec<String>| view.run.sandbox_id.iter().any(|id| names.contains(id));
        Ok(me.role == Role::Administrator
            || me.role >= Role::Approver && me.sandboxes.as_ref().is_none_or(here))
    }

    async fn ask_here(&mut self, view: CommandView) -> Result<WaitOutcome, Failure> {
        let run = &view.run.command_id;
        let id = view.run.approval_id.clone().unwrap_or_default();
        let put = Put {
            own: true,
            ..Put::default()
        };
        match question::put(self.paths, self.signals, &id, put).await {
            Ok(QuestionOutcome::Answered(_)) => self.show.decided.set(true),
            Ok(QuestionOutcome::Over(approval)) => say!("{}", question::how_it_ended(&approval)),
            Ok(QuestionOutcome::Next | QuestionOutcome::Quit) => {
                let asked = question::fetch(self.paths, &id).await?;
                self.show.left.replace(Some(asked.short_id));
                return Ok(WaitOutcome::Left(wait::fetch(self.paths, run).await?));
            }
            Ok(QuestionOutcome::Interrupted) => {
                return Ok(WaitOutcome::Left(wait::withdraw(self.paths, run).await?));
            }
            // Somebody else may answer what we may not.
            Err(failure)
                if failure
                    .problem
                    .as_ref()
                    .is_some_and(|said| said.status == 403) =>
            {
                say!("{}", failure.to_string().trim_end());
            }
            Err(failure) => return Err(failure),
        }
        Ok(WaitOutcome::Answered(wait::fetch(self.paths, run).await?))
    }
}
