//! Where things are, by the XDG rules.

use std::env;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use weighlock_engine::path_hash;

use crate::client::Failure;

/// The directories of one owner.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    /// The database, the output, the lock.
    pub(crate) state_dir: PathBuf,
    /// The Unix socket of the server that we talk to, or are.
    pub(crate) socket: PathBuf,
    /// The one that the owner's commands look for when nothing is said.
    pub(crate) own_socket: PathBuf,
    /// The configuration file, whether or not it exists.
    pub(crate) config: PathBuf,
}

impl Paths {
    pub(crate) fn find(
        state_dir: Option<PathBuf>,
        named: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let state_dir = match state_dir {
            Some(dir) => whole(&dir)?,
            None => xdg("XDG_STATE_HOME", ".local/state")?.join("weighlock"),
        };
        let config = config().unwrap_or_else(|| state_dir.join("weighlock/config.toml"));
        let own_socket = socket(&state_dir);
        Ok(Self {
            socket: named.map_or(Ok(own_socket.clone()), |path| whole(&path))?,
            own_socket,
            state_dir,
            config,
        })
    }

    /// Returns the path of the socket inside the state directory, where clients
    /// that only know that directory look for it.
    pub(crate) fn inside(&self) -> PathBuf {
        self.state_dir.join(SOCKET)
    }

    /// Returns what has to be said to find the same server from an environment
    /// that has nothing but a home directory.
    pub(crate) fn unusual(&self) -> Vec<(&'static str, PathBuf)> {
        let home = env::var_os("HOME").map(PathBuf::from);
        let usual = home.map(|home| home.join(".local/state/weighlock"));
        let mut said = vec![];
        if usual.as_ref() != Some(&self.state_dir) {
            said.push(("--state-dir", self.state_dir.clone()));
        }
        if self.is_foreign() {
            said.push(("--socket", self.socket.clone()));
        }
        said
    }

    /// Returns whether a socket was named, whose server is not ours to start.
    pub(crate) fn is_foreign(&self) -> bool {
        self.socket != self.own_socket
    }
}

fn whole(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::new(format!("cannot use {}: {error}", path.display()), ""))
}

/// Returns the path of the configuration file, whether or not it exists, or
/// none if there is no home directory.
pub(crate) fn config() -> Option<PathBuf> {
    let dir = xdg("XDG_CONFIG_HOME", ".config").ok()?;
    Some(dir.join("weighlock/config.toml"))
}

/// Returns the directory that commands run in or below by default: the home
/// directory if the current directory is in it, else the repository around the
/// current directory, else the current directory.
pub(crate) fn default_base() -> Result<PathBuf, Failure> {
    let here = env::current_dir().map_err(|error| {
        Failure::new(
            format!("the current directory cannot be used: {error}"),
            "go to a directory that exists",
        )
    })?;
    let home = env::var_os("HOME").map(PathBuf::from);
    let home = home.and_then(|home| home.canonicalize().ok());
    if let Some(home) = home.filter(|home| here.starts_with(home)) {
        return Ok(home);
    }
    let repository = here.ancestors().find(|dir| dir.join(".git").exists());
    Ok(repository.unwrap_or(&here).to_owned())
}

/// In the runtime directory where there is one; the name tells state
/// directories apart. Clients of agents start us without the variable that
/// names it, so a link to it is in the state directory. What is no link there
/// is the socket of a server that was started in such a way.
fn socket(state_dir: &Path) -> PathBuf {
    let inside = state_dir.join(SOCKET);
    let is_socket = |found: std::fs::Metadata| found.file_type().is_socket();
    let runtime = env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute() && dir.is_dir());
    match runtime {
        Some(dir) if !inside.symlink_metadata().is_ok_and(is_socket) => {
            let resolved = state_dir
                .canonicalize()
                .unwrap_or_else(|_| state_dir.to_owned());
            dir.join(format!("weighlock-{:016x}.sock", path_hash(&resolved)))
        }
        _ => inside,
    }
}

/// The socket in the state directory, or a link to where it is.
const SOCKET: &str = "weighlock.sock";

/// A directory by its variable, or else below the home directory.
pub(crate) fn xdg(variable: &str, below_home: &str) -> Result<PathBuf, Failure> {
    let set = env::var_os(variable).map(PathBuf::from);
    if let Some(dir) = set.filter(|dir| dir.is_absolute()) {
        return Ok(dir);
    }
    match env::var_os("HOME").filter(|home| !home.is_empty()) {
        Some(home) => Ok(PathBuf::from(home).join(below_home)),
        None => Err(Failure::new(
            format!("neither {variable} nor HOME is set"),
            "say where to keep things with --state-dir DIR",
        )),
    }
}
