//! Finds the OS user that a run executes as.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weighlock_confine::{Identity, NOBODY, is_root};

use crate::error::Error;
use crate::passwd::PasswdEntry;
use crate::sandbox::Sandbox;

/// The home directory of a user without a usable one.
const FALLBACK_HOME: &str = "/home/agent";

/// The OS user that a run executes as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunUser {
    pub(crate) identity: Identity,
    /// Set only where it differs from the server's own user.
    pub(crate) name: Option<String>,
    /// The home directory that the run sees.
    pub(crate) home: PathBuf,
    /// The user is `nobody` and works in directories that root owns, which are
    /// lent to it by idmapped mounts.
    pub(crate) for_root: bool,
}

impl RunUser {
    /// Finds the user for a sandbox. The server of an ordinary user runs
    /// everything as that user. Root's server runs commands as the user that
    /// the sandbox names, or else as the owner of the directory, and as
    /// `nobody` where root owns it.
    pub(crate) fn find(
        sandbox: &Sandbox,
        dir: Option<&Path>,
        own_home: &Path,
    ) -> Result<Self, Error> {
        if !is_root() {
            return Ok(Self {
                identity: weighlock_confine::own(),
                name: None,
                home: own_home.to_owned(),
                for_root: false,
            });
        }
        if let Some(name) = &sandbox.user {
            let entry = PasswdEntry::find_ordinary(name);
            return entry.map(Self::from).ok_or_else(|| Error::BadUser {
                sandbox: sandbox.name.clone(),
                user: name.clone(),
            });
        }
        let owner = dir.and_then(|dir| dir.symlink_metadata().ok());
        match owner.filter(|owner| owner.uid() != 0) {
            Some(owner) => Ok(user_with_id(owner.uid(), owner.gid())),
            None => Ok(Self {
                identity: NOBODY,
                name: Some("nobody".into()),
                home: own_home.to_owned(),
                for_root: true,
            }),
        }
    }

    /// Returns the variables that tell a command its user and home directory.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let mut env = vec![("HOME".into(), self.home.to_string_lossy().into_owned())];
        if let Some(name) = &self.name {
            env.push(("USER".into(), name.clone()));
            env.push(("LOGNAME".into(), name.clone()));
        }
        env
    }

    /// Replaces a leading `~` in a path of the settings by the home directory.
    pub(crate) fn expand_home(&self, path: &Path) -> PathBuf {
        match path.strip_prefix("~") {
            Ok(rest) => self.home.join(rest),
            Err(_) => path.to_owned(),
        }
    }
}

fn user_with_id(uid: u32, gid: u32) -> RunUser {
    PasswdEntry::find_user(|entry| entry.uid == uid && entry.gid != 0)
        .map_or_else(|| user_without_entry(uid, gid), RunUser::from)
}

fn user_without_entry(uid: u32, gid: u32) -> RunUser {
    RunUser {
        identity: Identity {
            uid,
            gid: if gid == 0 { NOBODY.gid } else { gid },
        },
        name: None,
        home: FALLBACK_HOME.into(),
        for_root: false,
    }
}

impl From<PasswdEntry> for RunUser {
    fn from(user: PasswdEntry) -> Self {
        Self {
            identity: Identity {
                uid: user.uid,
                gid: user.gid,
            },
            name: Some(user.name),
            home: resolve_home(&user.home),
            for_root: false,
        }
    }
}

/// Returns a home directory that a run can be shown: the given one, resolved
/// where it exists, or a fallback where it would cover a part of the system.
pub fn resolve_home(named: &str) -> PathBuf {
    let path = PathBuf::from(named);
    let path = path.canonicalize().unwrap_or(path);
    let plain = path.is_absolute()
        && path
            .components()
            .all(|part| part != std::path::Component::ParentDir);
    let overlaps = |part: &&str| path.starts_with(part) || Path::new(part).starts_with(&path);
    if plain && !weighlock_confine::SYSTEM.iter().any(overlaps) {
        path
    } else {
        FALLBACK_HOME.into()
    }
}
