//! Checks that a backup is exactly what was made.

use std::path::{Path, PathBuf};

use serde::Serialize;
use weighlock_store::{Store, Verified};

use crate::backup_dir::BackupDir;
use crate::digest::FileDigest;
use crate::entry::EntryContent;
use crate::error::{Error, quoted};
use crate::file_list::{ListedPaths, PathKind, for_each};
use crate::manifest::{DATABASE, FILES, HEAD, LIST, MANIFEST, Manifest, SETTINGS};

/// A backup that passed every check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifiedBackup {
    /// When it was made.
    pub made_at: String,
    /// The version of weighlock that made it.
    pub version: String,
    /// The number of audit entries.
    pub entries: u64,
    /// The hash of the last of them.
    pub head: String,
    /// The number of files beside the database.
    pub files: u64,
    /// The size of everything.
    pub bytes: u64,
    /// The hash of the manifest, which identifies the backup.
    pub sha256: String,
}

/// Checks every hash of a backup, that it has no other files, its database, and
/// the chain of its audit. With an expected hash, also that it is that backup.
pub fn verify_backup(dir: &Path, expected: Option<&str>) -> Result<VerifiedBackup, Error> {
    let backup = BackupDir::open(dir)?;
    let (manifest, sha256) = backup.manifest(expected)?;
    backup.check_file(DATABASE, &manifest.database)?;
    backup.check_file(HEAD, &manifest.audit_head)?;
    for (name, digest) in &manifest.settings {
        backup.check_file(&format!("{SETTINGS}/{name}"), digest)?;
    }
    let listed = check_listed_files(&backup, &manifest)?;
    // Before SQLite opens the database: it would apply a journal beside it.
    check_nothing_else(&backup, &manifest, &listed)?;
    check_audit(dir, &manifest)?;
    Ok(VerifiedBackup {
        made_at: manifest.made_at,
        version: manifest.version,
        entries: manifest.entries,
        head: manifest.head,
        files: manifest.files,
        bytes: manifest.bytes.saturating_add(manifest.database.bytes),
        sha256,
    })
}

fn check_listed_files(backup: &BackupDir, manifest: &Manifest) -> Result<ListedPaths, Error> {
    // The total is `None` past the largest number: a forged list can claim that.
    let (mut count, mut total) = (0, Some(0_u64));
    let listed = for_each(backup, &manifest.list, |entry| {
        if let EntryContent::File { bytes, sha256 } = entry.content {
            count += 1;
            total = total.and_then(|total| total.checked_add(bytes));
            let digest = FileDigest { bytes, sha256 };
            backup.check_file(&format!("{FILES}/{}", entry.path), &digest)?;
        }
        Ok(())
    })?;
    if (count, total) == (manifest.files, Some(manifest.bytes)) {
        Ok(listed)
    } else {
        Err(Error::damaged(format!(
            "{LIST} has {count} files instead of {}",
            manifest.files
        )))
    }
}

/// Checks the database in a directory, and that its audit ends as a manifest
/// says.
pub(crate) fn check_audit(dir: &Path, manifest: &Manifest) -> Result<(), Error> {
    let Verified {
        entries,
        head,
        fault,
        ..
    } = Store::check_copy(dir)?;
    if let Some(fault) = fault {
        return Err(Error::damaged(format!(
            "audit entry {}: {}",
            fault.seq, fault.what
        )));
    }
    if (entries, &head) == (manifest.entries, &manifest.head) {
        Ok(())
    } else {
        Err(Error::damaged(format!(
            "the audit ends with entry {entries}, and not with {}",
            manifest.entries
        )))
    }
}

/// Checks that the backup contains only what its manifest lists, so that the
/// manifest's hash stands for all of it.
fn check_nothing_else(
    backup: &BackupDir,
    manifest: &Manifest,
    listed: &ListedPaths,
) -> Result<(), Error> {
    let mut dirs = vec![PathBuf::new()];
    while let Some(dir) = dirs.pop() {
        for (name, is_dir) in backup.names(&dir)? {
            let path = dir.join(name);
            if !is_known(&path, is_dir, manifest, listed) {
                let path = quoted(&path.to_string_lossy());
                return Err(Error::damaged(format!("{path} was added")));
            }
            if is_dir {
                dirs.push(path);
            }
        }
    }
    Ok(())
}

fn is_known(path: &Path, is_dir: bool, manifest: &Manifest, listed: &ListedPaths) -> bool {
    let mut parts = path.iter();
    let top = parts.next().and_then(|top| top.to_str());
    let below = parts.as_path();
    match (top, below == Path::new("")) {
        (Some(FILES | SETTINGS), true) => is_dir,
        (Some(MANIFEST | DATABASE | HEAD | LIST), true) => !is_dir,
        (Some(FILES), false) => {
            let kind = if is_dir {
                PathKind::Dir
            } else {
                PathKind::File
            };
            listed.kind(below) == Some(kind)
        }
        (Some(SETTINGS), false) => {
            let is_listed = |name| manifest.settings.contains_key(name);
            !is_dir && below.to_str().is_some_and(is_listed)
        }
        _ => false,
    }
}
