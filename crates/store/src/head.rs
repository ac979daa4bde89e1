//! The end of the audit's chain, kept beside the database.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::chain::Chain;
use crate::chain::{Link, last_link, link_at};
use crate::error::Error;
use crate::platform;

/// The name of the file with the newest hash.
pub(crate) const HEAD: &str = "audit.head";

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
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = platform::keep_private(&mut options)
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
            let _ = platform::overwrite(file, line(&self.link).as_bytes());
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

/// Fixed width, so that it is overwritten in place and a full disk does not
/// matter.
fn line(link: &Link) -> String {
    format!("{:020} {}\n", link.seq, link.hash)
}

/// Writes the head of a copy.
pub(crate) fn write_head(path: &Path, link: &Link) -> Result<(), Error> {
    let write = || {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let file = platform::keep_private(&mut options).open(path)?;
        platform::overwrite(&file, line(link).as_bytes())?;
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
