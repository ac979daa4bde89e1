//! Why changes were not applied.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::changes::Refusal;
use crate::conflict::Conflict;

/// What can go wrong with a commit. Unless it is stuck, nothing was applied.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Others changed the live tree meanwhile.
    #[error("{} files in the real directory changed meanwhile", .0.len())]
    Conflicts(Vec<Conflict>),
    /// The permit is for something else.
    #[error("the permit does not match the changes to apply")]
    OtherHash,
    /// Something among the changes must never be applied.
    #[error("{} of the changes may never be applied", .0.len())]
    Refused(Vec<Refusal>),
    /// There is no room for it.
    #[error("the disk is full")]
    Full,
    /// Something else could not be done.
    #[error("cannot {what} {}", .path.display())]
    Io {
        /// The deed.
        what: &'static str,
        /// Its object.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It could neither be finished nor rolled back. The journal stays, and
    /// [`recover`](crate::recover) tries again.
    #[error("it is neither applied nor rolled back: {why}")]
    Stuck {
        /// What stopped it first.
        why: String,
        /// Why it could not be rolled back.
        source: io::Error,
    },
}

impl From<crate::Error> for CommitError {
    fn from(error: crate::Error) -> Self {
        let (path, source) = match error {
            crate::Error::Read { path, source } => (path, source),
            other => ("the live tree".into(), io::Error::other(other)),
        };
        Self::Io {
            what: "look at",
            path,
            source,
        }
    }
}

impl CommitError {
    pub(crate) fn conflict(root: usize, path: &Path, why: &str) -> Self {
        Self::Conflicts(vec![Conflict {
            root,
            path: path.into(),
            why: why.into(),
        }])
    }
}

/// Says what was being done to what, for `map_err`.
pub(crate) fn cannot<E: Into<io::Error>>(
    what: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> CommitError {
    let path = path.to_owned();
    move |error| {
        let source = error.into();
        let code = source.raw_os_error().map(Errno::from_raw_os_error);
        match code {
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => CommitError::Full,
            _ => CommitError::Io { what, path, source },
        }
    }
}
