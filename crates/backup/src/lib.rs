//! Makes, verifies and restores backups of a state directory.
//!
//! A backup is a directory: a copy of the database, the files beside it that
//! the copy refers to, and a manifest with a hash of each. An [`Archiver`]
//! makes one while the server works; [`verify_backup`] and [`Restore`] read one
//! and trust nothing in it. Making and restoring are atomic: a kill at any
//! moment leaves all or nothing.
//!
//! Callers check who may do this, and hold the lock of the state directory.

#![warn(missing_docs)]

mod archiver;
mod backup_dir;
mod copier;
mod destination;
mod digest;
mod entry;
mod error;
mod file_list;
mod manifest;
mod partial;
mod restore;
mod root_dir;
mod verify;

pub use archiver::{Archiver, BackupView, FilesHeld};
pub use destination::Destination;
pub use error::Error;
pub use restore::{Restore, RestoreReport, finish_restore};
pub use verify::{VerifiedBackup, verify_backup};
