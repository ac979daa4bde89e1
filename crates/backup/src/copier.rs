//! Copies trees of files into a backup, and writes the file list.

use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::digest::{FileDigest, copy_and_hash};
use crate::entry::{ArchiveEntry, EntryContent};
use crate::error::Error;
use crate::root_dir::{PathHandle, RootDir};

/// Copies trees from one directory to another, and lists each entry.
pub(crate) struct TreeCopier<'a> {
    pub(crate) from: &'a RootDir,
    pub(crate) to: &'a RootDir,
    pub(crate) list: BufWriter<File>,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Set when the server stops: the copy fails then.
    pub(crate) cancelled: &'a AtomicBool,
}

impl TreeCopier<'_> {
    /// Copies a tree and creates its parent directories. Skips what no longer
    /// exists, what is no file, directory or link, and files named `except`.
    pub(crate) fn copy_tree(&mut self, path: &Path, except: Option<&str>) -> Result<(), Error> {
        let above: Vec<&Path> = path.ancestors().skip(1).collect();
        for dir in above.into_iter().rev().skip(1) {
            let Some(found) = self.existing(dir, self.from.find(dir))? else {
                return Ok(());
            };
            if self.to.find(dir).is_err() {
                self.copy_dir(dir, &found.meta)?;
            }
        }
        let found = self.existing(path, self.from.find(path))?;
        found.map_or(Ok(()), |found| self.copy_any(path, &found, except))
    }

    fn copy_any(
        &mut self,
        path: &Path,
        found: &PathHandle,
        except: Option<&str>,
    ) -> Result<(), Error> {
        match found.meta.file_type() {
            kind if kind.is_dir() => {
                self.copy_dir(path, &found.meta)?;
                self.copy_content(path, found, except)
            }
            kind if kind.is_symlink() => {
                let target = found.target().map_err(Error::file(&self.from.path(path)))?;
                self.list_entry(path, &found.meta, EntryContent::link(&target))
            }
            kind if kind.is_file() => {
                let FileDigest { bytes, sha256 } = self.copy_file(path, found)?;
                self.files += 1;
                self.bytes += bytes;
                self.list_entry(path, &found.meta, EntryContent::File { bytes, sha256 })
            }
            _ => Ok(()),
        }
    }

    fn copy_dir(&mut self, path: &Path, meta: &Metadata) -> Result<(), Error> {
        let made = self.to.make_dir(path);
        made.map_err(Error::file(&self.to.path(path)))?;
        self.list_entry(path, meta, EntryContent::Dir)
    }

    fn copy_content(
        &mut self,
        path: &Path,
        found: &PathHandle,
        except: Option<&str>,
    ) -> Result<(), Error> {
        let cannot_read = Error::file(&self.from.path(path));
        let opened = found.open().map_err(&cannot_read)?;
        let mut names = opened.names().map_err(cannot_read)?;
        // Indexes first: an index of output that grows meanwhile must not refer
        // to output that was not copied.
        names.sort_by_key(|name| {
            let is_index = Path::new(name).extension().is_some_and(|end| end == "idx");
            (!is_index, name.clone())
        });
        for name in names {
            if except.is_some_and(|except| name == except) {
                continue;
            }
            let path = path.join(&name);
            let found = PathHandle::at(opened.file.as_fd(), &name);
            if let Some(found) = self.existing(&path, found)? {
                self.copy_any(&path, &found, except)?;
            }
        }
        Ok(())
    }

    fn copy_file(&mut self, path: &Path, found: &PathHandle) -> Result<FileDigest, Error> {
        let at = (self.from.path(path), self.to.path(path));
        let source = found.open().map_err(Error::file(&at.0))?.file;
        let target = self.to.create(path).map_err(Error::file(&at.1))?;
        let source = CancellableReader {
            source,
            cancelled: self.cancelled,
        };
        copy_and_hash((&at.0, source), (&at.1, target))
    }

    fn list_entry(
        &mut self,
        path: &Path,
        meta: &Metadata,
        content: EntryContent,
    ) -> Result<(), Error> {
        let entry = ArchiveEntry {
            path: path.to_string_lossy().into_owned(),
            mode: meta.mode() & 0o7777,
            uid: meta.uid(),
            gid: meta.gid(),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            content,
        };
        let mut line = serde_json::to_vec(&entry).expect("an entry is plain data");
        line.push(b'\n');
        let written = self.list.write_all(&line);
        written.map_err(Error::file(self.to.root()))
    }

    /// Returns `None` for what was removed meanwhile, and for a name that is not
    /// UTF-8: the server creates none.
    fn existing(
        &self,
        path: &Path,
        found: io::Result<PathHandle>,
    ) -> Result<Option<PathHandle>, Error> {
        match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Ok(_) if path.to_str().is_none() => Ok(None),
            found => found.map(Some).map_err(Error::file(&self.from.path(path))),
        }
    }
}

/// A reader that fails once the copy is cancelled.
struct CancellableReader<'a> {
    source: File,
    cancelled: &'a AtomicBool,
}

impl Read for CancellableReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancelled.load(Ordering::Relaxed) {
            Err(io::Error::other("the server stops"))
        } else {
            self.source.read(buffer)
        }
    }
}
