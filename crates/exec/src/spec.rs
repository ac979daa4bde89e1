//! The description of a run that the server sends to its keeper.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weighlock_confine::{Profile, Size};

/// Everything about one run that is not the command itself; the command comes
/// from the permit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The run's id.
    pub run: String,
    /// The run's own directory, which exists and is empty.
    pub dir: PathBuf,
    /// What reads the command.
    pub shell: Shell,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// What the command reads.
    pub stdin: Stdin,
    /// The walls around it.
    pub profile: Profile,
    /// Its clocks, and how much of its output is kept.
    pub limits: Limits,
    /// A shell that is started in the command's place, and is the same but
    /// tells where it is; where there is room for what it reads first.
    pub startup: Option<Startup>,
    /// What its output does not show.
    pub hidden: Hidden,
    /// A file that its output is also written to.
    pub output_file: Option<PathBuf>,
}

/// Values that are somebody's secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hidden {
    /// As they are.
    pub values: Vec<String>,
    /// Also where they come in pieces. Not for a command that was not given
    /// them: it could tell by what is hidden how they begin.
    pub in_pieces: bool,
}

/// Without what nobody else may know.
impl fmt::Debug for Hidden {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.values.len();
        write!(formatter, "Hidden({count}, in pieces: {})", self.in_pieces)
    }
}

/// How a shell is started that tells where it is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Startup {
    /// The program and its words.
    pub argv: Vec<String>,
    /// Variables to add to the environment.
    pub env: Vec<(String, String)>,
    /// What it reads first, and where that is inside: in a directory of the
    /// run's own.
    pub path: PathBuf,
    /// What that says. Nobody else may know.
    pub text: String,
}

/// Without what nobody else may know.
impl fmt::Debug for Startup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Startup");
        shown.field("argv", &self.argv).finish_non_exhaustive()
    }
}

/// The program that interprets the command's text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shell {
    /// `/bin/sh`.
    #[default]
    Sh,
    /// `/bin/bash`.
    Bash,
}

/// What is at the other end of a command's standard input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// Nothing: reading ends at once.
    #[default]
    Null,
    /// A file that was written before: what is known at the start does not
    /// depend on anyone who would have to hand it over.
    File,
    /// A pipe that the job feeds.
    Pipe,
    /// A terminal, which is also what it writes to.
    Terminal(Size),
}

/// The name of the input's file in a run's directory.
pub(crate) const INPUT: &str = "stdin";

/// Writes what a command with [`Stdin::File`] will read.
pub fn write_input(dir: &Path, input: &[u8]) -> io::Result<()> {
    std::fs::write(dir.join(INPUT), input)
}

/// A run's clocks, and the bound of its output. All times are monotonic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// After this the run is ended.
    pub hard: Duration,
    /// After this time without output the run is ended.
    pub idle: Option<Duration>,
    /// How long what the shell left running may go on; `None` ends it.
    pub keep: Option<Duration>,
    /// Bytes of output kept on disk: the beginning and the newest end.
    pub output_bytes: u64,
}

impl Shell {
    /// Returns what it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sh => "sh",
            Self::Bash => "bash",
        }
    }

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Sh => "/bin/sh",
            Self::Bash => "/bin/bash",
        }
    }
}
