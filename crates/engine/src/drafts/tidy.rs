//! How long before-images and held changes are kept.

use serde_json::json;
use weighlock_effects::forget_images;
use weighlock_store::State;

use super::Drafts;
use crate::error::Error;
use crate::view::ChangesRecord;
use crate::view::ChangesView;
use crate::view::RunRecord;
use crate::view::{Run, stored};

/// How many are looked at in one go.
const BATCH: i64 = 100;

impl Drafts {
    /// Removes the oldest before-images while there are too many or they are
    /// too old, and held changes that nobody wanted for long enough.
    pub(crate) async fn tidy_effects(&self) -> Result<(), Error> {
        self.looked_at.tidy();
        let oldest = self.core.steady_now() - self.limits.undo_age().as_micros() as i64;
        let mut kept = self.core.store.changes().image_bytes()?;
        for row in self.core.store.changes().oldest_images(BATCH)? {
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
            let Some(mut command) = self.core.store.commands().named(&row.run)?.pop() else {
                self.core
                    .store
                    .changes()
                    .update(vec![row], vec![entry])
                    .await?;
                continue;
            };
            let mut detail = Run::from_command(command.clone()).detail;
            detail.changes = Some(view);
            command.detail = stored(&detail);
            self.core
                .store
                .changes()
                .settle(command, None, row, vec![entry])
                .await?;
        }
        let oldest = self.core.steady_now() - self.limits.draft_age().as_micros() as i64;
        for row in self.held_if_readable()? {
            let command = self.core.store.commands().named(&row.run)?.pop();
            let asked = command.is_some_and(|command| command.state == State::Waiting);
            if row.updated_at < oldest && !asked {
                self.throw_away(&row.run, "clock").await?;
            }
        }
        Ok(())
    }
}
