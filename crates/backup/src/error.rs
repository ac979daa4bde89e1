//! Why a backup could not be made, verified or restored.

use std::io;
use std::path::{Path, PathBuf};

/// Why a backup could not be made, verified or restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another backup is being made.
    #[error("a backup is already being made")]
    Running,
    /// The backup, its destination or the state directory cannot be used.
    #[error("{detail}")]
    Invalid {
        /// The stable error code.
        code: &'static str,
        /// What is wrong.
        detail: String,
        /// What to do.
        hint: &'static str,
    },
    /// The database could not be copied, checked or written.
    #[error(transparent)]
    Store(#[from] weighlock_store::Error),
    /// A file could not be used.
    #[error("cannot use {}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn invalid(code: &'static str, detail: String, hint: &'static str) -> Self {
        Self::Invalid { code, detail, hint }
    }

    /// The content of a backup does not match its manifest.
    pub(crate) fn damaged(what: String) -> Self {
        Self::invalid(
            "backup_damaged",
            format!("the backup is damaged: {what}"),
            "use another backup; this one was changed or truncated later",
        )
    }

    /// Adds the path to an error of the system.
    pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File {
            path: path.clone(),
            source,
        }
    }
}

/// Characters that an error quotes of a name from outside.
const QUOTED_CHARS: usize = 200;

/// Returns the beginning of a name from outside, which may be long.
pub(crate) fn quoted(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}
