//! Where a command is in its life.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The exact state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The policy said no.
    Blocked,
    /// A person said no.
    Rejected,
    /// A person has been asked.
    Waiting,
    /// All work, or its agent's, is paused.
    Held,
    /// Nobody answered in time.
    Expired,
    /// The requester took it back or left.
    Withdrawn,
    /// It runs.
    Running,
    /// It ended with exit code 0.
    Succeeded,
    /// It ended with another exit code, or could not be started.
    Failed,
    /// A time limit ended it.
    TimedOut,
    /// A signal ended it.
    Killed,
    /// Nobody knows how it ended; `reason` says why.
    Lost,
}

/// What lists tell of a state, for those who need no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It has not begun.
    Pending,
    /// It runs.
    Approved,
    /// It never ran.
    Rejected,
    /// It ended well.
    Executed,
    /// It ended otherwise.
    Failed,
}

const ALL: [State; 12] = [
    State::Blocked,
    State::Rejected,
    State::Waiting,
    State::Held,
    State::Expired,
    State::Withdrawn,
    State::Running,
    State::Succeeded,
    State::Failed,
    State::TimedOut,
    State::Killed,
    State::Lost,
];

impl State {
    /// Returns the coarse status that follows from the state.
    pub fn status(self) -> Status {
        match self {
            Self::Waiting | Self::Held => Status::Pending,
            Self::Running => Status::Approved,
            Self::Blocked | Self::Rejected | Self::Expired | Self::Withdrawn => Status::Rejected,
            Self::Succeeded => Status::Executed,
            Self::Failed | Self::TimedOut | Self::Killed | Self::Lost => Status::Failed,
        }
    }

    /// Returns the state's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Rejected => "rejected",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Killed => "killed",
            Self::Lost => "lost",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        ALL.into_iter().find(|state| state.word() == word)
    }
}

impl Status {
    /// Returns the status's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Executed => "executed",
            Self::Failed => "failed",
        }
    }

    /// Returns the status that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        [
            Self::Pending,
            Self::Approved,
            Self::Rejected,
            Self::Executed,
            Self::Failed,
        ]
        .into_iter()
        .find(|status| status.word() == word)
    }
}
