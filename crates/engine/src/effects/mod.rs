//! What runs change: on a copy first, seen and judged, and only then applied.
//!
//! ```text
//! plan ─▶ layers/RUN ─▶ run ─▶ scan ─▶ judge ─▶ nothing: done
//!                                               auto: applied, done
//!                                               ask: a question ─▶ applied or discarded
//! ```
//!
//! Files are beside the database: `layers/RUN` holds what a run wrote and what
//! is known about it, `undo/RUN` what is needed to take it back.

mod apply;
mod copy;
mod draft;
mod end;
mod judge;
mod keep;
mod list;
mod question;
mod try_out;
mod undo;
mod words;

use std::path::PathBuf;

pub(crate) use self::draft::held_layers;
pub use self::draft::{Draft, DraftRun};
pub(crate) use self::keep::{Comes, Coming};
pub(crate) use self::list::LookedAt;
pub use self::list::{ChangeInfo, ChangesInfo, FileDiff};
use crate::core::Core;
use crate::engine::Engine;

/// The file in a copy's directory that describes it.
const COPIED: &str = "run.json";

/// The file with the changes found on it.
const CHANGES: &str = "changes.json";

/// Does what reads and writes files, without anybody else having to wait.
async fn apart<T: Send + 'static>(deed: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(deed)
        .await
        .expect("looking and applying do not panic")
}

/// Returns the directory of a run's copy.
fn copy_dir(core: &Core, run: &str) -> PathBuf {
    core.config.state_dir.join("layers").join(run)
}

impl Engine {
    /// Where a run's copy is.
    fn copy_dir(&self, run: &str) -> PathBuf {
        copy_dir(&self.core, run)
    }

    /// Where is what taking a run's changes back needs.
    fn undo_dir(&self, run: &str) -> PathBuf {
        self.core.config.state_dir.join("undo").join(run)
    }
}
