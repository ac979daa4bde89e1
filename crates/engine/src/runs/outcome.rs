//! What became of a request.

use std::time::Duration;

use weighlock_store::State;

use super::Runs;
use crate::error::Error;
use crate::view::Run;

/// What became of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The policy, a person or a clock said no, or it was taken back. It was
    /// not run, or only on a copy that was thrown away.
    Refused(Run),
    /// A person has been asked, or everything is paused. It was not run yet, or
    /// only on a copy, and then its changes are in the run's detail.
    Waiting(Run),
    /// It ended while the caller waited.
    Ended(Run),
    /// It goes on; the run's id is the handle.
    Running(Run),
}

impl Outcome {
    /// Returns the run that it is about.
    pub fn run(&self) -> &Run {
        match self {
            Self::Refused(run) | Self::Waiting(run) | Self::Ended(run) | Self::Running(run) => run,
        }
    }
}

impl From<Run> for Outcome {
    fn from(run: Run) -> Self {
        match run.state {
            State::Waiting | State::Held => Self::Waiting(run),
            State::Running => Self::Running(run),
            State::Blocked | State::Rejected | State::Expired | State::Withdrawn => {
                Self::Refused(run)
            }
            State::Succeeded | State::Failed | State::TimedOut | State::Killed | State::Lost => {
                Self::Ended(run)
            }
        }
    }
}

impl Runs {
    pub(crate) fn repeated(&self, id: &str, same: bool) -> Result<Run, Error> {
        match same {
            true => self.recall(id),
            false => Err(Error::KeyReused),
        }
    }

    /// Answers a repeated request with what became of the first.
    pub(crate) async fn again(
        &self,
        wait: Option<Duration>,
        id: &str,
        same: bool,
    ) -> Result<Outcome, Error> {
        let run = self.repeated(id, same)?;
        Ok(Outcome::from(self.wait(&run, wait).await?))
    }
}
