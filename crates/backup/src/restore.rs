//! Restores a backup into an empty state directory, all of it or nothing.
//!
//! Everything is written to a directory inside the state directory and checked
//! there. Renaming that directory is the commit point: a kill before it leaves
//! nothing, and after a kill behind it [`finish_restore`] does the rest at the
//! next start.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};
use weighlock_store::{Clock, Durability, Entry, Store, Unfinished};

use crate::backup_dir::BackupDir;
use crate::digest::FileDigest;
use crate::entry::{ArchiveEntry, EntryContent, decode_target};
use crate::error::Error;
use crate::file_list::for_each;
use crate::manifest::{DATABASE, FILES, HEAD, Manifest};
use crate::partial::sync;
use crate::root_dir::RootDir;
use crate::verify::{VerifiedBackup, check_audit, verify_backup};

/// The directory that a restore fills.
const INCOMPLETE: &str = "restoring";

/// The same directory after the commit point.
const COMPLETE: &str = "restored";

/// What a state directory may contain and still be empty: its lock, and what a
/// restore left that was killed.
const IGNORED: [&str; 2] = ["lock", INCOMPLETE];

/// A restore that is checked and not begun.
pub struct Restore {
    from: PathBuf,
    state_dir: PathBuf,
    backup: VerifiedBackup,
}

/// What a restore did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// The backup.
    pub backup: VerifiedBackup,
    /// Runs that were active when the backup was made; they are lost.
    pub lost: u64,
    /// Runs that waited then; they are withdrawn.
    pub withdrawn: u64,
    /// Undecided changes, which the backup did not include.
    pub discarded: u64,
}

impl Restore {
    /// Checks that the state directory is empty and the backup intact, and is
    /// the expected one if its hash is given.
    pub fn prepare(from: &Path, state_dir: &Path, expected: Option<&str>) -> Result<Self, Error> {
        check_empty(state_dir)?;
        Ok(Self {
            from: from.to_owned(),
            state_dir: state_dir.to_owned(),
            backup: verify_backup(from, expected)?,
        })
    }

    /// Returns the backup that will be restored.
    pub fn backup(&self) -> &VerifiedBackup {
        &self.backup
    }

    /// Restores the backup and records that `by` did. Each run that was
    /// unfinished gets `reason`. The caller holds the lock of the state
    /// directory.
    pub async fn run(self, by: &str, reason: Value) -> Result<RestoreReport, Error> {
        // A server may have used the directory before the lock was taken.
        check_empty(&self.state_dir)?;
        let incomplete = self.state_dir.join(INCOMPLETE);
        // From an earlier restore that was killed.
        let _ = fs::remove_dir_all(&incomplete);
        let state_dir = self.state_dir.clone();
        match self.fill(&incomplete, by, reason).await {
            Ok(report) => {
                fs::rename(&incomplete, state_dir.join(COMPLETE))
                    .map_err(Error::file(&incomplete))?;
                finish_restore(&state_dir)?;
                Ok(report)
            }
            Err(error) => {
                let _ = fs::remove_dir_all(&incomplete);
                Err(error)
            }
        }
    }

    async fn fill(self, to: &Path, by: &str, reason: Value) -> Result<RestoreReport, Error> {
        let source = BackupDir::open(&self.from)?;
        let (manifest, _) = source.manifest(Some(&self.backup.sha256))?;
        copy_all(&source, &manifest, to)?;
        check_audit(to, &manifest)?;
        let unfinished = settle_unfinished(to, &self.backup, by, reason).await?;
        sync(to).map_err(Error::file(to))?;
        Ok(RestoreReport {
            backup: self.backup,
            lost: unfinished.running,
            withdrawn: unfinished.waiting,
            discarded: unfinished.held,
        })
    }
}

