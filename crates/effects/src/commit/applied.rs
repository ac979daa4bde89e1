//! What was applied, and how it is taken back.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::images::{self, ImageIndex};
use super::journal;
use super::work::{Work, gone_ok};
use crate::changes::{Change, Changes, Kind, Root, Source};

const RECORD: &str = "applied";

/// The record while it is written, and the room for it before that.
pub(crate) const NEW: &str = "applied.new";

/// Changes that are in the live tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The directories that it is about.
    pub roots: Vec<Root>,
    /// Each altered path, with `after` as it stands in the live tree now, and
    /// with the number of the image of `before`.
    pub entries: Vec<Change>,
    /// Bytes of the before-images.
    pub bytes: u64,
    /// How many before-images there are.
    pub files: u64,
}

impl Applied {
    /// Reads the record of a commit; `None` if nothing was applied.
    pub fn load(dir: &Path) -> io::Result<Option<Self>> {
        // Whole: to read it piece by piece takes three times as long.
        match std::fs::read(dir.join(RECORD)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the changes that take these back. What comes back is in the
    /// before-images, which are in the directory of the commit.
    pub fn inverse(&self, dir: &Path) -> Changes {
        let roots = self.roots.iter().map(|root| Root {
            source: Source::Images(images::dir_of(dir)),
            below: Vec::new(),
            ..root.clone()
        });
        let mut entries: Vec<Change> = self.entries.iter().map(inverse).collect();
        let is_put = |change: &Change| change.after.is_some();
        entries.sort_by(|a, b| (a.root, &a.path, is_put(a)).cmp(&(b.root, &b.path, is_put(b))));
        Changes {
            roots: roots.collect(),
            entries,
            refused: Vec::new(),
        }
    }

    /// Returns what was applied as changes that can be looked at.
    pub fn shown(&self, dir: &Path) -> Changes {
        let roots = self.roots.iter().map(|root| Root {
            source: Source::Live(images::dir_of(dir)),
            below: Vec::new(),
            ..root.clone()
        });
        let entries = self.entries.iter().cloned().map(|change| Change {
            built_on: None,
            ..change
        });
        Changes {
            roots: roots.collect(),
            entries: entries.collect(),
            refused: Vec::new(),
        }
    }

    pub(crate) fn of(work: &mut Work) -> io::Result<Self> {
        let index = ImageIndex::load(&images::dir_of(&work.place))?;
        let changes = work.changes.clone();
        let mut entries = changes.entries;
        for (number, change) in entries.iter_mut().enumerate() {
            change.image = change.before.is_some().then_some(number as u64);
            settle(work, change)?;
        }
        Ok(Self {
            roots: changes.roots,
            entries,
            bytes: index.bytes,
            files: index.files,
        })
    }

    pub(crate) fn save(&self, dir: &Path, durable: bool) -> io::Result<()> {
        let new = dir.join(NEW);
        // Not emptied: room was kept for it.
        let mut file = BufWriter::new(open_new(&new)?);
        serde_json::to_writer(&mut file, self)?;
        file.flush()?;
        let mut file = file.into_inner()?;
        let end = file.stream_position()?;
        file.set_len(end)?;
        if durable {
            file.sync_data()?;
        }
        std::fs::rename(new, dir.join(RECORD))?;
        if durable {
            File::open(dir)?.sync_all()?;
        }
        Ok(())
    }
}

/// Returns whether what a directory is for is in the live tree.
pub fn is_applied(dir: &Path) -> bool {
    dir.join(RECORD).exists()
}

/// Reserves disk space for the record of a journal of so many bytes. The record
/// repeats the journal, and says which file each one has become.
pub(crate) fn reserve(dir: &Path, journal: u64) -> io::Result<()> {
    journal::reserve(&open_new(&dir.join(NEW))?, 2 * journal)
}

fn open_new(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// Removes the before-images: what was applied cannot be taken back then.
pub fn forget_images(dir: &Path) -> io::Result<()> {
    images::remove(dir)
}

/// Notes which file it is in the live tree. What it should be is known; were
/// it read as well, an edit of this very moment would pass for ours.
fn settle(work: &mut Work, change: &mut Change) -> io::Result<()> {
    let Some(after) = &mut change.after else {
        return Ok(());
    };
    let handle = gone_ok(work.trees[change.root].handle(change.path.path()))?;
    if let Some(handle) = handle {
        let now = handle.node()?;
        after.device = now.device;
        after.inode = now.inode;
        after.links = now.links;
        after.ctime = now.ctime;
        (after.uid, after.gid) = (now.uid, now.gid);
    }
    Ok(())
}

fn inverse(change: &Change) -> Change {
    let (path, from) = match &change.from {
        Some(from) => (from.clone(), Some(change.path.clone())),
        None => (change.path.clone(), None),
    };
    Change {
        root: change.root,
        path,
        kind: match change.kind {
            Kind::Created => Kind::Deleted,
            Kind::Deleted => Kind::Created,
            kind => kind,
        },
        from,
        before: change.after.clone(),
        after: change.before.clone(),
        built_on: None,
        overtaken: false,
        shared: false,
        alike: true,
        image: change.image,
    }
}
