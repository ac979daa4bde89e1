//! What the engine calls to have walls built and explained.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use weighlock_confine::is_root;

use crate::blacklist::BlacklistGuard;
use crate::blame::{self, FailedRun};
use crate::denial::Denial;
use crate::error::Error;
use crate::home::list_homes;
use crate::layers::{CopyLayers, find_mount_below};
use crate::login_shell::{LoginPath, LoginShell};
use crate::profile::{RunWalls, WallRequest, build_profile, is_owned_by_root};
use crate::sandbox::Sandbox;
use crate::search_path::search_path;
use crate::settings::WallSettings;
use crate::state::WallState;
use crate::visibility::is_visible;

/// Builds the walls of runs on this machine. Owns the settings that they depend
/// on, and caches what takes long to find out.
pub struct Walls {
    state: WallState,
    login: LoginShell,
}

impl Walls {
    /// Starts to ask the login shell for its PATH, if the settings say so. Must
    /// be called in a Tokio runtime.
    pub fn new(settings: WallSettings) -> Self {
        Self {
            login: LoginShell::start_asking(settings.asks_login_shell),
            state: WallState::new(settings),
        }
    }

    /// Builds the walls of a run. May create directories, and layers for a copy.
    pub fn build(
        &self,
        request: &WallRequest<'_>,
        layers: &mut CopyLayers,
    ) -> Result<RunWalls, Error> {
        build_profile(&self.state, request, layers)
    }

    /// Returns the home directory of the server's own user.
    pub fn home(&self) -> &Path {
        &self.state.settings.home
    }

    /// Returns the part of the server's environment that commands see.
    pub fn server_env(&self) -> &[(String, String)] {
        &self.state.settings.server_env
    }

    /// Returns the guard that detects blacklists which runs have made.
    pub fn blacklist(&self) -> &Arc<BlacklistGuard> {
        &self.state.blacklist
    }

    /// Waits for the login shell, and returns its PATH.
    pub async fn login_path(&self) -> LoginPath {
        self.login.login_path().await
    }

    /// Waits for the login shell, and returns the PATH of commands.
    pub async fn search_path(&self) -> String {
        search_path(self.login_path().await.path(), self.server_env())
    }

    /// Returns the directory of a sandbox.
    pub fn directory_of<'a>(&'a self, sandbox: &'a Sandbox) -> &'a Path {
        self.state.settings.directory_of(sandbox)
    }

    /// Returns the directory that a run in `cwd` may use: the sandbox's; or, if
    /// that holds more than a project, the repository around `cwd`, or else
    /// `cwd` itself. `None` if that is too wide as well.
    pub fn usable_directory(&self, sandbox: &Sandbox, cwd: &Path) -> Option<PathBuf> {
        self.state.settings.usable_directory(sandbox, cwd)
    }

    /// Returns the directories that runs of a sandbox see as their home
    /// directory.
    pub fn homes_of(&self, sandbox_id: &str) -> Vec<PathBuf> {
        list_homes(&self.state.settings.state_dir, sandbox_id)
    }

    /// Returns why a run in `cwd` cannot work on a copy, if it cannot.
    /// `try_copy` tries it with a real mount, and returns why it failed; its
    /// second argument is whether root lends the directory to the run.
    pub fn why_no_copy(
        &self,
        sandbox: &Sandbox,
        cwd: &Path,
        try_copy: impl FnOnce(&Path, bool) -> Option<String>,
    ) -> Option<String> {
        let dir = self.usable_directory(sandbox, cwd)?;
        let lent = is_root() && sandbox.user.is_none() && is_owned_by_root(&dir);
        let copies = if lent {
            &self.state.lent_copies
        } else {
            &self.state.copies
        };
        let find = || find_mount_below(&dir).or_else(|| try_copy(&dir, lent));
        copies.get_or_find(&dir, find)
    }

    /// Returns whether a run in `cwd` could see a secret file.
    pub fn has_secret_files(&self, sandbox: &Sandbox, cwd: &Path) -> Result<bool, Error> {
        match self.usable_directory(sandbox, cwd) {
            Some(dir) => self.state.secret_files.has_any(sandbox, &dir),
            None => Ok(false),
        }
    }

    /// Returns whether a name is on a list of secret files that is in use. The
    /// name of a directory ends with a slash.
    pub fn is_listed_secret(&self, name: &str) -> bool {
        self.state.secret_files.is_listed(name)
    }

    /// Remembers files that a run created to which secret files were closed,
    /// each as root and relative path. They hold no secrets, so that later runs
    /// may read them although their names are on the list.
    pub fn remember_created(&self, created: impl Iterator<Item = (PathBuf, PathBuf)>) {
        self.state.secret_files.remember_created(created);
    }

    /// Searches a directory for new repositories, unless the last search was
    /// recent. May take long.
    pub fn refresh_repositories(&self, dir: &Path) {
        self.state.repositories.refresh(dir);
    }

    /// Returns the absolute paths in a directory that are read-only because
    /// other programs run them.
    pub fn protected_paths(&self, dir: &Path, unprotected: &[String]) -> Vec<PathBuf> {
        blame::protected_paths(&self.state, dir, unprotected)
    }

    /// Names the walls that a run has met, according to the end of its standard
    /// error.
    pub fn explain_failure(&self, run: &FailedRun<'_>, stderr: &str) -> Vec<Denial> {
        blame::explain_failure(&self.state, run, stderr)
    }

    /// Returns whether a run in any of these sandboxes could see a path, apart
    /// from the state directory, which all of them hide.
    pub async fn is_visible<'a>(
        &self,
        path: &Path,
        sandboxes: impl Iterator<Item = &'a Sandbox>,
    ) -> bool {
        let search = self.search_path().await;
        is_visible(&self.state.settings, path, &search, sandboxes)
    }
}
