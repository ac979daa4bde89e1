//! Repositories below a directory, whose hooks and settings are protected.
//!
//! Finding them means to look through all directories there, which takes long.
//! So that is done before the first run, and then behind the back of later
//! ones.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::live::lock;
use crate::protect;

/// Directories looked through; some tenths of a second at most.
const BUDGET: usize = 20_000;

/// Each is some mounts, for every run.
const MOST: usize = 200;

/// Looking takes one part in so many of the time at most.
const SHARE: u32 = 50;

/// The least time between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// What is known, by directory.
#[derive(Default)]
pub(crate) struct Repositories(Mutex<HashMap<PathBuf, Known>>);

struct Known {
    all: Vec<PathBuf>,
    /// Those that have appeared and were not told of.
    new: Vec<PathBuf>,
    /// There may be more.
    incomplete: bool,
    look_again: Instant,
}

impl Repositories {
    /// Returns those that are known, and looks for them when nothing is.
    pub(super) fn below(&self, dir: &Path) -> Vec<PathBuf> {
        if let Some(known) = lock(&self.0).get(dir) {
            return known.all.clone();
        }
        self.look(dir)
    }

    /// Returns those that have appeared, once.
    pub(super) fn appeared(&self, dir: &Path) -> Vec<PathBuf> {
        let mut all = lock(&self.0);
        all.get_mut(dir)
            .map(|known| std::mem::take(&mut known.new))
            .unwrap_or_default()
    }

    /// Returns whether there may be more than are known.
    pub(super) fn is_incomplete(&self, dir: &Path) -> bool {
        lock(&self.0).get(dir).is_some_and(|known| known.incomplete)
    }

    /// Looks again, unless that was done lately. May take long.
    pub(crate) fn look_again(&self, dir: &Path) {
        let due = lock(&self.0)
            .get(dir)
            .is_none_or(|known| Instant::now() >= known.look_again);
        if due {
            self.look(dir);
        }
    }

    fn look(&self, dir: &Path) -> Vec<PathBuf> {
        let began = Instant::now();
        let (mut found, complete) = protect::nested(dir, BUDGET);
        let mut all = lock(&self.0);
        let mut new = vec![];
        if let Some(before) = all.remove(dir) {
            new = before.new;
            let unknown = |path: &&PathBuf| !before.all.contains(path);
            new.extend(found.iter().filter(unknown).cloned());
            // Never forgotten: heaps of directories may hide one from us, and one
            // that is gone may come back.
            let hidden = before.all.into_iter();
            let hidden: Vec<_> = { hidden }.filter(|path| !found.contains(path)).collect();
            found.extend(hidden);
        }
        let incomplete = !complete || found.len() > MOST;
        found.truncate(MOST);
        let known = Known {
            all: found.clone(),
            new,
            incomplete,
            look_again: Instant::now() + PAUSE.max(began.elapsed() * SHARE),
        };
        all.insert(dir.to_owned(), known);
        found
    }
}
