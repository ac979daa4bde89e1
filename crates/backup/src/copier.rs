//! Trees of files: copied with their hashes, and listed.

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Hashed;
use super::tree::{Found, Tree};
use crate::error::Error;
use crate::people::hex;

/// Bytes that are read at a time.
const STEP: usize = 256 * 1024;

/// One thing of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Thing {
    /// From the state directory: names with a slash between them.
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// When it was changed, in seconds and nanoseconds since 1970.
    pub(super) mtime: (i64, i64),
    #[serde(flatten)]
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(super) enum What {
    File {
        bytes: u64,
        sha256: String,
    },
    Dir,
    /// Where it points, in hexadecimal: that may be any bytes.
    Link {
        target: String,
    },
}

/// Copies trees from one directory to another, and lists what it copies.
pub(super) struct Copier<'a> {
    pub(super) from: &'a Tree,
    pub(super) to: &'a Tree,
    pub(super) list: BufWriter<File>,
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// Nobody needs the rest any more.
    pub(super) closing: &'a AtomicBool,
}

impl Copier<'_> {
    /// Copies a tree, and makes the directories above it. What is gone, and
    /// what is no file, directory or link, is left out; so is what is called
    /// `but`.
    pub(super) fn tree(&mut self, path: &Path, but: Option<&str>) -> Result<(), Error> {
        let above: Vec<&Path> = path.ancestors().skip(1).collect();
        for dir in above.into_iter().rev().skip(1) {
            let Some(found) = self.there(dir, self.from.find(dir))? else {
                return Ok(());
            };
            if self.to.find(dir).is_err() {
                self.dir(dir, &found.meta)?;
            }
        }
        let found = self.there(path, self.from.find(path))?;
        found.map_or(Ok(()), |found| self.thing(path, &found, but))
    }

    fn thing(&mut self, path: &Path, found: &Found, but: Option<&str>) -> Result<(), Error> {
        match found.meta.file_type() {
            kind if kind.is_dir() => {
                self.dir(path, &found.meta)?;
                self.content(path, found, but)
            }
            kind if kind.is_symlink() => {
                let target = found.target().map_err(Error::file(&self.from.path(path)))?;
                let target = hex(&target);
                self.note(path, &found.meta, What::Link { target })
            }
            kind if kind.is_file() => {
                let Hashed { bytes, sha256 } = self.file(path, found)?;
                self.files += 1;
                self.bytes += bytes;
                self.note(path, &found.meta, What::File { bytes, sha256 })
            }
            _ => Ok(()),
        }
    }

    fn dir(&mut self, path: &Path, meta: &Metadata) -> Result<(), Error> {
        let made = self.to.make_dir(path);
        made.map_err(Error::file(&self.to.path(path)))?;
        self.note(path, meta, What::Dir)
    }

    fn content(&mut self, path: &Path, found: &Found, but: Option<&str>) -> Result<(), Error> {
        let cannot_read = Error::file(&self.from.path(path));
        let opened = found.open().map_err(&cannot_read)?;
        let mut names = opened.names().map_err(cannot_read)?;
        // What tells of other files comes before them: an index of output that
        // grows meanwhile must not name what was not copied.
        names.sort_by_key(|name| {
            let is_index = Path::new(name).extension().is_some_and(|end| end == "idx");
            (!is_index, name.clone())
        });
        for name in names {
            if but.is_some_and(|but| name == but) {
                continue;
            }
            let path = path.join(&name);
            let found = Found::at(opened.file.as_fd(), &name);
            if let Some(found) = self.there(&path, found)? {
                self.thing(&path, &found, but)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, found: &Found) -> Result<Hashed, Error> {
        let at = (self.from.path(path), self.to.path(path));
        let source = found.open().map_err(Error::file(&at.0))?.file;
        let target = self.to.create(path).map_err(Error::file(&at.1))?;
        let source = WhileOpen {
            source,
            closing: self.closing,
        };
        pump((&at.0, source), (&at.1, target))
    }

    fn note(&mut self, path: &Path, meta: &Metadata, what: What) -> Result<(), Error> {
        let thing = Thing {
            path: path.to_string_lossy().into_owned(),
            mode: meta.mode() & 0o7777,
            uid: meta.uid(),
            gid: meta.gid(),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            what,
        };
        let mut line = serde_json::to_vec(&thing).expect("a thing is plain data");
        line.push(b'\n');
        let written = self.list.write_all(&line);
        written.map_err(Error::file(self.to.root()))
    }

    /// What is gone meanwhile is no error; nor is there a name that is no text,
    /// since all of them are ours.
    fn there(&self, path: &Path, found: io::Result<Found>) -> Result<Option<Found>, Error> {
        match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Ok(_) if path.to_str().is_none() => Ok(None),
            found => found.map(Some).map_err(Error::file(&self.from.path(path))),
        }
    }
}

/// Ends when nobody needs the rest any more.
struct WhileOpen<'a> {
    source: File,
    closing: &'a AtomicBool,
}

impl Read for WhileOpen<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.closing.load(Ordering::Relaxed) {
            true => Err(io::Error::other("the server ends")),
            false => self.source.read(buffer),
        }
    }
}

/// Reads all there is into something else, and returns what that was. Either
/// may be at fault, and is named then.
pub(super) fn pump(
    (from, mut source): (&Path, impl Read),
    (to, mut target): (&Path, impl Write),
) -> Result<Hashed, Error> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; STEP];
    let mut bytes = 0;
    loop {
        let read = match source.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map_err(Error::file(from))?,
        };
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        target.write_all(&buffer[..read]).map_err(Error::file(to))?;
        bytes += read as u64;
    }
    Ok(Hashed {
        bytes,
        sha256: hex(&hasher.finalize()),
    })
}

/// Has the disk keep what was written below a directory.
pub(super) fn sync(dir: &Path) -> io::Result<()> {
    rustix::fs::syncfs(File::open(dir)?).map_err(io::Error::from)
}

pub(super) fn unhex(text: &str) -> Option<PathBuf> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes = digits.map(byte).collect::<Option<Vec<u8>>>()?;
    Some(std::ffi::OsString::from_vec(bytes).into())
}
