//! Ready sets of manners: how long a command may take and how much of its
//! output a reader gets.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Which tool's manners apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Our own.
    #[default]
    Weighlock,
    /// `ExecuteCommand`: one fixed limit.
    Blacklist,
    /// `terminal`: short limits, the beginning of the output.
    MultiUser,
    /// `run_command`: the end of each stream.
    Agents,
    /// `Bash`: both ends of each stream.
    Bash,
}

/// How long a command may take when nothing is asked, and at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The limit of a request that names none.
    pub default: Duration,
    /// What a longer request is clamped to.
    pub max: Duration,
}

/// What a reader gets of long output, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// The beginning of both streams joined.
    Head(usize),
    /// The end of each stream.
    Tail(usize),
    /// Both ends of each stream.
    Ends(usize),
}

impl Preset {
    /// Returns the time limits.
    pub fn times(self) -> Times {
        let seconds = |default, max| Times {
            default: Duration::from_secs(default),
            max: Duration::from_secs(max),
        };
        match self {
            // Long enough for a night's build; a lower roof is a person's choice.
            Self::Weighlock => seconds(120, 24 * 3600),
            Self::Blacklist => seconds(60, 60),
            Self::MultiUser => seconds(20, 300),
            Self::Agents | Self::Bash => seconds(120, 600),
        }
    }

    /// Returns how long output is cut for the reader.
    pub fn cut(self) -> Cut {
        match self {
            Self::Weighlock | Self::Blacklist | Self::Bash => Cut::Ends(30_000),
            Self::MultiUser => Cut::Head(5_000),
            Self::Agents => Cut::Tail(50_000),
        }
    }
}
