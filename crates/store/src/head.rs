//! The end of the audit's chain, kept beside the database.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use crate::audit::{Chain, GENESIS};
use crate::open::Error;

/// The name of the file with the newest hash.
pub(crate) const HEAD: &str = "audit.head";

/// An entry's number and hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) seq: u64,
    pub(crate) hash: String,
}

impl Link {
    /// What comes before the first entry.
    pub(crate) fn none() -> Self {
        Self {
            seq: 0,
            hash: GENESIS.into(),
        }
    }
}

/// The file beside the database that remembers the end of the chain.
pub(crate) struct ChainHead {
    path: PathBuf,
    file: Option<File>,
    link: Link,
}

impl ChainHead {
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(HEAD);
        let link = read_head(&path)?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|source| Error::File {
                path: path.clone(),
                source,
            })?;
        Ok(Self {
            path,
            file: Some(file),
            link: link.unwrap_or_else(Link::none),
        })
    }

    pub(crate) fn seq(&self) -> u64 {
        self.link.seq
    }

    pub(crate) fn chain(&self) -> Chain {
        Chain(self.link.clone())
    }

    /// Remembers a new end. The file may be behind the database after a crash,
    /// never ahead of it.
    pub(crate) fn advance(&mut self, chain: Chain) {
        self.link = chain.0;
        if let Some(file) = &self.file {
            let _ = file.write_all_at(line(&self.link).as_bytes(), 0);
        }
    }

    /// Checks that the database has the entry that the file names, and takes
    /// the database's end where the file is behind.
    pub(crate) fn agrees(mut self, with: &Connection, path: &Path) -> Result<Self, Error> {
        if self.link.seq > 0 && link_at(with, self.link.seq)?.as_ref() != Some(&self.link) {
            return Err(Error::Corrupt {
                path: path.to_owned(),
                what: format!(
                    "audit entry {} is not the one that {} names",
                    self.link.seq,
                    self.path.display()
                ),
            });
        }
        if let Some(last) = last_link(with)? {
            self.advance(Chain(last));
        }
        Ok(self)
    }

    pub(crate) fn set_aside(dir: &Path, stamp: &str) -> Result<(), Error> {
        let path = dir.join(HEAD);
        let to = dir.join(format!("{HEAD}.broken-{stamp}"));
        match std::fs::rename(&path, to) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(Error::File { path, source })
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn last_link(from: &Connection) -> Result<Option<Link>, Error> {
    let seq: Option<u64> = from.query_row("SELECT max(seq) FROM audit", [], |row| row.get(0))?;
    seq.map_or(Ok(None), |seq| link_at(from, seq))
}

pub(crate) fn link_at(from: &Connection, seq: u64) -> Result<Option<Link>, Error> {
    let hash = from
        .query_row("SELECT hash FROM audit WHERE seq = ?1", [seq], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(hash.map(|hash| Link { seq, hash }))
}

/// Fixed width, so that it is overwritten in place and a full disk does not
/// matter.
fn line(link: &Link) -> String {
    format!("{:020} {}\n", link.seq, link.hash)
}

/// Writes the head of a copy.
pub(crate) fn write_head(path: &Path, link: &Link) -> Result<(), Error> {
    let write = || {
        let mut how = OpenOptions::new();
        let file = how.write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all_at(line(link).as_bytes(), 0)?;
        file.sync_all()
    };
    write().map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })
}

pub(crate) fn read_head(path: &Path) -> Result<Option<Link>, Error> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|source| Error::File {
            path: path.to_owned(),
            source,
        })?,
    };
    let Some((seq, hash)) = text.trim_end().split_once(' ') else {
        return Ok(None);
    };
    Ok(seq.parse().ok().map(|seq| Link {
        seq,
        hash: hash.to_owned(),
    }))
}
