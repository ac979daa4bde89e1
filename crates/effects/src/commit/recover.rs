//! Finishes, or takes back, what was cut off.

use std::path::Path;

use super::applied::Applied;
use super::error::{CommitError, cannot};
use super::work::Work;
use super::{finish, images, journal, tidy};

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovered {
    /// There was nothing to do.
    Nothing,
    /// The changes are in the live tree.
    Finished(Applied),
    /// Nothing of the changes is in the live tree.
    RolledBack,
}

/// Returns whether a commit in a directory was cut off, or goes on.
pub fn is_unfinished(dir: &Path) -> bool {
    journal::is_there(dir)
}

/// Brings a commit that was cut off to an end. May itself be cut off, and
/// called again.
pub fn recover(dir: &Path) -> Result<Recovered, CommitError> {
    let failed = || cannot("recover", dir);
    let applied = Applied::load(dir).map_err(failed())?;
    let Some(found) = journal::read(dir).map_err(failed())? else {
        journal::remove(dir).map_err(failed())?;
        if applied.is_none() {
            images::remove(dir).map_err(failed())?;
        }
        return Ok(Recovered::Nothing);
    };
    let ready = found.ready;
    let Some(mut work) = Work::resume(dir, found).map_err(stuck)? else {
        // Not even its first line was written.
        images::remove(dir).map_err(failed())?;
        journal::remove(dir).map_err(failed())?;
        return Ok(Recovered::RolledBack);
    };
    if let Some(applied) = applied {
        tidy(&mut work).map_err(failed())?;
        return Ok(Recovered::Finished(applied));
    }
    if !ready || work.progress.is_undone() {
        work.clear().map_err(failed())?;
        return Ok(Recovered::RolledBack);
    }
    if work.progress.goes_back() {
        let steps = work.steps.len();
        work.go_back(steps).map_err(failed())?;
        return Ok(Recovered::RolledBack);
    }
    match finish(work, true) {
        Ok(applied) => Ok(Recovered::Finished(applied)),
        Err(stuck @ CommitError::Stuck { .. }) => Err(stuck),
        Err(_) => Ok(Recovered::RolledBack),
    }
}

/// A root that is not there now may be there again later, such as a disk that
/// is not mounted yet.
fn stuck(failed: CommitError) -> CommitError {
    CommitError::Stuck {
        why: failed.to_string(),
        source: std::io::ErrorKind::NotFound.into(),
    }
}
