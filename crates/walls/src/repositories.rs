//! Remembers the repositories below a directory, whose hooks and settings are
//! protected.
//!
//! Finding them means walking through all directories there, which takes long.
//! So that happens before the first run, and in the background after later ones.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::lock;
use crate::protect::find_repositories;

/// Directories that one search lists; some tenths of a second at most.
const MOST_DIRECTORIES: usize = 20_000;

/// Repositories that are protected. Each is a few mounts, for every run.
const MOST_REPOSITORIES: usize = 200;

/// Searching takes one part in this many of the time at most.
const SHARE: u32 = 50;

/// The shortest time between two searches.
const PAUSE: Duration = Duration::from_millis(500);

/// The known repositories, by the directory that they are below.
#[derive(Default)]
pub(crate) struct Repositories(Mutex<HashMap<PathBuf, KnownRepositories>>);

struct KnownRepositories {
    all: Vec<PathBuf>,
    /// Those that appeared and that no warning has named yet.
    new: Vec<PathBuf>,
    /// The search ended before it had seen everything.
    incomplete: bool,
    search_again: Instant,
}

impl Repositories {
    /// Returns the known repositories below a directory; searches for them the
    /// first time.
    pub(crate) fn list_below(&self, dir: &Path) -> Vec<PathBuf> {
        if let Some(known) = lock(&self.0).get(dir) {
            return known.all.clone();
        }
        self.search(dir)
    }

    /// Returns the repositories that appeared since the last call.
    pub(crate) fn take_new(&self, dir: &Path) -> Vec<PathBuf> {
        let mut all = lock(&self.0);
        all.get_mut(dir)
            .map(|known| std::mem::take(&mut known.new))
            .unwrap_or_default()
    }

    /// Returns whether there may be more than are known.
    pub(crate) fn is_incomplete(&self, dir: &Path) -> bool {
        lock(&self.0).get(dir).is_some_and(|known| known.incomplete)
    }

    /// Searches again unless the last search was recent. May take long.
    pub(crate) fn refresh(&self, dir: &Path) {
        let due = lock(&self.0)
            .get(dir)
            .is_none_or(|known| Instant::now() >= known.search_again);
        if due {
            self.search(dir);
        }
    }

    fn search(&self, dir: &Path) -> Vec<PathBuf> {
        let began = Instant::now();
        let (mut found, complete) = find_repositories(dir, MOST_DIRECTORIES);
        let mut all = lock(&self.0);
        let mut new = vec![];
        if let Some(before) = all.remove(dir) {
            new = before.new;
            let unknown = |path: &&PathBuf| !before.all.contains(path);
            new.extend(found.iter().filter(unknown).cloned());
            // Kept for good: a run can hide a repository behind heaps of
            // directories, and one that is gone may come back.
            let mut missed = before.all;
            missed.retain(|path| !found.contains(path));
            found.extend(missed);
        }
        let incomplete = !complete || found.len() > MOST_REPOSITORIES;
        found.truncate(MOST_REPOSITORIES);
        let known = KnownRepositories {
            all: found.clone(),
            new,
            incomplete,
            search_again: Instant::now() + PAUSE.max(began.elapsed() * SHARE),
        };
        all.insert(dir.to_owned(), known);
        found
    }
}
