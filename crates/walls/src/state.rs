//! The settings for walls, and what has been found out about directories.

use std::sync::Arc;
use std::time::Duration;

use weighlock_confine::Mount;

use crate::blacklist::BlacklistGuard;
use crate::repositories::Repositories;
use crate::secret_files::SecretFileFinder;
use crate::settings::WallSettings;
use crate::timed_cache::TimedCache;

/// How long a list of toolchains is valid. Finding them takes dozens of system
/// calls, and a person seldom installs one.
const TOOLCHAINS_FOR: Duration = Duration::from_secs(5);

/// How long it is valid whether a directory can be shown as a copy. Finding out
/// takes a process, and it changes only when a file system is mounted.
const COPIES_FOR: Duration = Duration::from_secs(60);

/// The settings for walls, and what takes too long to find out for every run.
pub(crate) struct WallState {
    pub(crate) settings: WallSettings,
    pub(crate) repositories: Repositories,
    pub(crate) toolchains: TimedCache<Vec<Mount>>,
    pub(crate) secret_files: SecretFileFinder,
    /// Why a directory cannot be shown as a copy; `None` if it can.
    pub(crate) copies: TimedCache<Option<String>>,
    /// The same for directories of root's, which are lent to a run.
    pub(crate) lent_copies: TimedCache<Option<String>>,
    pub(crate) blacklist: Arc<BlacklistGuard>,
}

impl WallState {
    pub(crate) fn new(settings: WallSettings) -> Self {
        Self {
            repositories: Repositories::default(),
            toolchains: TimedCache::new(TOOLCHAINS_FOR),
            secret_files: SecretFileFinder::new(settings.secret_files.clone()),
            copies: TimedCache::new(COPIES_FOR),
            lent_copies: TimedCache::new(COPIES_FOR),
            blacklist: BlacklistGuard::new(&settings.base, &settings.state_dir),
            settings,
        }
    }
}
