//! How long copies are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use weighlock_effects::Layer;
use weighlock_store::{ChangesState, State};

use super::Copies;
use crate::copied::{Copied, apart, copy_dir};
use crate::mutex::lock;

/// Runs that are about to begin, with the runs whose copies they will see.
/// Nothing says yet on record that they need them.
#[derive(Default)]
pub(crate) struct Coming(Arc<Mutex<BTreeMap<String, Vec<String>>>>);

/// One of them, as long as this is kept.
pub(crate) struct Comes {
    run: String,
    all: Arc<Mutex<BTreeMap<String, Vec<String>>>>,
}

impl Coming {
    /// Announces a run. What it needs is found while nothing is thrown away.
    pub(super) fn announce<E>(
        &self,
        run: &str,
        needs: impl FnOnce() -> Result<Vec<String>, E>,
    ) -> Result<Comes, E> {
        let mut coming = lock(&self.0);
        coming.insert(run.to_owned(), needs()?);
        Ok(Comes {
            run: run.to_owned(),
            all: Arc::clone(&self.0),
        })
    }
}

impl Drop for Comes {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.run);
    }
}

impl Copies {
    /// Removes the copy of a run that nothing needs any more.
    pub(crate) async fn drop_copy(&self, run: &str) {
        if !self.is_copy_seen(run) {
            self.remove_copy(run).await;
        }
    }

    /// Removes the layers of a copy that was applied. Its files may be those of
    /// the live tree by now, and losing a name counts as a change: a run that
    /// begins after this must not take it for somebody else's.
    pub(crate) async fn part_from_copy(&self, copied: &Copied) {
        let layers = copied.layers();
        apart(move || layers.iter().for_each(|dir| remove(dir))).await;
    }

    /// Returns what is known about a copy, if no other run sees it.
    pub(crate) fn unseen_copy(&self, run: &str) -> Option<Copied> {
        let copied = Copied::load(&copy_dir(&self.core, run)).ok().flatten();
        copied.filter(|_| !self.is_copy_seen(run))
    }

    pub(crate) fn is_copy_seen(&self, run: &str) -> bool {
        self.copies_seen(&lock(&self.coming.0))
            .is_none_or(|seen| seen.contains(run))
    }

    /// Removes copies that nothing needs any more: of changes that were
    /// applied or thrown away, and of runs that are no more.
    pub(crate) async fn sweep_copies(&self) {
        let dir = self.core.config.state_dir.join("layers");
        let mut unneeded = vec![];
        {
            let coming = lock(&self.coming.0);
            let Some(mut used) = self.copies_seen(&coming) else {
                return;
            };
            used.extend(coming.keys().cloned().chain(self.lives.ids()));
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                let run = entry.file_name().to_string_lossy().into_owned();
                if !used.contains(&run) && !self.is_needed(&run) {
                    unneeded.push(run);
                }
            }
        }
        for run in unneeded {
            self.remove_copy(&run).await;
        }
    }

    pub(crate) async fn remove_copy(&self, run: &str) {
        let dir = copy_dir(&self.core, run);
        apart(move || remove(&dir)).await;
    }

    /// Held changes, and runs that have not been settled.
    fn is_needed(&self, run: &str) -> bool {
        let Ok(row) = self.core.store.changes().of_run(run) else {
            return true;
        };
        let held = row.is_some_and(|row| row.state == ChangesState::Held);
        let command = self
            .core
            .store
            .commands()
            .named(run)
            .ok()
            .and_then(|mut found| found.pop());
        held || command.is_some_and(|command| command.open || command.state == State::Running)
    }

    /// Returns the copies that other runs see, or whose changes others were built
    /// on; nothing if that cannot be told, so that all are kept.
    fn copies_seen(&self, coming: &BTreeMap<String, Vec<String>>) -> Option<BTreeSet<String>> {
        let mut used = BTreeSet::new();
        used.extend(coming.values().flatten().cloned());
        for run in self.lives.ids() {
            if let Ok(Some(copied)) = Copied::load(&copy_dir(&self.core, &run)) {
                used.extend(copied.below);
            }
            used.extend(self.lives.below(&run));
        }
        for row in self.core.store.changes().held(None).ok()? {
            used.extend(row.below);
        }
        Some(used)
    }
}

fn remove(dir: &Path) {
    if let Err(error) = Layer::remove(dir) {
        tracing::warn!(%error, dir = %dir.display(), "cannot remove a copy");
    }
}
