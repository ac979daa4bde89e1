//! Keeps secret files from runs that nobody has allowed to read them.
//!
//! What is closed is what the live directory holds under a name on the list.
//! A file that was made by a run to which those are closed is that run's own:
//! it could not read a secret, and there is none in it. So it stays readable,
//! among undecided changes and once it is applied, until somebody changes it.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use weighlock_confine::Mount;
use weighlock_policy::SecretFiles;

use super::person::Person;
use super::secret_files::{Indexes, MOST_DIRECTORIES, MOST_FILES, TooMany, find_once};
use crate::effects::Layers;
use crate::engine::Engine;
use crate::error::{Error, brief};
use crate::live::lock;
use crate::sandbox::Sandbox;

/// Names of closed files that are kept in the record of a run.
const MOST_NAMED: usize = 200;

/// What is known of secret files.
#[derive(Default)]
pub(crate) struct Secrets {
    indexes: Indexes,
    /// Compiled lists, by what is added to the built-in one.
    lists: Mutex<HashMap<Vec<String>, Arc<SecretFiles>>>,
    /// Files that runs have made to which secret files were closed, as they
    /// were applied.
    own: Mutex<HashMap<PathBuf, Mark>>,
}

/// Which file it is, and that nobody has written to it since.
#[derive(PartialEq, Eq)]
struct Mark(u64, u64, u64, i64, i64);

impl Mark {
    fn of(path: &Path) -> Option<Self> {
        let meta = path.symlink_metadata().ok()?;
        let (dev, ino, size) = (meta.dev(), meta.ino(), meta.size());
        Some(Self(dev, ino, size, meta.mtime(), meta.mtime_nsec()))
    }
}

impl Secrets {
    /// Takes note of files that were made by a run to which secret files were
    /// closed. It is forgotten with the server, which is no harm but to whoever
    /// has to allow them.
    pub(crate) fn remember(&self, made: impl Iterator<Item = (PathBuf, PathBuf)>) {
        let lists: Vec<_> = lock(&self.lists).values().cloned().collect();
        let listed = |path: &Path| {
            let path = path.to_string_lossy();
            lists.iter().any(|list| list.has(&path, false))
        };
        let made = made.filter(|(_, path)| listed(path));
        let made = made.filter_map(|(root, path)| {
            let path = root.join(path);
            Some((Mark::of(&path)?, path))
        });
        let mut own = lock(&self.own);
        if own.len() > MOST_FILES {
            own.clear();
        }
        own.extend(made.map(|(mark, path)| (path, mark)));
    }

    fn is_own(&self, path: &Path) -> bool {
        let own = lock(&self.own);
        own.get(path)
            .is_some_and(|mark| Some(mark) == Mark::of(path).as_ref())
    }
}

/// What is closed in one run.
#[derive(Default)]
pub(super) struct Closed {
    pub(super) mounts: Vec<Mount>,
    /// Relative to the directory.
    pub(super) names: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl Engine {
    /// Returns whether there is a secret file where a command would run.
    pub(crate) fn has_secret_files(&self, sandbox: &Sandbox, cwd: &Path) -> Result<bool, Error> {
        let Some(dir) = self.territory(sandbox, cwd, &self.home) else {
            return Ok(false);
        };
        let list = self.list_of(sandbox)?;
        let found = self.found.secrets.indexes.find(&dir, &list);
        Ok(!found.map_err(|TooMany| too_many(&dir))?.is_empty())
    }

    /// Finds what has to be closed in a directory, and in what else the sandbox
    /// shows. Where that cannot be found, nothing runs.
    pub(super) fn close_secrets(
        &self,
        sandbox: &Sandbox,
        dir: &Path,
        person: &Person,
        layers: &Layers,
    ) -> Result<Closed, Error> {
        let list = self.list_of(sandbox)?;
        let indexes = &self.found.secrets.indexes;
        let mut closed = Closed::default();
        let mut found = indexes.find(dir, &list).map_err(|TooMany| too_many(dir))?;
        let shown = sandbox.read.iter().chain(&sandbox.write);
        let shown = shown.filter_map(|path| person.resolve(path).canonicalize().ok());
        let (others, named): (Vec<PathBuf>, Vec<PathBuf>) = shown.partition(|path| path.is_dir());
        for other in &others {
            match indexes.find(other, &list) {
                Ok(more) => found.extend(more),
                Err(TooMany) => closed.warnings.push(format!(
                    "{} is too large to find the secret files in it, so they can be read",
                    other.display()
                )),
            }
        }
        let roots: Vec<&Path> = [dir]
            .into_iter()
            .chain(others.iter().map(|dir| &**dir))
            .collect();
        for root in &roots {
            for upper in layers.with_secrets(root) {
                let more = find_once(&upper, &list).map_err(|TooMany| too_many(root))?;
                found.extend(more.iter().map(|path| root.join(path)));
            }
        }
        // A link may lead to what is not shown, and a file that the settings
        // name is meant to be read.
        found.retain(|path| roots.iter().any(|root| path.starts_with(root)));
        found.retain(|path| !named.contains(path) && !self.found.secrets.is_own(path));
        closed.take(dir, found)?;
        Ok(closed)
    }

    fn list_of(&self, sandbox: &Sandbox) -> Result<Arc<SecretFiles>, Error> {
        let more = self.config.secret_files.iter().chain(&sandbox.secret_files);
        let more: Vec<String> = more.cloned().collect();
        let mut lists = lock(&self.found.secrets.lists);
        if let Some(list) = lists.get(&more) {
            return Ok(Arc::clone(list));
        }
        let list = SecretFiles::new(more.iter().map(String::as_str)).map_err(|why| {
            Error::invalid(
                "bad_sandbox",
                format!("{}; nothing was run", brief(&why)),
                "mend `secret_files` in the sandbox's settings",
            )
        })?;
        let list = Arc::new(list);
        lists.insert(more, Arc::clone(&list));
        Ok(list)
    }
}

impl Closed {
    fn take(&mut self, dir: &Path, found: BTreeSet<PathBuf>) -> Result<(), Error> {
        for path in found {
            // Orders for walls are text; what has no such name goes with what
            // it is in.
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
    Error::invalid(
        "too_many_files",
        format!(
            "secret files in {} cannot all be found and kept from the command: it has more than \
             {MOST_DIRECTORIES} directories or {MOST_FILES} secret files, or one whose name is \
             not text; nothing was run",
            dir.display()
        ),
        "set up a sandbox for a part of it, or take files off the list with `secret_files` of the \
         sandbox, all of them with `secret_files = [\"!**\"]`",
    )
}
