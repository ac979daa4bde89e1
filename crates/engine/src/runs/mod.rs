//! Runs: finding them again, and waiting for what they do.
//!
//! | subject | methods |
//! |---|---|
//! | one run, or many | [`Runs::find`], [`Runs::find_checked`], [`Runs::list`], [`Runs::count`], [`Runs::filter`] |
//! | the end of a run | [`Runs::wait`], [`Runs::closed`] |
//! | anything that runs may do | [`Runs::wait_for`] |
//! | what a run uses, and what it reads | [`Runs::load`], [`Runs::feed`] |
//! | tasks | [`Runs::tasks`], [`Runs::task_view`], [`Runs::task_output`] |
//! | terminals | [`Runs::find_terminal`] |
//!
//! Nothing here starts or ends a run.

mod end;
mod lookup;
mod one;
mod outcome;
mod query;
mod tasks;
mod terminals;
mod until;
mod wait;
mod waiters;

use std::sync::Arc;

pub(crate) use self::end::RETRY_EVERY;
pub(crate) use self::one::looked;
pub use self::outcome::Outcome;
pub use self::tasks::OutputFrom;
use self::tasks::ReadTo;
pub(crate) use self::tasks::output_file_name;
pub use self::until::{Kind, Met, Waited, Waiting, Wanted};
pub(crate) use self::waiters::Waiters;
use crate::core::Core;
use crate::live::Lives;
use crate::output::Outputs;
use crate::sandboxes::Sandboxes;
pub use weighlock_api::{ProcessView, TaskOutput, TaskView};

/// Finds runs and waits for them; see [`Engine::runs`](crate::Engine::runs).
pub struct Runs {
    core: Arc<Core>,
    sandboxes: Arc<Sandboxes>,
    lives: Arc<Lives>,
    outputs: Arc<Outputs>,
    waiters: Arc<Waiters>,
    read_to: ReadTo,
}

impl Runs {
    pub(crate) fn new(
        core: Arc<Core>,
        sandboxes: Arc<Sandboxes>,
        lives: Arc<Lives>,
        outputs: Arc<Outputs>,
        waiters: Arc<Waiters>,
    ) -> Self {
        Self {
            core,
            sandboxes,
            lives,
            outputs,
            waiters,
            read_to: ReadTo::default(),
        }
    }
}
