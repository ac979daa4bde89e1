//! How long copies and before-images are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;
use weighlock_effects::{Layer, forget_images};
use weighlock_store::{ChangesState, State};

use super::Drafts;
use crate::copies::{Copied, apart};
use crate::error::Error;
use crate::mutex::lock;
use crate::view::ChangesView;
use crate::view::{Run, stored};

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

/// How many are looked at in one go.
const BATCH: i64 = 100;

impl Drafts {
    /// Removes the copy of a run that nothing needs any more.
    pub(crate) async fn drop_copy(&self, run: &str) {
        if !self.is_copy_seen(run) {
            self.remove_copy(run).await;
        }
    }

    /// Removes the layers of a copy that was applied. Its files may be those of
    /// the live tree by now, and losing a name counts as a change: a run that
    /// begins after this must not take it for somebody else's.
    pub(super) async fn part_from_copy(&self, copied: &Copied) {
        let layers = copied.layers();
        apart(move || layers.iter().for_each(|dir| remove(dir))).await;
    }

    /// Returns what is known about a copy, if no other run sees it.
    pub(super) fn unseen_copy(&self, run: &str) -> Option<Copied> {
        let copied = Copied::load(&self.copy_dir(run)).ok().flatten();
        copied.filter(|_| !self.is_copy_seen(run))
    }

    pub(super) fn is_copy_seen(&self, run: &str) -> bool {
        self.copies_seen(&lock(&self.coming.0)).contains(run)
    }

    /// Removes copies that nothing needs any more: of changes that were
    /// applied or thrown away, and of runs that are no more.
    pub(crate) async fn sweep_copies(&self) {
        let dir = self.core.config.state_dir.join("layers");
        let mut unneeded = vec![];
        {
            let coming = lock(&self.coming.0);
            let mut used = self.copies_seen(&coming);
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

    pub(super) async fn remove_copy(&self, run: &str) {
        let dir = self.copy_dir(run);
        apart(move || remove(&dir)).await;
    }

    /// Held changes, and runs that have not been settled.
    fn is_needed(&self, run: &str) -> bool {
        let Ok(row) = self.core.store.changes(run) else {
            return true;
        };
        let held = row.is_some_and(|row| row.state == ChangesState::Held);
        let command = self
            .core
            .store
            .named(run)
            .ok()
            .and_then(|mut found| found.pop());
        held || command.is_some_and(|command| command.open || command.state == State::Running)
    }

    /// Copies that other runs see, or whose changes others were built on.
    fn copies_seen(&self, coming: &BTreeMap<String, Vec<String>>) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        used.extend(coming.values().flatten().cloned());
        for run in self.lives.ids() {
            if let Ok(Some(copied)) = Copied::load(&self.copy_dir(&run)) {
                used.extend(copied.below);
            }
            used.extend(self.lives.below(&run));
        }
        for row in self.core.store.held_changes(None).unwrap_or_default() {
            used.extend(row.below);
        }
        used
    }

    /// Removes the oldest before-images while there are too many or they are
    /// too old, and held changes that nobody wanted for long enough.
    pub(crate) async fn tidy_effects(&self) -> Result<(), Error> {
        self.looked_at.tidy();
        let oldest = self.core.steady_now() - self.limits.undo_age().as_micros() as i64;
        let mut kept = self.core.store.image_bytes()?;
        for row in self.core.store.oldest_images(BATCH)? {
            if kept <= self.limits.undo_bytes() && row.updated_at >= oldest {
                break;
            }
            kept = kept.saturating_sub(row.bytes);
            if let Err(error) = forget_images(&self.undo_dir(&row.run)) {
                tracing::warn!(%error, run = row.run, "cannot remove before-images");
                continue;
            }
            let mut view = ChangesView::from_row(&row);
            view.can_undo = false;
            let told = json!({ "bytes": row.bytes });
            let entry = self
                .core
                .entry("undo.forgotten", "weighlock", Some(&row.run), told);
            let row = weighlock_store::ChangesRow {
                bytes: 0,
                body: serde_json::to_value(&view).expect("a view is plain data"),
                ..row
            };
            let Some(mut command) = self.core.store.named(&row.run)?.pop() else {
                self.core
                    .store
                    .update_changes(vec![row], vec![entry])
                    .await?;
                continue;
            };
            let mut detail = Run::from_command(command.clone()).detail;
            detail.changes = Some(view);
            command.detail = stored(&detail);
            self.core
                .store
                .settle_changes(command, None, row, vec![entry])
                .await?;
        }
        let oldest = self.core.steady_now() - self.limits.draft_age().as_micros() as i64;
        for row in self.core.store.held_changes(None)? {
            let command = self.core.store.named(&row.run)?.pop();
            let asked = command.is_some_and(|command| command.state == State::Waiting);
            if row.updated_at < oldest && !asked {
                self.throw_away(&row.run, "clock").await?;
            }
        }
        Ok(())
    }
}

fn remove(dir: &Path) {
    if let Err(error) = Layer::remove(dir) {
        tracing::warn!(%error, dir = %dir.display(), "cannot remove a copy");
    }
}
