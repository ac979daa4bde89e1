//! Reads and validates the file list of a backup, which may be forged.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};
use weighlock_store::hex;

use crate::backup_dir::BackupDir;
use crate::digest::FileDigest;
use crate::entry::{ArchiveEntry, EntryContent};
use crate::error::{Error, quoted};
use crate::manifest::{LIST, PARTS, UNDO_NAMES};

/// The longest path that Linux accepts; paths in a state directory are shorter.
const PATH_BYTES: usize = 4096;

/// The longest line: a path and the target of a link, with every character
/// escaped.
const LINE_BYTES: u64 = 64 * 1024;

/// The paths that a list contains.
#[derive(Default)]
pub(crate) struct ListedPaths(HashMap<PathBuf, PathKind>);

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    Dir,
    File,
    Link,
}

impl ListedPaths {
    pub(crate) fn kind(&self, path: &Path) -> Option<PathKind> {
        self.0.get(path).copied()
    }

    /// Adds one entry. Its path must be one that a backup includes, must be
    /// new, and must be in a directory that was listed before. So no path leads
    /// through a link.
    fn add(&mut self, entry: &ArchiveEntry) -> Result<(), Error> {
        let path = Path::new(&entry.path);
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let as_written: PathBuf = path.components().collect();
        let fine = entry.path.len() <= PATH_BYTES
            && path.components().all(plain)
            && as_written.as_os_str() == path.as_os_str();
        let kind = match entry.content {
            EntryContent::Dir => PathKind::Dir,
            EntryContent::File { .. } => PathKind::File,
            EntryContent::Link { .. } => PathKind::Link,
        };
        let within = match path.parent() {
            Some(around) if around != Path::new("") => self.kind(around) == Some(PathKind::Dir),
            _ => kind == PathKind::Dir && PARTS.contains(&entry.path.as_str()),
        };
        if !fine || !within || !is_included(path, kind) {
            return Err(Error::damaged(format!(
                "{LIST} names `{}`, which belongs to no backup",
                quoted(&entry.path)
            )));
        }
        match self.0.insert(as_written, kind) {
            None => Ok(()),
            Some(_) => Err(Error::damaged(format!(
                "{LIST} names `{}` twice",
                entry.path
            ))),
        }
    }
}

/// Returns whether a backup includes such a path. A forged journal of a commit
/// would be replayed at the next start and could write anywhere, and so could a
/// link; only before-images may be links.
fn is_included(path: &Path, kind: PathKind) -> bool {
    let names: Vec<&OsStr> = path.iter().collect();
    let in_undo = names.first().is_some_and(|part| *part == "undo");
    let what = names.get(2).filter(|_| in_undo);
    let known = what.is_none_or(|name| UNDO_NAMES.iter().any(|known| name == known));
    let image = names.len() > 3 && what.is_some_and(|name| *name == "images");
    known && (kind != PathKind::Link || image)
}

/// Calls `visit` with each entry of the list, and returns all paths. The hash of
/// the list is known only at its end: if this fails, the caller undoes what
/// `visit` did.
pub(crate) fn for_each(
    from: &BackupDir,
    expected: &FileDigest,
    mut visit: impl FnMut(ArchiveEntry) -> Result<(), Error>,
) -> Result<ListedPaths, Error> {
    let path = from.path(LIST);
    let mut list = BufReader::new(from.open_file(LIST)?);
    let (mut paths, mut hasher, mut line) = (ListedPaths::default(), Sha256::new(), vec![]);
    let (mut bytes, mut number) = (0, 0);
    loop {
        line.clear();
        let mut bounded = list.by_ref().take(LINE_BYTES);
        let read = bounded
            .read_until(b'\n', &mut line)
            .map_err(Error::file(&path))?;
        if read == 0 {
            break;
        }
        (bytes, number) = (bytes + read as u64, number + 1);
        hasher.update(&line);
        let wrong = |error| Error::damaged(format!("{LIST}, line {number}: {error}"));
        let entry: ArchiveEntry = serde_json::from_slice(&line).map_err(wrong)?;
        paths.add(&entry)?;
        visit(entry)?;
    }
    let found = FileDigest {
        bytes,
        sha256: hex(&hasher.finalize()),
    };
    if found == *expected {
        Ok(paths)
    } else {
        Err(Error::damaged(format!("{LIST} was changed")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, content: EntryContent) -> ArchiveEntry {
        ArchiveEntry {
            path: path.into(),
            mode: 0o600,
            uid: 0,
            gid: 0,
            mtime: (0, 0),
            content,
        }
    }

    fn link() -> EntryContent {
        EntryContent::Link {
            target: "2f".into(),
        }
    }

    fn file() -> EntryContent {
        EntryContent::File {
            bytes: 0,
            sha256: String::new(),
        }
    }

    #[track_caller]
    fn refused(entries: &[(&str, EntryContent)], why: &str) {
        let mut listed = ListedPaths::default();
        listed.add(&entry("tasks", EntryContent::Dir)).unwrap();
        let taken: Result<Vec<()>, _> = entries
            .iter()
            .map(|(path, content)| listed.add(&entry(path, content.clone())))
            .collect();
        let told = taken.unwrap_err().to_string();
        assert!(told.contains(why), "{told}");
    }

    #[test]
    fn the_undo_directory_has_no_journal_of_a_commit() {
        let mut listed = ListedPaths::default();
        for (path, content) in [
            ("undo", EntryContent::Dir),
            ("undo/r_x", EntryContent::Dir),
            ("undo/r_x/applied", file()),
            ("undo/r_x/images", EntryContent::Dir),
            ("undo/r_x/images/1", link()),
        ] {
            listed.add(&entry(path, content)).unwrap();
        }
        for name in ["journal", "progress", "applied.new"] {
            let path = format!("undo/r_x/{name}");
            assert!(listed.add(&entry(&path, file())).is_err(), "{path}");
        }
    }

    #[test]
    fn a_list_names_each_path_once_and_nothing_below_a_link() {
        let nowhere = "belongs to no backup";
        refused(
            &[("tasks/f", file()), ("tasks/f", EntryContent::Dir)],
            "twice",
        );
        refused(&[("tasks/f", file()), ("tasks/f/g", file())], nowhere);
        refused(&[("tasks/no/such", file())], nowhere);
        for path in [
            "",
            "/etc/x",
            "../x",
            "tasks/../x",
            "tasks//x",
            "tasks/./x",
            "tasks/x/",
            "other",
        ] {
            refused(&[(path, EntryContent::Dir)], nowhere);
        }
        refused(&[("runs", link())], nowhere);
        refused(&[("tasks/l", link())], nowhere);
        refused(&[(&format!("tasks/{}", "x".repeat(5000)), file())], nowhere);
    }
}
