//! A command, asked for and attended: what every tool that runs one does.

use std::time::Duration;

use weighlock_api::{CommandView, CutTo, NewCommand, Run, State};
use weighlock_screen::safe_text;

use crate::api::{self, Failure};
use crate::call::{Call, OnCancel};
use crate::say::to_agent;

/// Most commands end at once, and then one answer tells all.
pub(crate) const FIRST: Duration = Duration::from_millis(200);

impl Call {
    /// Runs a command as the user and in the place that the client's
    /// configuration names, and attends it for as long as the call may last.
    pub(crate) async fn run(
        &self,
        new: NewCommand,
        on_cancel: OnCancel,
    ) -> Result<CommandView, Failure> {
        self.check_agent().await?;
        let desk = &self.desk;
        let (background, cut) = (new.background, new.cut);
        let new = NewCommand {
            session_id: Some(desk.session.clone()),
            sandbox_id: desk.options.sandbox.clone(),
            agent: desk.options.agent.clone(),
            cwd: desk.cwd(new.cwd.filter(|cwd| !cwd.is_empty())),
            wait_ms: Some(FIRST.as_millis() as i64),
            attend: !background && on_cancel == OnCancel::Stop,
            ..new
        };
        let first: CommandView = match self.resumed().await? {
            Some(there) => there,
            None => api::post_once(desk.api(), "/commands".into(), &new).await?,
        };
        desk.learn(first.run.session_id.as_deref());
        if background {
            return Ok(first);
        }
        let was = Some(first.run.state).filter(|_| self.again.is_none());
        let view = self.attend(first, self.patience(None), on_cancel).await?;
        let view = self.ask_person(view, on_cancel).await?;
        match cut {
            // Only the first answer is cut as it was asked for.
            Some(cut) if was == Some(State::Running) || was != Some(view.run.state) => {
                let mut now = self.cut(&view.run, cut).await?;
                // What only this call knows is not on record.
                let known = now.run.detail.warnings.clone();
                let told = view.run.detail.warnings.into_iter();
                { &mut now.run.detail.warnings }.extend(told.filter(|one| !known.contains(one)));
                Ok(now)
            }
            _ => Ok(view),
        }
    }

    /// Returns a run with as much of its output as a reader wants.
    async fn cut(&self, run: &Run, cut: CutTo) -> Result<CommandView, Failure> {
        let path = format!("/commands/{}?cut={}", run.command_id, String::from(cut));
        api::get(self.desk.api(), path).await
    }

    /// Refuses a command that does not say what it is for, where it must.
    pub(crate) fn check_description(&self, description: Option<&str>) -> Result<(), Failure> {
        let says = description.is_some_and(|description| !description.trim().is_empty());
        match says || !self.desk.options.require_description {
            true => Ok(()),
            false => Err(Failure::new(
                "missing_description",
                "`description` is missing; nothing was run",
                "Say in a few words what the command is for.",
            )),
        }
    }
}

/// How a run is, for tools that only know of an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunStage {
    /// It goes on.
    Running,
    /// A person is asked, or work is paused.
    Pending,
    /// It has run.
    Ended,
    /// It was not allowed, or not any more wanted: it has not run, or what it
    /// did was thrown away.
    Refused,
}

impl RunStage {
    pub(crate) fn of(run: &Run) -> Self {
        match run.state {
            State::Running => Self::Running,
            State::Waiting | State::Held => Self::Pending,
            State::Succeeded | State::Failed | State::TimedOut | State::Killed | State::Lost => {
                Self::Ended
            }
            State::Blocked | State::Rejected | State::Expired | State::Withdrawn => Self::Refused,
        }
    }
}

/// What is to be known of a run beside its output: why it is as it is and what
/// to do about that, or what it changed; and what its requester is warned of.
pub(crate) fn notes(run: &Run) -> Vec<String> {
    let detail = &run.detail;
    let mut notes = vec![];
    match (&detail.reason, &detail.changes) {
        (Some(reason), _) => {
            notes.push(reason.text.clone());
            notes.extend(reason.remedy.as_deref().map(to_agent));
        }
        (None, Some(changes)) if changes.state != "none" => notes.push(changes.summary.clone()),
        (None, _) => {}
    }
    notes.extend(ended_with(run));
    notes.extend(detail.warnings.iter().cloned());
    notes
}

/// Names the processes that a command left running and that were ended with it:
/// the agent may think that they go on.
pub(crate) fn ended_with(run: &Run) -> Option<String> {
    let left = run.detail.left_running.iter();
    let ended: Vec<String> = { left.filter(|one| one.fate == "ended") }
        .map(|one| safe_text(&one.command))
        .collect();
    (!ended.is_empty()).then(|| {
        format!(
            "Ended with the command: {}. To keep it, start it in the background or in a terminal.",
            ended.join(", ")
        )
    })
}

/// Returns the reason of a refusal as a failure.
pub(crate) fn refusal(run: &Run) -> Failure {
    match &run.detail.reason {
        Some(reason) => {
            let remedy = to_agent(reason.remedy.as_deref().unwrap_or_default());
            Failure::new(&reason.code, &reason.text, remedy)
        }
        None => Failure::new("refused", "It was refused.", ""),
    }
}
