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
//!
//! | subject | methods |
//! |---|---|
//! | the end of a run on a copy | [`Drafts::settle_copy`] |
//! | changes as a person looks at them | [`Drafts::changes`], [`Drafts::diff`], [`Drafts::patch`] |
//! | those of a session | [`Drafts::list`], [`Drafts::draft_changes`], [`Drafts::draft_diff`], [`Drafts::draft_patch`] |
//! | a question about changes, as it is now | [`Drafts::look_at_changes`], [`Drafts::renew_changes`], [`Drafts::check_order`] |
//! | applying, discarding, taking back | [`Drafts::apply_approved`], [`Drafts::throw_away`], [`Drafts::undo`] |
//! | a restart, and what is old | [`Drafts::recover_held`], [`Drafts::recover_undo`], [`Drafts::tidy_effects`] |
//!
//! Answers of people come through the inbox, which stands on this.

mod apply;
mod draft;
mod end;
mod judge;
mod list;
mod question;
mod tidy;
mod try_out;
mod undo;
mod words;

use std::path::PathBuf;
use std::sync::Arc;

use weighlock_backup::Archiver;
use weighlock_walls::Walls;

use self::list::LookedAt;
pub use self::list::{ChangeInfo, ChangesInfo, FileDiff};
use crate::case::Cases;
use crate::copied::{copy_dir, undo_dir};
use crate::copies::Copies;
use crate::core::Core;
use crate::limits::RuntimeLimits;
use crate::live::Lives;
use crate::pause::Pauses;
use crate::questions::Questions;
use crate::retention::Retention;
use crate::rules::Rules;
use crate::runs::{Runs, Waiters};
use crate::sandboxes::Sandboxes;
use crate::traces::Tracer;
pub use weighlock_api::{Draft, DraftRun};

/// Keeps what runs changed on copies; see
/// [`Engine::drafts`](crate::Engine::drafts).
pub struct Drafts {
    core: Arc<Core>,
    walls: Arc<Walls>,
    limits: Arc<RuntimeLimits>,
    sandboxes: Arc<Sandboxes>,
    pauses: Arc<Pauses>,
    rules: Arc<Rules>,
    tracer: Arc<Tracer>,
    archiver: Arc<Archiver>,
    lives: Arc<Lives>,
    waiters: Arc<Waiters>,
    runs: Arc<Runs>,
    retention: Arc<Retention>,
    cases: Arc<Cases>,
    copies: Arc<Copies>,
    questions: Arc<Questions>,
    /// Held while changes are applied. [`Archiver::hold_files`] is called before
    /// it is locked.
    committing: tokio::sync::Mutex<()>,
    /// What was looked at last, as it was read.
    looked_at: LookedAt,
}

/// What [`Drafts`] stand on.
pub(crate) struct DraftsNeeds {
    pub(crate) core: Arc<Core>,
    pub(crate) walls: Arc<Walls>,
    pub(crate) limits: Arc<RuntimeLimits>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) pauses: Arc<Pauses>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) tracer: Arc<Tracer>,
    pub(crate) archiver: Arc<Archiver>,
    pub(crate) lives: Arc<Lives>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) retention: Arc<Retention>,
    pub(crate) cases: Arc<Cases>,
    pub(crate) copies: Arc<Copies>,
    pub(crate) questions: Arc<Questions>,
}

impl Drafts {
    pub(crate) fn new(needs: DraftsNeeds) -> Self {
        let DraftsNeeds {
            core,
            walls,
            limits,
            sandboxes,
            pauses,
            rules,
            tracer,
            archiver,
            lives,
            waiters,
            runs,
            retention,
            cases,
            copies,
            questions,
        } = needs;
        Self {
            committing: tokio::sync::Mutex::default(),
            looked_at: LookedAt::default(),
            core,
            walls,
            limits,
            sandboxes,
            pauses,
            rules,
            tracer,
            archiver,
            lives,
            waiters,
            runs,
            retention,
            cases,
            copies,
            questions,
        }
    }
}

impl Drafts {
    /// Where a run's copy is.
    pub(super) fn copy_dir(&self, run: &str) -> PathBuf {
        copy_dir(&self.core, run)
    }

    /// Where is what taking a run's changes back needs.
    pub(super) fn undo_dir(&self, run: &str) -> PathBuf {
        undo_dir(&self.core, run)
    }
}
