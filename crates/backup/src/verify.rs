//! Whether a backup is still what was made.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};
use weighlock_store::{Store, Verified};

use super::damaged;
use super::files::{self, What};
use super::list::{self, Kind, Named};
use super::tree::Tree;
use super::{DATABASE, FILES, FORMAT, HEAD, Hashed, LIST, MANIFEST, Manifest, SETTINGS};
use crate::error::Error;
use crate::people::hex;

/// The largest manifest. It has a line for each rule file.
const MANIFEST_BYTES: u64 = 1 << 20;

/// A backup that is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// When it was made.
    pub made_at: String,
    /// The version that made it.
    pub version: String,
    /// Entries of the audit, all of them right.
    pub entries: u64,
    /// The hash of the last of them.
    pub head: String,
    /// Files beside the database.
    pub files: u64,
    /// How large all of it is.
    pub bytes: u64,
    /// Names all of it.
    pub sha256: String,
}

/// Checks a backup: every hash, that there is nothing else, the database, and
/// the audit's chain. With a hash that was kept elsewhere, that it is the very
/// one.
pub fn check_backup(dir: &Path, expected: Option<&str>) -> Result<Checked, Error> {
    let from = open_backup(dir)?;
    let (manifest, sha256) = read_manifest(&from, expected)?;
    compare(&from, DATABASE, &manifest.database)?;
    compare(&from, HEAD, &manifest.audit_head)?;
    for (name, listed) in &manifest.settings {
        compare(&from, &format!("{SETTINGS}/{name}"), listed)?;
    }
    let (mut count, mut bytes) = (0, Some(0));
    let named = list::each(&from, &manifest.list, |thing| {
        if let What::File {
            bytes: size,
            sha256,
        } = thing.what
        {
            count += 1;
            bytes = bytes.and_then(|bytes: u64| bytes.checked_add(size));
            let listed = Hashed {
                bytes: size,
                sha256,
            };
            compare(&from, &format!("{FILES}/{}", thing.path), &listed)?;
        }
        Ok(())
    })?;
    if (count, bytes) != (manifest.files, Some(manifest.bytes)) {
        return Err(damaged(format!(
            "{LIST} has {count} files instead of {}",
            manifest.files
        )));
    }
    // Before SQLite looks: it would use a journal that lies beside.
    check_nothing_else(&from, &manifest, &named)?;
    check_audit(dir, &manifest)?;
    Ok(Checked {
        made_at: manifest.made_at,
        version: manifest.version,
        entries: manifest.entries,
        head: manifest.head,
        files: manifest.files,
        bytes: manifest.bytes.saturating_add(manifest.database.bytes),
        sha256,
    })
}

pub(super) fn open_backup(dir: &Path) -> Result<Tree, Error> {
    Tree::open(dir).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => no_backup(dir),
        _ => Error::file(dir)(error),
    })
}

pub(super) fn read_manifest(
    from: &Tree,
    expected: Option<&str>,
) -> Result<(Manifest, String), Error> {
    let path = from.path(MANIFEST);
    let file = match from.read(MANIFEST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(no_backup(from.root()));
        }
        _ => open(from, MANIFEST)?,
    };
    let mut text = vec![];
    let read = file.take(MANIFEST_BYTES).read_to_end(&mut text);
    read.map_err(Error::file(&path))?;
    let sha256 = hex(&Sha256::digest(&text));
    if let Some(expected) = expected.filter(|hash| !hash.eq_ignore_ascii_case(&sha256)) {
        return Err(damaged(format!(
            "its hash is {sha256}, and not {}",
            crate::error::brief(expected)
        )));
    }
    #[derive(serde::Deserialize)]
    struct Form {
        format: u32,
    }
    match serde_json::from_slice::<Form>(&text) {
        Ok(form) if form.format > FORMAT => {
            return Err(Error::invalid(
                "backup_newer",
                "the backup was made by a newer version; nothing was done".into(),
                "use the newer version of weighlock",
            ));
        }
        _ => {}
    }
    let manifest = serde_json::from_slice(&text);
    let manifest = manifest.map_err(|error| damaged(format!("{MANIFEST}: {error}")))?;
    Ok((manifest, sha256))
}

/// Checks the database in a directory, and that it is the one of a manifest.
pub(super) fn check_audit(dir: &Path, manifest: &Manifest) -> Result<(), Error> {
    let Verified {
        entries,
        head,
        fault,
        ..
    } = Store::check_copy(dir)?;
    if let Some(fault) = fault {
        return Err(damaged(format!(
            "audit entry {}: {}",
            fault.seq, fault.what
        )));
    }
    match (entries, &head) == (manifest.entries, &manifest.head) {
        true => Ok(()),
        false => Err(damaged(format!(
            "the audit ends with entry {entries}, and not with {}",
            manifest.entries
        ))),
    }
}

/// Opens a file of a backup.
pub(super) fn open(from: &Tree, name: &str) -> Result<File, Error> {
    from.read(name).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => damaged(format!("{name} is missing")),
        io::ErrorKind::InvalidData => damaged(format!("{name} is no file")),
        _ => Error::file(&from.path(name))(error),
    })
}

/// Reads no more than the manifest promises: what is longer was changed.
fn compare(from: &Tree, name: &str, listed: &Hashed) -> Result<(), Error> {
    let file = open(from, name)?.take(listed.bytes.saturating_add(1));
    let found = files::pump((&from.path(name), file), (Path::new(""), io::sink()))?;
    match found == *listed {
        true => Ok(()),
        false => Err(damaged(format!("{name} was changed"))),
    }
}

/// The hash of the manifest names all of a backup: there is nothing that it
/// does not speak of.
fn check_nothing_else(from: &Tree, manifest: &Manifest, named: &Named) -> Result<(), Error> {
    let mut dirs = vec![PathBuf::new()];
    while let Some(dir) = dirs.pop() {
        let names = from.names(&dir).map_err(Error::file(&from.path(&dir)))?;
        for (name, is_dir) in names {
            let path = dir.join(name);
            if !is_known(&path, is_dir, manifest, named) {
                let path = crate::error::brief(&path.to_string_lossy());
                return Err(damaged(format!("{path} was added")));
            }
            if is_dir {
                dirs.push(path);
            }
        }
    }
    Ok(())
}

fn is_known(path: &Path, is_dir: bool, manifest: &Manifest, named: &Named) -> bool {
    let mut parts = path.iter();
    let top = parts.next().and_then(|top| top.to_str());
    let below = parts.as_path();
    match (top, below == Path::new("")) {
        (Some(FILES | SETTINGS), true) => is_dir,
        (Some(MANIFEST | DATABASE | HEAD | LIST), true) => !is_dir,
        (Some(FILES), false) => {
            named.kind(below) == Some(if is_dir { Kind::Dir } else { Kind::File })
        }
        (Some(SETTINGS), false) => {
            { below.to_str() }.is_some_and(|name| !is_dir && manifest.settings.contains_key(name))
        }
        _ => false,
    }
}

fn no_backup(dir: &Path) -> Error {
    Error::invalid(
        "no_backup",
        format!("{} is no backup: it has no {MANIFEST}", dir.display()),
        "give the directory that `weighlock backup` named",
    )
}