/// Completes a restore that was killed after its commit point, and removes what
/// one left that was killed before. The caller holds the lock of the state
/// directory.
pub fn finish_restore(state_dir: &Path) -> Result<(), Error> {
    let _ = fs::remove_dir_all(state_dir.join(INCOMPLETE));
    let complete = state_dir.join(COMPLETE);
    let move_up = || {
        for entry in fs::read_dir(&complete)? {
            let entry = entry?;
            fs::rename(entry.path(), state_dir.join(entry.file_name()))?;
        }
        sync(state_dir)?;
        fs::remove_dir(&complete)
    };
    match move_up() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        moved => moved.map_err(Error::file(&complete)),
    }
}

fn check_empty(state_dir: &Path) -> Result<(), Error> {
    let found = match fs::read_dir(state_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(Error::file(state_dir))?,
    };
    let mut names = found.flatten().map(|entry| entry.file_name());
    match names.find(|name| !IGNORED.iter().any(|ignored| name == ignored)) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(
            "not_empty",
            format!(
                "{} is not empty: it has {}; nothing was restored",
                state_dir.display(),
                name.to_string_lossy()
            ),
            "stop the server and move the directory away first, or restore into another with \
             --state-dir DIR",
        )),
    }
}

/// Copies a backup's files. Each digest is checked once more while it is copied,
/// since the backup may have changed after it was verified.
fn copy_all(source: &BackupDir, manifest: &Manifest, to: &Path) -> Result<(), Error> {
    let create = fs::DirBuilder::new().mode(0o700).create(to);
    create.map_err(Error::file(to))?;
    let target = RootDir::open(to).map_err(Error::file(to))?;
    copy_file(source, DATABASE, &manifest.database, (&target, DATABASE))?;
    copy_file(source, HEAD, &manifest.audit_head, (&target, HEAD))?;
    let mut dirs = vec![];
    for_each(source, &manifest.list, |entry| {
        restore_entry(&entry, source, &target)?;
        if entry.content == EntryContent::Dir {
            dirs.push(entry);
        }
        Ok(())
    })?;
    // The deepest first: writing into a directory changes its time and needs
    // its mode.
    for entry in dirs.iter().rev() {
        let set = target.set_metadata(entry);
        set.map_err(Error::file(&target.path(&entry.path)))?;
    }
    Ok(())
}

fn restore_entry(entry: &ArchiveEntry, from: &BackupDir, to: &RootDir) -> Result<(), Error> {
    let path = Path::new(&entry.path);
    let failed = Error::file(&to.path(path));
    match &entry.content {
        EntryContent::Dir => return to.make_dir(path).map_err(failed),
        EntryContent::Link { target } => {
            let target = decode_target(target).ok_or(io::ErrorKind::InvalidData);
            let target = target.map_err(|kind| failed(kind.into()))?;
            to.link(path, &target).map_err(&failed)?;
        }
        EntryContent::File { bytes, sha256 } => {
            let digest = FileDigest {
                bytes: *bytes,
                sha256: sha256.clone(),
            };
            let name = format!("{FILES}/{}", entry.path);
            copy_file(from, &name, &digest, (to, &entry.path))?;
        }
    }
    to.set_metadata(entry).map_err(failed)
}

fn copy_file(
    from: &BackupDir,
    name: &str,
    digest: &FileDigest,
    (to, path): (&RootDir, &str),
) -> Result<(), Error> {
    let at = to.path(path);
    let target = to.create(path).map_err(Error::file(&at))?;
    from.copy_file(name, digest, (&at, target))
}

/// Ends what was unfinished when the backup was made, and records the restore.
async fn settle_unfinished(
    dir: &Path,
    backup: &VerifiedBackup,
    by: &str,
    reason: Value,
) -> Result<Unfinished, Error> {
    let store = Store::open(dir, Durability::Power)?;
    let (now, by, backup) = (Clock::system().micros(), by.to_owned(), json!(backup));
    let settled = store.settle_copy(now, reason, move |unfinished| Entry {
        time: now,
        kind: "store.restored",
        actor: by,
        detail: json!({ "backup": backup, "lost": unfinished.running,
                        "withdrawn": unfinished.waiting, "discarded": unfinished.held }),
        ..Entry::default()
    });
    let settled = settled.await?;
    store.close();
    Ok(settled)
}
