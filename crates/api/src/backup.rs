//! Backups.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A backup that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackupView {
    /// The directory of the backup.
    pub directory: String,
    /// When it was made.
    pub made_at: String,
    /// The number of audit entries in it.
    pub entries: u64,
    /// The number of files in it, beside the database.
    pub files: u64,
    /// The size of everything in it.
    pub bytes: u64,
    /// Undecided changes, which it does not include.
    pub undecided: u64,
    /// Identifies the backup: keep it elsewhere, and pass it to `verify` and
    /// `restore`.
    pub sha256: String,
}

/// Where to write a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBackup {
    /// A new or empty directory on the server's machine; only the server's owner
    /// or root may give one, over the Unix socket. Default: a directory in the
    /// state directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
}
