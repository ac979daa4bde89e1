//! Putting a backup back: into an empty state directory, whole or not at all.
//!
//! Everything is put into a directory beside its place and checked there.
//! Giving that directory another name is the one step that decides: a kill
//! before it leaves nothing, and a kill after it is made up for by the next
//! server.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use serde::Serialize;
use serde_json::json;
use weighlock_store::{Clock, Durability, Entry, Store, Unfinished};

use super::check::{Checked, check_audit, check_backup, open, open_backup, read_manifest};
use super::files::{self, Thing, What};
use super::list;
use super::tree::Tree;
use super::{DATABASE, FILES, HEAD, Hashed, damaged};
use crate::engine::{make_private, take};
use crate::error::Error;
use crate::view::Reason;

/// Where a backup is put until all of it is there.
const COMING: &str = "restoring";

/// The same once it counts.
const THERE: &str = "restored";

/// What may be in a directory that is called empty.
const NOTHING: [&str; 2] = ["lock", COMING];

/// What was put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// The backup.
    pub backup: Checked,
    /// Runs that were under way when it was made; they are lost.
    pub lost: u64,
    /// Runs that waited then; they are withdrawn.
    pub withdrawn: u64,
    /// Undecided changes, which were not in it.
    pub discarded: u64,
}

/// Puts a backup into an empty state directory, once everything about it is
/// known to be right. `by` is who does so, for the record.
pub async fn restore(
    from: &Path,
    state_dir: &Path,
    expected: Option<&str>,
    by: &str,
) -> Result<Restored, Error> {
    check_empty(state_dir)?;
    let backup = check_backup(from, expected)?;
    make_private(state_dir)?;
    let _lock = take(state_dir)?;
    // A server may have come and gone meanwhile.
    check_empty(state_dir)?;
    // Of an earlier one that was killed.
    let coming = state_dir.join(COMING);
    let _ = fs::remove_dir_all(&coming);
    let put = put(from, &coming, backup, by).await;
    if put.is_err() {
        let _ = fs::remove_dir_all(&coming);
        return put;
    }
    fs::rename(&coming, state_dir.join(THERE)).map_err(Error::file(&coming))?;
    finish(state_dir)?;
    put
}

/// Goes on where a restore was killed after it had decided; and removes what
/// one left that had not. For whoever holds the lock.
pub(crate) fn finish(state_dir: &Path) -> Result<(), Error> {
    let _ = fs::remove_dir_all(state_dir.join(COMING));
    let there = state_dir.join(THERE);
    let moved = || {
        for entry in fs::read_dir(&there)? {
            let entry = entry?;
            fs::rename(entry.path(), state_dir.join(entry.file_name()))?;
        }
        files::sync(state_dir)?;
        fs::remove_dir(&there)
    };
    match moved() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        moved => moved.map_err(Error::file(&there)),
    }
}

fn check_empty(state_dir: &Path) -> Result<(), Error> {
    let found = match fs::read_dir(state_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(Error::file(state_dir))?,
    };
    let mut names = found.flatten().map(|entry| entry.file_name());
    match names.find(|name| !NOTHING.iter().any(|none| name == none)) {
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

async fn put(from: &Path, to: &Path, backup: Checked, by: &str) -> Result<Restored, Error> {
    let source = open_backup(from)?;
    let (manifest, _) = read_manifest(&source, Some(&backup.sha256))?;
    make_private(to)?;
    let target = Tree::open(to).map_err(Error::file(to))?;
    // What is written here is compared, and not what was read before.
    copy((&source, DATABASE), (&target, DATABASE), &manifest.database)?;
    copy((&source, HEAD), (&target, HEAD), &manifest.audit_head)?;
    let mut dirs = vec![];
    list::each(&source, &manifest.list, |thing| {
        put_thing(&thing, &source, &target)?;
        if thing.what == What::Dir {
            dirs.push(thing);
        }
        Ok(())
    })?;
    // The deepest first: what is put into a directory changes its time, and
    // needs its mode.
    for thing in dirs.iter().rev() {
        let dressed = target.dress(thing);
        dressed.map_err(Error::file(&target.path(&thing.path)))?;
    }
    check_audit(to, &manifest)?;
    let unfinished = settle(to, &backup, by).await?;
    files::sync(to).map_err(Error::file(to))?;
    Ok(Restored {
        backup,
        lost: unfinished.running,
        withdrawn: unfinished.waiting,
        discarded: unfinished.held,
    })
}

fn put_thing(thing: &Thing, from: &Tree, to: &Tree) -> Result<(), Error> {
    let path = Path::new(&thing.path);
    let made = match &thing.what {
        What::Dir => return to.make_dir(path).map_err(Error::file(&to.path(path))),
        What::Link { target } => {
            let target = files::unhex(target).ok_or(io::ErrorKind::InvalidData);
            target
                .map_err(io::Error::from)
                .and_then(|target| to.link(path, &target))
        }
        What::File { bytes, sha256 } => {
            let listed = Hashed {
                bytes: *bytes,
                sha256: sha256.clone(),
            };
            let source = format!("{FILES}/{}", thing.path);
            copy((from, &source), (to, &thing.path), &listed)?;
            Ok(())
        }
    };
    made.and_then(|()| to.dress(thing))
        .map_err(Error::file(&to.path(path)))
}

fn copy(
    (from, name): (&Tree, &str),
    (to, path): (&Tree, &str),
    listed: &Hashed,
) -> Result<(), Error> {
    let source = open(from, name)?.take(listed.bytes.saturating_add(1));
    let at = to.path(path);
    let target = to.create(path).map_err(Error::file(&at))?;
    match files::pump((&from.path(name), source), (&at, target))? == *listed {
        true => Ok(()),
        false => Err(damaged(format!("{name} was changed"))),
    }
}

/// Settles what was unfinished, and puts the restore itself on record.
async fn settle(dir: &Path, backup: &Checked, by: &str) -> Result<Unfinished, Error> {
    let store = Store::open(dir, Durability::Power)?;
    let clock = Clock::system();
    let reason = Reason::new(
        "restored",
        format!(
            "The record was restored from a backup of {}, when this had not ended. What became \
             of it since is not known here.",
            backup.made_at
        ),
    )
    .with_remedy("Check what it did before running it again.");
    let (now, by, told) = (clock.micros(), by.to_owned(), json!(backup));
    let because = serde_json::to_value(&reason).expect("a reason is plain data");
    let settled = store.settle_copy(now, because, move |unfinished| Entry {
        time: now,
        kind: "store.restored",
        actor: by,
        detail: json!({ "backup": told, "lost": unfinished.running,
                        "withdrawn": unfinished.waiting, "discarded": unfinished.held }),
        ..Entry::default()
    });
    let settled = settled.await?;
    store.close();
    Ok(settled)
}
