//! A writable directory during a run, and what is checked in it afterwards.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::blacklist::SuspectRun;
use crate::home::{HomeLeftovers, HomeSnapshot};
use crate::lock::lock;
use crate::protect::{AutoExecSurface, find_replaced};

/// A writable directory during a run.
pub struct GuardedDir {
    dir: PathBuf,
    home: HomeSnapshot,
    /// What is protected in it; nothing on a copy.
    surface: AutoExecSurface,
    /// Set while the run could create a blacklist in it.
    suspect: Mutex<Option<SuspectRun>>,
}

impl GuardedDir {
    pub(crate) fn new(dir: &Path, surface: AutoExecSurface, suspect: Option<SuspectRun>) -> Self {
        Self {
            dir: dir.to_owned(),
            home: HomeSnapshot::default(),
            surface,
            suspect: Mutex::new(suspect),
        }
    }

    pub(crate) fn with_home(self, home: HomeSnapshot) -> Self {
        Self { home, ..self }
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the relative paths of files that the run created or replaced and
    /// that other programs will run.
    pub fn find_replaced(&self) -> Vec<PathBuf> {
        find_replaced(&self.dir, &self.surface)
    }

    /// Returns what the run created in its home directory.
    pub fn home_leftovers(&self) -> Option<HomeLeftovers> {
        self.home.find_leftovers(&self.dir)
    }

    /// Ends the suspicion that the run creates a blacklist: no process of it is
    /// left.
    pub fn release(&self) {
        drop(lock(&self.suspect).take());
    }
}
