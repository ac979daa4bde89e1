//! Why the walls of a run cannot be worked out.

use std::io;
use std::path::{Path, PathBuf};

/// Why the walls of a run cannot be worked out. Nothing has run then.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused access to a file.
    #[error("cannot use {}", .path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The working directory cannot be opened.
    #[error("cannot run in the working directory `{asked}`: it {why}; nothing was run")]
    BadDirectory {
        /// The directory as the request names it, shortened.
        asked: String,
        /// Completes "it …".
        why: String,
        /// The sandbox's directory.
        base: PathBuf,
    },
    /// The working directory is not in the sandbox's directory.
    #[error(
        "the working directory {} is outside {}, where commands run; nothing was run",
        .path.display(),
        .base.display()
    )]
    OutsideBase {
        /// The resolved working directory.
        path: PathBuf,
        /// The sandbox's directory.
        base: PathBuf,
    },
    /// The working directory is not in the principal's private directory. The
    /// message names no path: what is outside is not for its owner to know.
    #[error("Working directory is outside your sandbox.")]
    OutsidePrivate,
    /// The sandbox names a user who does not exist, or root.
    #[error(
        "sandbox `{sandbox}` is to run as `{user}`, who does not exist or is root; nothing was run"
    )]
    BadUser {
        /// The sandbox's name.
        sandbox: String,
        /// The user's name in its settings.
        user: String,
    },
    /// A pattern in `secret_files` cannot be used.
    #[error("{why}; nothing was run")]
    BadSecretFiles {
        /// What is wrong with which pattern, shortened.
        why: String,
    },
    /// A directory holds more than can be searched for secret files.
    #[error(
        "secret files in {} cannot all be found and kept from the command: it has more than \
         {most_directories} directories or {most_files} secret files, or one whose name is not \
         text, or it cannot be listed; nothing was run",
        .dir.display()
    )]
    TooManyFiles {
        /// The directory.
        dir: PathBuf,
        /// How many directories are searched.
        most_directories: usize,
        /// How many secret files are closed.
        most_files: usize,
    },
}

impl Error {
    /// Returns a function that adds the path to an error of the system.
    pub(crate) fn at_path(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File {
            path: path.clone(),
            source,
        }
    }
}

/// Characters that messages repeat of a text from outside.
const QUOTED_CHARS: usize = 200;

/// Returns the beginning of a text from outside, which may be long.
pub(crate) fn shorten_text(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}
