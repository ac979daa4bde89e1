//! The layout of a backup, and the manifest that describes one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::FileDigest;

/// The manifest's name. It is written last.
pub(crate) const MANIFEST: &str = "manifest.json";

/// The copy of the database.
pub(crate) const DATABASE: &str = "weighlock.db";

/// The newest hash of the audit's chain, beside the database.
pub(crate) const HEAD: &str = "audit.head";

/// Lists every file, one JSON object per line.
pub(crate) const LIST: &str = "files.jsonl";

/// The directory with files of the state directory.
pub(crate) const FILES: &str = "files";

/// The directory with settings and rules. They are for people to read; a
/// restore ignores them.
pub(crate) const SETTINGS: &str = "settings";

/// The version of this layout.
pub(crate) const FORMAT: u32 = 1;

/// Directories of the state directory that a backup includes. Recordings are
/// made from output on demand; layers with undecided changes, and homes of
/// sandboxes, belong to a workspace that is not in the backup.
pub(crate) const PARTS: [&str; 3] = ["runs", "undo", "tasks"];

/// What a backup includes from `undo/RUN`: enough to undo the run later.
pub(crate) const UNDO_NAMES: [&str; 3] = ["applied", "images", "undo.json"];

/// What a backup contains, with hashes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    /// The version of the program that made it.
    pub(crate) version: String,
    pub(crate) made_at: String,
    /// The number of audit entries, and the hash of the last.
    pub(crate) entries: u64,
    pub(crate) head: String,
    /// The files beside the manifest.
    pub(crate) database: FileDigest,
    pub(crate) audit_head: FileDigest,
    pub(crate) list: FileDigest,
    /// Settings and rules, by file name.
    pub(crate) settings: BTreeMap<String, FileDigest>,
    /// How many files the list has, and their total size.
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Undecided changes, which the backup does not include.
    pub(crate) undecided: u64,
}
