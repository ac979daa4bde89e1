//! What was found out about a directory not long ago.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::live::lock;

/// Answers that take long to find and change seldom, by directory.
pub(crate) struct Lately<T> {
    good_for: Duration,
    known: Mutex<HashMap<PathBuf, (Instant, T)>>,
}

impl<T: Clone> Lately<T> {
    pub(crate) fn new(good_for: Duration) -> Self {
        Self {
            good_for,
            known: Mutex::default(),
        }
    }

    /// Returns what is known, or finds it out.
    pub(crate) fn get(&self, dir: &Path, find: impl FnOnce() -> T) -> T {
        let known = lock(&self.known).get(dir).cloned();
        match known {
            Some((at, answer)) if at.elapsed() < self.good_for => answer,
            _ => {
                let answer = find();
                let mut known = lock(&self.known);
                // Runs may be in very many directories over the months.
                known.retain(|_, (at, _)| at.elapsed() < self.good_for);
                known.insert(dir.to_owned(), (Instant::now(), answer.clone()));
                answer
            }
        }
    }
}
