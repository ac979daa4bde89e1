//! The copies that runs work on: whether a run gets one, what it sees there, and
//! how long it is kept.
//!
//! | subject | methods |
//! |---|---|
//! | when a person is asked | [`Copies::review`], [`Copies::is_tried`], [`Copies::is_previewed`] |
//! | what a run sees, and where it writes | [`Copies::layers`], [`Copies::keep_copy`] |
//! | why there can be none | [`Copies::why_no_copy`], [`Copies::why_no_copies`] |
//! | removing them | [`Copies::drop_copy`], [`Copies::sweep_copies`], [`Copies::remove_copy`] |

mod keep;
mod review;

use std::sync::Arc;

use weighlock_exec::Nursery;
use weighlock_walls::Walls;

pub(crate) use self::keep::Comes;
use self::keep::Coming;
pub(crate) use self::review::no_copy;
use crate::core::Core;
use crate::live::Lives;

/// Makes copies for runs, and removes them.
pub(crate) struct Copies {
    core: Arc<Core>,
    nursery: Arc<Nursery>,
    walls: Arc<Walls>,
    lives: Arc<Lives>,
    /// Runs that are about to begin.
    coming: Coming,
}

/// What [`Copies`] stand on.
pub(crate) struct CopiesNeeds {
    pub(crate) core: Arc<Core>,
    pub(crate) nursery: Arc<Nursery>,
    pub(crate) walls: Arc<Walls>,
    pub(crate) lives: Arc<Lives>,
}

impl Copies {
    pub(crate) fn new(needs: CopiesNeeds) -> Self {
        let CopiesNeeds {
            core,
            nursery,
            walls,
            lives,
        } = needs;
        Self {
            coming: Coming::default(),
            core,
            nursery,
            walls,
            lives,
        }
    }
}
