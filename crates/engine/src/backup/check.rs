//! Whether a backup is still what was made.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Serialize;
use weighlock_store::{Store, Verified};

use super::files::{self, Thing, What};
use super::{FILES, FORMAT, Hashed, LIST, MANIFEST, Manifest, cannot, damaged};
use crate::error::Error;

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

/// Checks a backup: every hash, the database, and the audit's chain. With a
/// hash that was kept elsewhere, that it is the very one.
pub fn check_backup(dir: &Path, expected: Option<&str>) -> Result<Checked, Error> {
    let (manifest, sha256) = read_manifest(dir, expected)?;
    check_file(dir, "weighlock.db", &manifest.database)?;
    check_file(dir, "audit.head", &manifest.audit_head)?;
    check_file(dir, LIST, &manifest.list)?;
    let (mut count, mut bytes) = (0, 0);
    each(dir, |thing| {
        let from = thing
            .below(&dir.join(FILES))
            .ok_or_else(|| misplaced(&thing))?;
        if let What::File {
            bytes: size,
            sha256,
        } = thing.what
        {
            (count, bytes) = (count + 1, bytes + size);
            let listed = Hashed {
                bytes: size,
                sha256,
            };
            compare(&from, &thing.path, &listed)?;
        }
        Ok(())
    })?;
    if (count, bytes) != (manifest.files, manifest.bytes) {
        return Err(damaged(format!(
            "{LIST} has {count} files instead of {}",
            manifest.files
        )));
    }
    check_audit(dir, &manifest)?;
    Ok(Checked {
        made_at: manifest.made_at,
        version: manifest.version,
        entries: manifest.entries,
        head: manifest.head,
        files: manifest.files,
        bytes: manifest.bytes + manifest.database.bytes,
        sha256,
    })
}

pub(super) fn read_manifest(
    dir: &Path,
    expected: Option<&str>,
) -> Result<(Manifest, String), Error> {
    let path = dir.join(MANIFEST);
    let text = fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::invalid(
            "no_backup",
            format!("{} is no backup: it has no {MANIFEST}", dir.display()),
            "give the directory that `weighlock backup` named",
        ),
        _ => cannot(&path)(error),
    })?;
    let hashed = files::hash(&path).map_err(cannot(&path))?;
    if let Some(expected) = expected.filter(|hash| !hash.eq_ignore_ascii_case(&hashed.sha256)) {
        return Err(damaged(format!(
            "its hash is {}, and not {}",
            hashed.sha256,
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
    Ok((manifest, hashed.sha256))
}

/// Calls `deed` with everything that the list has.
pub(super) fn each(
    dir: &Path,
    mut deed: impl FnMut(Thing) -> Result<(), Error>,
) -> Result<(), Error> {
    let path = dir.join(LIST);
    let list = BufReader::new(File::open(&path).map_err(cannot(&path))?);
    for (number, line) in list.lines().enumerate() {
        let line = line.map_err(cannot(&path))?;
        let thing = serde_json::from_str(&line);
        deed(thing.map_err(|error| damaged(format!("{LIST}, line {}: {error}", number + 1)))?)?;
    }
    Ok(())
}

/// Checks the database in a directory, and that it is the one of a manifest.
pub(super) fn check_audit(dir: &Path, manifest: &Manifest) -> Result<(), Error> {
    let Verified {
        entries,
        head,
        fault,
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

pub(super) fn check_file(dir: &Path, name: &str, listed: &Hashed) -> Result<(), Error> {
    compare(&dir.join(name), name, listed)
}

fn compare(path: &Path, name: &str, listed: &Hashed) -> Result<(), Error> {
    match files::hash(path) {
        Ok(found) if found == *listed => Ok(()),
        Ok(_) => Err(damaged(format!("{name} was changed"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(damaged(format!("{name} is missing")))
        }
        Err(error) => Err(cannot(path)(error)),
    }
}

pub(super) fn misplaced(thing: &Thing) -> Error {
    damaged(format!(
        "{LIST} names `{}`, which belongs to no backup",
        thing.path
    ))
}
