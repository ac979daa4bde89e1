//! Backups of everything that is on record, and putting them back.
//!
//! A backup is a directory: the database, the files beside it that the
//! database speaks of, and a manifest with a hash of each. It is whole or not
//! there, and it is put back whole or not at all.

mod check;
mod files;
mod list;
mod make;
mod place;
mod restore;
mod tree;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::check::{Checked, check_backup};
pub(crate) use self::restore::finish as finish_restore;
pub use self::restore::{Restored, restore};
use crate::error::Error;

/// The manifest's name. It is written last.
const MANIFEST: &str = "manifest.json";

/// The database, and the head of its audit.
const DATABASE: &str = "weighlock.db";
const HEAD: &str = "audit.head";

/// Names every file, one in a line.
const LIST: &str = "files.jsonl";

/// Where the files of the state directory are.
const FILES: &str = "files";

/// Where settings and rules are. They are for people to look at: nothing is
/// put back from there.
const SETTINGS: &str = "settings";

/// Where backups go when nobody says: hidden from commands, as all of the
/// state directory is.
const OWN_DIR: &str = "backups";

/// The form of all that.
const FORMAT: u32 = 1;

/// What of the state directory a backup has, beside the database. Recordings
/// are made of output when they are asked for; copies that nobody has decided
/// about, and homes of sandboxes, belong to a tree that is not in here.
const PARTS: [&str; 3] = ["runs", "undo", "tasks"];

/// What is kept of what undoing a run needs.
const UNDO_NAMES: [&str; 3] = ["applied", "images", "undo.json"];

/// What a backup says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    /// The version of the program that made it.
    version: String,
    made_at: String,
    /// Entries of the audit, and the hash of the last.
    entries: u64,
    head: String,
    /// What is beside the manifest, with hashes.
    database: Hashed,
    audit_head: Hashed,
    list: Hashed,
    /// Settings and rules, by name.
    settings: BTreeMap<String, Hashed>,
    /// How many files the list has, and how large they are together.
    files: u64,
    bytes: u64,
    /// Undecided changes that are not in it.
    undecided: u64,
}

/// A file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hashed {
    bytes: u64,
    sha256: String,
}

/// A backup that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackupView {
    /// Where it is.
    pub directory: String,
    /// When it was made.
    pub made_at: String,
    /// Entries of the audit that it has.
    pub entries: u64,
    /// Files that it has beside the database.
    pub files: u64,
    /// How large all of it is.
    pub bytes: u64,
    /// Undecided changes, which are not in it.
    pub undecided: u64,
    /// Names all of it: keep it elsewhere, and give it to `verify` and `restore`.
    pub sha256: String,
}

fn damaged(what: String) -> Error {
    Error::invalid(
        "backup_damaged",
        format!("the backup is not what was made: {what}"),
        "take another backup; this one was changed or cut off since it was made",
    )
}
