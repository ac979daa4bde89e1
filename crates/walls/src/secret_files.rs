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

use weighlock_confine::{Access, Mount};
use weighlock_policy::SecretFiles;

use self::index::{
    MOST_DIRECTORIES, MOST_FILES, SecretIndexes, SecretsFound, TooManyFound, find_once,
};
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
    /// Relative to the directory; those of directories end with a slash.
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
        let found = found.map_err(|TooManyFound| too_many(dir))?;
        Ok(!found.secrets.is_empty())
    }

    /// Returns whether a name is on a list that is in use. The name of a
    /// directory ends with a slash.
    pub(crate) fn is_listed(&self, name: &str) -> bool {
        let lists = lock(&self.lists);
        let (name, is_dir) = match name.strip_suffix('/') {
            Some(name) => (name, true),
            None => (name, false),
        };
        lists.values().any(|list| list.has(name, is_dir))
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
                Ok(more) => found.add(more),
                Err(TooManyFound) => closed.warnings.push(format!(
                    "{} is too large to find the secret files in it, so they can be read",
                    other.display()
                )),
            }
        }
        let mut roots = vec![dir];
        roots.extend(dirs.iter().map(PathBuf::as_path));
        found.add(secrets_in_layers(&roots, layers, &list)?);
        // A link may lead to what is not shown, and a file that the settings
        // name is meant to be read.
        found.secrets.retain(|path| {
            let is_shown = roots.iter().any(|root| path.starts_with(root));
            is_shown && !files.contains(path) && !self.is_harmless(path)
        });
        let live_roots = (!layers.is_needed()).then_some(&roots[..]);
        closed.add_all(dir, &found, live_roots.unwrap_or_default())?;
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
) -> Result<SecretsFound, Error> {
    let mut found = SecretsFound::default();
    for root in roots {
        for upper in layers.uppers_with_secrets(root) {
            let more = find_once(&upper, list).map_err(|TooManyFound| too_many(root))?;
            found.add(more.below(root));
        }
    }
    Ok(found)
}

impl ClosedFiles {
    /// Closes what was found. In `live_roots`, to which the run writes without a
    /// layer, the directories on the way are pinned: if one were renamed, its
    /// secrets would move to paths that are not on the list.
    fn add_all(
        &mut self,
        dir: &Path,
        found: &SecretsFound,
        live_roots: &[&Path],
    ) -> Result<(), Error> {
        let mut closed = BTreeSet::new();
        let mut pinned = BTreeSet::new();
        for path in found.secrets.iter().chain(&found.unlisted) {
            let Some(at) = path.ancestors().find(|at| is_mountable(at)) else {
                continue;
            };
            if dir.starts_with(at) {
                return Err(too_many(dir));
            }
            if found.secrets.contains(path) && self.names.len() < MOST_NAMED {
                self.names.push(shown_name(at, dir));
            }
            pinned.extend(dirs_on_the_way(at, live_roots));
            closed.insert(at.to_owned());
        }
        pinned.retain(|at| !at.ancestors().any(|above| closed.contains(above)));
        // Sorted, so that directories come before what is in them.
        self.mounts.extend(pinned.into_iter().map(pin_directory));
        let closed = closed.into_iter().map(|at| Mount::Close { at });
        self.mounts.extend(closed);
        Ok(())
    }
}

/// Returns the directories between a path and the innermost root that holds it.
fn dirs_on_the_way(at: &Path, roots: &[&Path]) -> Vec<PathBuf> {
    let Some(root) = roots.iter().filter(|root| at.starts_with(root)).max() else {
        return vec![];
    };
    let above = at.ancestors().skip(1).take_while(|above| above != root);
    above.map(Path::to_owned).collect()
}

/// Returns the mount that keeps a directory from being renamed.
fn pin_directory(at: PathBuf) -> Mount {
    Mount::Guard {
        at,
        access: Access::Write,
    }
}

/// Returns the name of a closed file in the record of a run, relative to `dir`;
/// a directory's ends with a slash.
fn shown_name(at: &Path, dir: &Path) -> String {
    let mut name = at.strip_prefix(dir).unwrap_or(at).to_string_lossy();
    if at.is_dir() {
        name += "/";
    }
    name.into_owned()
}

/// Returns whether a path can be mounted over. The order to a keeper is JSON, so
/// it must be text, and the kernel limits its length. Otherwise the directory
/// that holds it is closed.
fn is_mountable(at: &Path) -> bool {
    /// Less than `PATH_MAX` (4096): the path of the new root comes before it.
    const LONGEST_PATH: usize = 3_500;
    at.to_str().is_some_and(|text| text.len() < LONGEST_PATH)
}

fn too_many(dir: &Path) -> Error {
    Error::TooManyFiles {
        dir: dir.to_owned(),
        most_directories: MOST_DIRECTORIES,
        most_files: MOST_FILES,
    }
}
