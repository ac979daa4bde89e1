//! The copies that runs work on, as they lie in the state directory: what is
//! known about each, and where it has what.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use serde::{Deserialize, Serialize};
use weighlock_effects::{Root, Source, Time};
use weighlock_walls::{LowerCopy, Sandbox, Walls, WorkDir};

use crate::core::Core;
use crate::error::Error;
use crate::rules::clean;

/// The name of what is known about a copy, in its directory.
pub(crate) const COPIED: &str = "run.json";

/// The name of what was found on it.
pub(crate) const CHANGES: &str = "changes.json";

/// What is known about a copy, kept beside it: a later server may have to go
/// on with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Copied {
    /// The directories that it saw through layers.
    pub(crate) roots: Vec<Root>,
    /// Where it has what was written to the home directory, if that is not to
    /// stay.
    #[serde(default)]
    pub(crate) home: Option<PathBuf>,
    /// Runs whose held changes it saw, the newest first.
    pub(crate) below: Vec<String>,
    /// When it began, as file systems tell the time.
    pub(crate) since: Time,
    /// The request, to judge its changes by and to try it again from.
    pub(crate) request: String,
    /// A person has allowed such commands beforehand.
    pub(crate) allowed: bool,
    /// It could not read secret files.
    #[serde(default)]
    pub(crate) closed: bool,
    /// Every change is asked about.
    pub(crate) ask_all: bool,
    /// A person wanted to see it before answering.
    pub(crate) for_question: bool,
    /// What it could reach: hosts that the command names, if it could reach
    /// anything.
    pub(crate) network: Option<Vec<String>>,
    /// The card of the command in a question.
    pub(crate) card: serde_json::Value,
}

/// Returns the directory of a run's copy.
pub(crate) fn copy_dir(core: &Core, run: &str) -> PathBuf {
    core.config.state_dir.join("layers").join(run)
}

/// Returns the directory of what taking a run's changes back needs.
pub(crate) fn undo_dir(core: &Core, run: &str) -> PathBuf {
    core.config.state_dir.join("undo").join(run)
}

/// Finds where the held changes of a session are: each directory with the one
/// that has changes to it.
pub(crate) fn held_layers(core: &Core, session: &str) -> Result<Vec<(PathBuf, PathBuf)>, Error> {
    let mut layers = vec![];
    for row in core.store.changes().held(Some(session))? {
        let dir = copy_dir(core, &row.run);
        let copied = Copied::load(&dir).map_err(Error::file(&dir))?;
        layers.extend(copied.iter().flat_map(Copied::uppers));
    }
    Ok(layers)
}

/// Finds a working directory that only the held changes of a session have.
pub(crate) fn find_work_dir(
    core: &Core,
    walls: &Walls,
    sandbox: &Sandbox,
    asked: Option<&str>,
    session: &str,
) -> Result<Option<WorkDir>, Error> {
    let whole = walls.directory_of(sandbox);
    let path = clean(&whole.join(asked.unwrap_or(".")));
    if !path.starts_with(whole) || path.to_str().is_none() {
        return Ok(None);
    }
    for row in core.store.changes().held(Some(session))? {
        let copied = Copied::load(&copy_dir(core, &row.run)).ok().flatten();
        let roots = copied.map_or(vec![], |copied| copied.roots);
        let found = roots.iter().find_map(|root| open_upper(root, &path));
        if let Some(fd) = found {
            return Ok(Some(WorkDir { path, fd }));
        }
    }
    Ok(None)
}

impl Copied {
    pub(crate) fn load(dir: &Path) -> io::Result<Option<Self>> {
        match fs::read(dir.join(COPIED)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn save(&self, dir: &Path) -> io::Result<()> {
        fs::write(dir.join(COPIED), serde_json::to_vec(self)?)
    }

    /// Where its layers are.
    pub(crate) fn layers(&self) -> Vec<PathBuf> {
        let uppers = self.roots.iter().filter_map(|root| match &root.source {
            Source::Upper(upper) => Some(upper),
            Source::Images(_) | Source::Live(_) => None,
        });
        let layers = uppers.chain(&self.home).filter_map(|upper| upper.parent());
        layers.map(Path::to_owned).collect()
    }

    /// The directories that it wrote to, each with where it has that.
    pub(crate) fn uppers(&self) -> impl Iterator<Item = (PathBuf, PathBuf)> {
        self.roots.iter().filter_map(|root| match &root.source {
            Source::Upper(upper) => Some((root.live.clone(), upper.clone())),
            Source::Images(_) | Source::Live(_) => None,
        })
    }

    /// Returns what a later run sees of it.
    pub(crate) fn lower_copy(&self, run: String) -> LowerCopy {
        LowerCopy {
            run,
            uppers: self.uppers().collect(),
            home: self.home.clone(),
            allowed: self.allowed,
            closed: self.closed,
        }
    }
}

/// Opens a directory as a layer has it.
fn open_upper(root: &Root, path: &Path) -> Option<OwnedFd> {
    let Source::Upper(upper) = &root.source else {
        return None;
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let upper = open(upper, flags, Mode::empty()).ok()?;
    let rest = path.strip_prefix(&root.live).ok()?;
    openat2(upper, rest, flags, Mode::empty(), resolve).ok()
}

/// Does what reads and writes files, without anybody else having to wait.
pub(crate) async fn apart<T: Send + 'static>(deed: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(deed)
        .await
        .expect("looking and applying do not panic")
}
