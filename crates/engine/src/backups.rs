//! Who may make backups and where, and how to verify and restore one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use weighlock_backup::{Archiver, BackupView, Destination, Restore, RestoreReport, VerifiedBackup};
use weighlock_walls::Walls;

use crate::core::Core;
use crate::error::Error;
use crate::principal::{Principal, Right, Via};
use crate::sandboxes::Sandboxes;
use crate::state_dir::{make_private, take};
use crate::view::Reason;

/// Makes backups for those who may; see
/// [`Engine::backups`](crate::Engine::backups).
pub struct Backups {
    core: Arc<Core>,
    walls: Arc<Walls>,
    sandboxes: Arc<Sandboxes>,
    archiver: Arc<Archiver>,
}

/// What [`Backups`] stand on.
pub(crate) struct BackupsNeeds {
    pub(crate) core: Arc<Core>,
    pub(crate) walls: Arc<Walls>,
    pub(crate) sandboxes: Arc<Sandboxes>,
    pub(crate) archiver: Arc<Archiver>,
}

impl Backups {
    pub(crate) fn new(needs: BackupsNeeds) -> Self {
        let BackupsNeeds {
            core,
            walls,
            sandboxes,
            archiver,
        } = needs;
        Self {
            core,
            walls,
            sandboxes,
            archiver,
        }
    }
}

impl Backups {
    /// Makes a backup of the whole record. Without a directory, it goes into the
    /// state directory. It goes on if the caller stops waiting.
    pub async fn create(
        &self,
        directory: Option<PathBuf>,
        who: &Principal,
    ) -> Result<BackupView, Error> {
        who.check(Right::Administer)?;
        let archiver = &self.archiver;
        let destination = match directory {
            Some(directory) => Some(self.accept(&directory, who).await?),
            None => {
                make_private(&archiver.default_dir())?;
                None
            }
        };
        let made = archiver.create(destination, who.name()).await?;
        self.core.charge_entry(who.name(), &serde_json::json!(made));
        Ok(made)
    }

    async fn accept(&self, directory: &Path, who: &Principal) -> Result<PathBuf, Error> {
        if !owns_server_files(who) {
            return Err(Destination::refuse_stranger(directory).into());
        }
        let destination = Destination::resolve(directory)?;
        let is_visible = self.is_seen_by_commands(destination.path()).await;
        Ok(self.archiver.accept(destination, is_visible)?)
    }

    /// Returns whether a command in any sandbox could see a path.
    async fn is_seen_by_commands(&self, path: &Path) -> bool {
        let all = self.sandboxes.all();
        let sandboxes = all.iter().map(|known| &*known.sandbox);
        self.walls.is_visible(path, sandboxes).await
    }
}

/// Returns whether somebody could write the same files without the server.
fn owns_server_files(who: &Principal) -> bool {
    match who.via() {
        Via::Socket { uid, .. } => *uid == 0 || *uid == rustix::process::geteuid().as_raw(),
        Via::Library => true,
        Via::Token { .. } | Via::SignIn | Via::Record => false,
    }
}

/// Checks that a backup is intact; with an expected hash, also that it is that
/// backup.
pub fn verify_backup(dir: &Path, expected: Option<&str>) -> Result<VerifiedBackup, Error> {
    Ok(weighlock_backup::verify_backup(dir, expected)?)
}

/// Restores a backup into an empty state directory, if everything in it is
/// intact. `by` is who does so, for the record.
pub async fn restore_backup(
    from: &Path,
    state_dir: &Path,
    expected: Option<&str>,
    by: &str,
) -> Result<RestoreReport, Error> {
    let restore = Restore::prepare(from, state_dir, expected)?;
    make_private(state_dir)?;
    let _lock = take(state_dir)?;
    let reason = unfinished_reason(&restore.backup().made_at);
    let reason = serde_json::to_value(reason).expect("a reason is plain data");
    Ok(restore.run(by, reason).await?)
}

/// Why a run of a restored record has no proper end.
fn unfinished_reason(made_at: &str) -> Reason {
    Reason::new(
        "restored",
        format!(
            "The record was restored from a backup of {made_at}, when this had not ended. What \
             became of it since is not known here."
        ),
    )
    .with_remedy("Check what it did before running it again.")
}

impl From<weighlock_backup::Error> for Error {
    fn from(error: weighlock_backup::Error) -> Self {
        match error {
            weighlock_backup::Error::Running => Self::BackingUp,
            weighlock_backup::Error::Invalid { code, detail, hint } => {
                Self::invalid(code, detail, hint)
            }
            weighlock_backup::Error::Store(error) => Self::Store(error),
            weighlock_backup::Error::File { path, source } => Self::File { path, source },
        }
    }
}
