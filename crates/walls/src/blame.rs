//! Explains a failed run by its sandbox's walls.

use std::path::{Path, PathBuf};

use weighlock_confine::{Access, PRIVATE, SYSTEM};

use crate::denial::{Denial, FileFence, LimitValues, WallMap, find_denials};
use crate::protect::{Protection, find_surface};
use crate::run_user::RunUser;
use crate::sandbox::Sandbox;
use crate::state::WallState;

/// Directories of a home directory that begin empty in every sandbox: a missing
/// file there is simply missing. Elsewhere it may be hidden.
const EMPTY_IN_HOME: &[&str] = &[".cache", ".cargo", ".config", ".local", ".npm", "go"];

/// A run whose errors are to be explained, with the walls that it had.
pub struct FailedRun<'a> {
    /// Its sandbox as it is now.
    pub sandbox: &'a Sandbox,
    /// The directory that it could use.
    pub directory: Option<&'a Path>,
    /// Its working directory.
    pub cwd: &'a Path,
    /// It was proved to only read, and could write nothing.
    pub read_only: bool,
    /// It had no network. What runs on a copy has none in any sandbox.
    pub offline: bool,
    /// Landlock alone kept files away.
    pub landlock_only: bool,
}

/// Names the walls that a run has met, according to its standard error.
pub(crate) fn explain_failure(state: &WallState, run: &FailedRun<'_>, stderr: &str) -> Vec<Denial> {
    let sandbox = run.sandbox;
    let Ok(user) = RunUser::find(sandbox, run.directory, &state.settings.home) else {
        return vec![];
    };
    let trees = VisibleTrees::of_run(state, run, &user);
    let limits = &sandbox.limits;
    let walls = WallMap {
        name: &sandbox.name,
        cwd: run.cwd,
        readable: &trees.readable,
        writable: &trees.writable,
        protected: &trees.protected,
        // Where a person allows a command in a sandbox that is always
        // read-only, the home directory is writable.
        closed_home: run.read_only.then_some(&*user.home),
        network_off: run.offline,
        fence: if run.landlock_only {
            FileFence::Landlock
        } else {
            FileFence::Mounts
        },
        limits: LimitValues {
            memory_bytes: Some(limits.memory_bytes),
            processes: Some(limits.processes),
            open_files: Some(limits.open_files),
            file_bytes: Some(limits.file_bytes),
        },
    };
    find_denials(stderr, &walls)
}

/// Returns the absolute paths in a directory that are read-only because other
/// programs run them.
pub(crate) fn protected_paths(
    state: &WallState,
    dir: &Path,
    unprotected: &[String],
) -> Vec<PathBuf> {
    let surface = find_surface(dir, &state.repositories.list_below(dir), unprotected);
    let entries = surface.entries.into_iter();
    let read_only = entries.filter(|entry| entry.protection == Protection::ReadOnly);
    read_only.map(|entry| dir.join(entry.path)).collect()
}

/// What a run could see and write.
struct VisibleTrees {
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

impl VisibleTrees {
    fn of_run(state: &WallState, run: &FailedRun<'_>, user: &RunUser) -> Self {
        let sandbox = run.sandbox;
        let expand = |path: &PathBuf| user.expand_home(path);
        let mut writable: Vec<PathBuf> = PRIVATE.iter().map(PathBuf::from).collect();
        writable.extend(EMPTY_IN_HOME.iter().map(|name| user.home.join(name)));
        let mut readable: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        readable.extend(["/proc".into(), "/dev".into()]);
        readable.extend(writable.iter().cloned());
        readable.extend(sandbox.read.iter().chain(&sandbox.write).map(expand));
        writable.extend(sandbox.write.iter().map(expand));
        let mut protected = vec![];
        if let Some(dir) = run.directory {
            if sandbox.files == Access::Write {
                writable.push(dir.to_owned());
                protected = protected_paths(state, dir, &sandbox.unprotected);
            }
            readable.push(dir.to_owned());
        }
        Self {
            readable,
            writable,
            protected,
        }
    }
}
