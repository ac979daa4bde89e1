//! The server's directories and settings on which walls depend.

use std::path::{Path, PathBuf};

use crate::sandbox::{Sandbox, is_too_wide};

/// The server's directories and settings on which walls depend. All paths are
/// canonical where they exist.
#[derive(Debug, Clone, Default)]
pub struct WallSettings {
    /// The directory of sandboxes that name none.
    pub base: PathBuf,
    /// The server's state directory, which no run sees.
    pub state_dir: PathBuf,
    /// The home directory of the server's own user.
    pub home: PathBuf,
    /// Further paths that no run sees.
    pub hidden: Vec<PathBuf>,
    /// Patterns of secret files, added to the built-in list.
    pub secret_files: Vec<String>,
    /// The directory that holds the private directories, with preset
    /// `multi-user`. Only private sandboxes see it.
    pub private_dirs: Option<PathBuf>,
    /// The part of the server's environment that commands see.
    pub server_env: Vec<(String, String)>,
    /// Whether the login shell is asked for its PATH.
    pub asks_login_shell: bool,
}

impl WallSettings {
    /// Returns the directory of a sandbox.
    pub(crate) fn directory_of<'a>(&'a self, sandbox: &'a Sandbox) -> &'a Path {
        sandbox.directory.as_ref().unwrap_or(&self.base)
    }

    /// Returns the directory that a run in `cwd` may use: the sandbox's; or, if
    /// that holds more than a project, the repository around `cwd`, or else
    /// `cwd` itself. `None` if that is too wide as well.
    pub(crate) fn usable_directory(&self, sandbox: &Sandbox, cwd: &Path) -> Option<PathBuf> {
        let whole = self.directory_of(sandbox);
        if !is_too_wide(whole, &self.home) {
            return Some(whole.to_owned());
        }
        let fits = |dir: &&Path| dir.starts_with(whole) && !is_too_wide(dir, &self.home);
        let mut around = cwd.ancestors().take_while(fits);
        let repository = around.find(|dir| dir.join(".git").exists());
        let dir = repository.or(Some(cwd).filter(fits))?;
        Some(dir.to_owned())
    }
}
