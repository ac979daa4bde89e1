//! What can go wrong, in words that a person and a program can act on.

use std::path::PathBuf;

use weighlock_exec as exec;
use weighlock_store as store;

/// Why a request could not be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request makes no sense.
    #[error("{detail}")]
    Invalid {
        /// Stable word.
        code: &'static str,
        /// What is wrong with it.
        detail: String,
        /// What to do.
        hint: String,
    },
    /// No run has this id.
    #[error("no run `{id}`")]
    NoSuchRun {
        /// As it was given.
        id: String,
    },
    /// Several runs begin with this.
    #[error("`{id}` names more than one run")]
    Ambiguous {
        /// As it was given.
        id: String,
    },
    /// The run has ended; it takes neither input nor a stop.
    #[error("run {id} has ended")]
    Ended {
        /// The run.
        id: String,
    },
    /// No sandbox has this name.
    #[error("no sandbox `{name}`; nothing was run")]
    NoSuchSandbox {
        /// As it was given.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// No agent's profile has this name.
    #[error("no agent `{name}`; nothing was run")]
    NoSuchAgent {
        /// As it was given.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// No grant has this id.
    #[error("no grant `{id}`")]
    NoSuchGrant {
        /// As it was given.
        id: String,
    },
    /// Rules cannot be read.
    #[error("{}", said(.errors))]
    Rules {
        /// Each with its file, line and column.
        errors: Vec<weighlock_policy::LoadError>,
    },
    /// What a person answered is not what is asked now.
    #[error("the answer is to another question; nothing was run")]
    Stale,
    /// As many run as may.
    #[error("{running} commands are running, which is the limit")]
    TooMany {
        /// How many.
        running: usize,
    },
    /// The record could not be written or read.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The command could not be started.
    #[error(transparent)]
    Start(#[from] exec::Error),
    /// A file of ours could not be used.
    #[error("cannot use {}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another server has this state directory.
    #[error("another server uses {}", .dir.display())]
    Taken {
        /// The state directory.
        dir: PathBuf,
    },
}

/// What kind of answer an error is, whatever the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request is at fault.
    Invalid,
    /// There is no such thing.
    NotFound,
    /// It does not fit the state of things.
    Conflict,
    /// Try again later.
    Unavailable,
    /// There is no room.
    Full,
    /// We are at fault.
    Internal,
}

/// An error as a door tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// For the door.
    pub kind: Kind,
    /// Stable word.
    pub code: &'static str,
    /// One sentence: what failed and what did not happen.
    pub detail: String,
    /// What to do.
    pub hint: String,
}

impl Error {
    pub(crate) fn invalid(code: &'static str, detail: String, hint: impl Into<String>) -> Self {
        Self::Invalid {
            code,
            detail,
            hint: hint.into(),
        }
    }

    /// Returns the error as a door tells it.
    pub fn problem(&self) -> Problem {
        let detail = chain(self);
        let problem = |kind, code, hint: &str| Problem {
            kind,
            code,
            detail: detail.clone(),
            hint: hint.to_owned(),
        };
        match self {
            Self::Invalid { code, hint, .. } => problem(Kind::Invalid, code, hint),
            Self::NoSuchRun { .. } => problem(
                Kind::NotFound,
                "no_such_run",
                "`weighlock runs` lists the runs there are",
            ),
            Self::NoSuchSandbox { known, .. } => problem(
                Kind::NotFound,
                "no_such_sandbox",
                &format!("there are: {known}"),
            ),
            Self::Ambiguous { .. } => problem(
                Kind::Conflict,
                "ambiguous_id",
                "give more characters of the id",
            ),
            Self::Ended { .. } => problem(
                Kind::Conflict,
                "run_ended",
                "`weighlock show` tells how it ended",
            ),
            Self::NoSuchAgent { known, .. } => problem(
                Kind::NotFound,
                "no_such_agent",
                &format!("there are: {known}"),
            ),
            Self::NoSuchGrant { .. } => problem(
                Kind::NotFound,
                "no_such_grant",
                "`weighlock policy show` lists the grants there are",
            ),
            Self::Rules { errors } => problem(
                Kind::Invalid,
                "bad_rules",
                errors
                    .first()
                    .map(|error| error.hint.as_str())
                    .filter(|hint| !hint.is_empty())
                    .unwrap_or("docs/rules.md explains the language"),
            ),
            Self::Stale => problem(
                Kind::Conflict,
                "stale_approval",
                "look at the command again, and answer what is asked now",
            ),
            Self::TooMany { .. } => problem(
                Kind::Unavailable,
                "too_many_runs",
                "nothing was run; wait for one to end, or raise running_max",
            ),
            Self::Store(error) => store_problem(error, detail),
            Self::Start(exec::Error::Full) => problem(
                Kind::Full,
                "storage_full",
                "nothing was run; free some space",
            ),
            Self::Start(exec::Error::Walls(_)) => problem(
                Kind::Unavailable,
                "sandbox_unavailable",
                "nothing was run; `weighlock doctor` shows what this machine lacks, and `minimum` \
                 in the configuration accepts weaker walls",
            ),
            Self::Start(_) => problem(
                Kind::Internal,
                "cannot_start",
                "nothing was run; `weighlock doctor` shows what this machine lacks",
            ),
            Self::File { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                problem(
                    Kind::Full,
                    "storage_full",
                    "nothing was run; free some space",
                )
            }
            Self::File { .. } => problem(
                Kind::Internal,
                "file_error",
                "nothing was run; check the state directory and its permissions",
            ),
            Self::Taken { .. } => problem(
                Kind::Conflict,
                "already_running",
                "take its place with `weighlock serve --replace`, or give another --state-dir",
            ),
        }
    }
}

fn store_problem(error: &store::Error, detail: String) -> Problem {
    let (kind, code, hint) = match error {
        store::Error::Full => (
            Kind::Full,
            "storage_full",
            "what cannot be recorded is not done; free some space and try again",
        ),
        store::Error::Busy => (
            Kind::Unavailable,
            "store_busy",
            "nothing was run; another process holds the database, try again",
        ),
        store::Error::Corrupt { .. } => (
            Kind::Internal,
            "store_damaged",
            "restore a backup, or `weighlock serve --recover` to set it aside and begin anew",
        ),
        store::Error::Vanished { .. } => (
            Kind::Internal,
            "store_vanished",
            "restore it, or `weighlock serve --recover` to begin anew",
        ),
        store::Error::Newer { .. } => (
            Kind::Internal,
            "store_newer",
            "use the newer version of weighlock",
        ),
        store::Error::Missing { .. } => (
            Kind::NotFound,
            "no_store",
            "nothing was recorded yet; `weighlock run` makes it",
        ),
        _ => (
            Kind::Internal,
            "store_error",
            "nothing was run; check the state directory and its permissions",
        ),
    };
    Problem {
        kind,
        code,
        detail,
        hint: hint.to_owned(),
    }
}

fn said(errors: &[weighlock_policy::LoadError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The beginning of what somebody gave us, which may be long.
pub(crate) fn brief(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Joins an error with what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
