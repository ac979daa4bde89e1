//! Remembers what was found out about a directory, for a while.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::lock;

/// Answers by directory, each valid for a fixed time. For answers that take
/// long to find and seldom change.
pub(crate) struct TimedCache<T> {
    valid_for: Duration,
    answers: Mutex<HashMap<PathBuf, (Instant, T)>>,
}

impl<T: Clone> TimedCache<T> {
    pub(crate) fn new(valid_for: Duration) -> Self {
        Self {
            valid_for,
            answers: Mutex::default(),
        }
    }

    /// Returns the answer for a directory; calls `find` if there is none yet or
    /// it is too old.
    pub(crate) fn get_or_find(&self, dir: &Path, find: impl FnOnce() -> T) -> T {
        let known = lock(&self.answers).get(dir).cloned();
        match known {
            Some((since, answer)) if since.elapsed() < self.valid_for => answer,
            _ => {
                let answer = find();
                self.keep_answer(dir, answer.clone());
                answer
            }
        }
    }

    fn keep_answer(&self, dir: &Path, answer: T) {
        let mut answers = lock(&self.answers);
        // Runs may be in very many directories over the months.
        answers.retain(|_, (since, _)| since.elapsed() < self.valid_for);
        answers.insert(dir.to_owned(), (Instant::now(), answer));
    }
}
