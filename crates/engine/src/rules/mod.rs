//! The rules: which are in force, what they say about a command, and how
//! people change them.

mod blacklist;
mod compare;
mod explain;
mod files;
mod judge;
mod listed;
mod memory;
mod past;
mod save;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use weighlock_walls::Walls;

use self::memory::Freed;
use crate::core::Core;
use crate::error::Error;
use crate::policy::Policy;
use crate::sandboxes::Sandboxes;
use crate::session::Sessions;

pub use self::blacklist::BlacklistFile;
pub use self::compare::{Compared, ComparedCommand};
pub(crate) use self::explain::{reason_view, written};
pub(crate) use self::files::tag;
pub use self::files::{PolicyText, RuleEdit, RuleEdited, RuleInfo, RulesChecked, VersionView};
pub use self::judge::{Judge, check_rules};
pub(crate) use self::judge::{Judged, Where, clean};
pub use self::listed::Listed;
pub use self::past::PastCommand;
pub(crate) use self::past::{Past, past_command};
pub use self::save::Save;

/// Finds the directories that held changes of a session are in: each directory
/// with the one that has changes to it. Held changes are kept by a part of the
/// engine that stands on the rules, so it is handed in.
pub(crate) type HeldLayers = fn(&Core, &str) -> Result<Vec<(PathBuf, PathBuf)>, Error>;

/// The rules in force: judges requests, explains verdicts, and keeps rule files,
/// grants and the blacklist; see [`Engine::rules`](crate::Engine::rules).
///
/// | subject | methods |
/// |---|---|
/// | a verdict | [`Rules::explain`] |
/// | all rules in force | [`Rules::describe`] |
/// | grants | [`Rules::list_grants`], [`Rules::add_grant`], [`Rules::revoke_grant`] |
/// | a rule file | [`Rules::read_file`], [`Rules::save_file`] |
/// | its versions | [`Rules::list_versions`], [`Rules::restore_version`] |
/// | a draft of one | [`Rules::check_text`], [`Rules::edit_text`], [`Rules::compare_draft`] |
/// | the blacklist | [`Rules::blacklist`], [`Rules::save_blacklist`], [`Rules::reset_blacklist`], [`Rules::try_blacklist`] |
pub struct Rules {
    core: Arc<Core>,
    walls: Arc<Walls>,
    sandboxes: Arc<Sandboxes>,
    sessions: Arc<Sessions>,
    held_layers: HeldLayers,
    policy: Policy,
    /// The version of the server's rules; 0 where they were never saved here.
    version: AtomicI64,
    /// Held while a rule file is saved.
    saving: tokio::sync::Mutex<()>,
    /// Memory that can be given back.
    freed: Freed,
}

/// The parts of the engine that [`Rules`] stands on.
pub(crate) struct Below {
    pub(crate) core: Arc<Core>,
    pub(crate) walls: Arc<Walls>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) held_layers: HeldLayers,
}

impl Rules {
    /// Puts rule files that were read and the grants of the store in force.
    pub(crate) fn open(policy: Policy, below: Below) -> Result<Self, Error> {
        let rules = Self {
            core: below.core,
            walls: below.walls,
            sandboxes: below.sandboxes,
            sessions: below.sessions,
            held_layers: below.held_layers,
            policy,
            version: AtomicI64::new(0),
            saving: tokio::sync::Mutex::default(),
            freed: Freed::default(),
        };
        rules.reload_grants()?;
        rules.reload_version()?;
        Ok(rules)
    }
}
