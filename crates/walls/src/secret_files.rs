//! Closes secret files to runs that no person and no rule has allowed to read
//! them.
//!
//! Files of the live directory whose names are on the list are closed. A file
//! that such a run itself creates stays readable, although its name is on the
//! list: the run could read no secret, so there is none in it. That holds among
//! undecided changes and after they are applied, until the file is modified.

mod index;
mod watch;

use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use weighlock_confine::Mount;
use weighlock_policy::SecretFiles;

use self::index::{MOST_DIRECTORIES, MOST_FILES, SecretIndexes, TooManyFound, find_once};
use crate::error::{Error, shorten_text};
use crate::layers::CopyLayers;
use crate::lock::lock;
use crate::run_user::RunUser;
use crate::sandbox::Sandbox;

/// How many names of closed files the record of a run holds.
const MOST_NAMED: usize = 200;

/// Finds and remembers secret files.
pub(crate) struct SecretFileFinder {
    /// Patterns of the server's settings.
    patterns: Vec<String>,
    indexes: SecretIndexes,
    /// Compiled lists, by the patterns added to the built-in one.
    lists: Mutex<HashMap<Vec<String>, Arc<SecretFiles>>>,
    /// Files that runs created to which secret files were closed, as they were
    /// when they were applied.
    harmless: Mutex<HashMap<PathBuf, FileStamp>>,
}

/// Device, inode, size and modification time of a file: equal as long as the
/// file is the same and unmodified.
#[derive(PartialEq, Eq)]
struct FileStamp(u64, u64, u64, i64, i64);

impl FileStamp {
    fn read_from(path: &Path) -> Option<Self> {
        let meta = path.symlink_metadata().ok()?;
        let (dev, ino, size) = (meta.dev(), meta.ino(), meta.size());
        Some(Self(dev, ino, size, meta.mtime(), meta.mtime_nsec()))
    }
}

/// The secret files that are closed in one run.
#[derive(Default)]
pub(crate) struct ClosedFiles {
    pub(crate) mounts: Vec<Mount>,
    /// Relative to the directory.
    pub(crate) names: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

impl SecretFileFinder {
    pub(crate) fn new(patterns: Vec<String>) -> Self {
        Self {
            patterns,
            indexes: SecretIndexes::default(),
            lists: Mutex::default(),
            harmless: Mutex::default(),
        }
    }

    /// Remembers files that a run created to which secret files were closed,
    /// each as root and relative path. The next server has forgotten them, and
    /// then a person has to allow reading them.
    pub(crate) fn remember_created(&self, created: impl Iterator<Item = (PathBuf, PathBuf)>) {
        let lists: Vec<_> = lock(&self.lists).values().cloned().collect();
        let is_listed = |path: &Path| {
            let path = path.to_string_lossy();
            lists.iter().any(|list| list.has(&path, false))
        };
        let listed = created.filter(|(_, path)| is_listed(path));
        let stamped = listed.filter_map(|(root, path)| {
            let path = root.join(path);
            Some((FileStamp::read_from(&path)?, path))
        });
        let mut harmless = lock(&self.harmless);
        if harmless.len() > MOST_FILES {
            harmless.clear();
        }
        harmless.extend(stamped.map(|(stamp, path)| (path, stamp)));
    }

    /// Returns whether a directory holds a secret file.
    pub(crate) fn has_any(&self, sandbox: &Sandbox, dir: &Path) -> Result<bool, Error> {
        let list = self.list_for(sandbox)?;
        let found = self.indexes.find_secrets(dir, &list);
        Ok(!found.map_err(|TooManyFound| too_many(dir))?.is_empty())
    }

    /// Finds what has to be closed in a directory and in what else the sandbox
    /// shows. Fails, so that nothing runs, where that cannot be found.
    pub(crate) fn close_files(
        &self,
        sandbox: &Sandbox,
        dir: &Path,
        user: &RunUser,
        layers: &CopyLayers,
    ) -> Result<ClosedFiles, Error> {
        let list = self.list_for(sandbox)?;
        let mut closed = ClosedFiles::default();
        let found = self.indexes.find_secrets(dir, &list);
        let mut found = found.map_err(|TooManyFound| too_many(dir))?;
        let shown = sandbox.read.iter().chain(&sandbox.write);
        let shown = shown.filter_map(|path| user.expand_home(path).canonicalize().ok());
        let (dirs, files): (Vec<PathBuf>, Vec<PathBuf>) = shown.partition(|path| path.is_dir());
        for other in &dirs {
            match self.indexes.find_secrets(other, &list) {
                Ok(more) => found.extend(more),
                Err(TooManyFound) => closed.warnings.push(format!(
                    "{} is too large to find the secret files in it, so they can be read",
                    other.display()
                )),
            }
        }
        let mut roots = vec![dir];
        roots.extend(dirs.iter().map(PathBuf::as_path));
        found.extend(secrets_in_layers(&roots, layers, &list)?);
        // A link may lead to what is not shown, and a file that the settings
        // name is meant to be read.
        found.retain(|path| roots.iter().any(|root| path.starts_with(root)));
        found.retain(|path| !files.contains(path) && !self.is_harmless(path));
        closed.add_all(dir, found)?;
        Ok(closed)
    }

    fn is_harmless(&self, path: &Path) -> bool {
        let harmless = lock(&self.harmless);
        let stamp = harmless.get(path);
        stamp.is_some_and(|stamp| Some(stamp) == FileStamp::read_from(path).as_ref())
    }

    fn list_for(&self, sandbox: &Sandbox) -> Result<Arc<SecretFiles>, Error> {
        let patterns = self.patterns.iter().chain(&sandbox.secret_files);
        let patterns: Vec<String> = patterns.cloned().collect();
        let mut lists = lock(&self.lists);
        if let Some(list) = lists.get(&patterns) {
            return Ok(Arc::clone(list));
        }
        let list = SecretFiles::new(patterns.iter().map(String::as_str));
        let list = list.map_err(|why| Error::BadSecretFiles {
            why: shorten_text(&why),
        })?;
        let list = Arc::new(list);
        lists.insert(patterns, Arc::clone(&list));
        Ok(list)
    }
}

/// Finds secret files in the layers of earlier runs that could read them.
fn secrets_in_layers(
    roots: &[&Path],
    layers: &CopyLayers,
    list: &Arc<SecretFiles>,
) -> Result<Vec<PathBuf>, Error> {
    let mut found = vec![];
    for root in roots {
        for upper in layers.uppers_with_secrets(root) {
            let more = find_once(&upper, list).map_err(|TooManyFound| too_many(root))?;
            found.extend(more.iter().map(|path| root.join(path)));
        }
    }
    Ok(found)
}

impl ClosedFiles {
    fn add_all(&mut self, dir: &Path, found: BTreeSet<PathBuf>) -> Result<(), Error> {
        for path in found {
            // The order to a keeper is JSON. A file whose name is not text is
            // closed together with the directory that holds it.
            let Some(at) = path.ancestors().find(|at| at.to_str().is_some()) else {
                continue;
            };
            if dir.starts_with(at) {
                return Err(too_many(dir));
            }
            if self.names.len() < MOST_NAMED {
                let name = at.strip_prefix(dir).unwrap_or(at);
                self.names.push(name.to_string_lossy().into_owned());
            }
            self.mounts.push(Mount::Close { at: at.to_owned() });
        }
        Ok(())
    }
}

fn too_many(dir: &Path) -> Error {
    Error::TooManyFiles {
        dir: dir.to_owned(),
        most_directories: MOST_DIRECTORIES,
        most_files: MOST_FILES,
    }
}
