//! As whom a run happens.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weighlock_confine::{Identity, NOBODY, is_root};

use crate::error::Error;
use crate::passwd::Entry;
use crate::sandbox::Sandbox;

/// Where the home directory is when nobody says, or says nonsense.
const HOMELESS: &str = "/home/agent";

/// As whom a run happens, and where that one is at home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Person {
    pub(super) identity: Identity,
    /// Known by name only where it is not the server's own.
    pub(super) name: Option<String>,
    pub(super) home: PathBuf,
    /// Works in what is root's.
    pub(super) for_root: bool,
}

impl Person {
    /// An ordinary user's server runs everything as that user. Root's becomes
    /// whoever the sandbox says or owns its directory, and nobody where that
    /// is root.
    pub(super) fn find(
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
            return Entry::ordinary(name).map(Self::from).ok_or_else(|| {
                Error::invalid(
                    "bad_user",
                    format!(
                        "sandbox `{}` is to run as `{name}`, who does not exist or is root; \
                         nothing was run",
                        sandbox.name
                    ),
                    "name an ordinary user of this machine in the configuration",
                )
            });
        }
        let owner = dir.and_then(|dir| dir.symlink_metadata().ok());
        match owner.filter(|owner| owner.uid() != 0) {
            Some(owner) => Ok(
                Entry::find(|entry| entry.uid == owner.uid() && entry.gid != 0)
                    .map_or_else(|| stranger(owner.uid(), owner.gid()), Self::from),
            ),
            None => Ok(Self {
                identity: NOBODY,
                name: Some("nobody".into()),
                home: own_home.to_owned(),
                for_root: true,
            }),
        }
    }
}

impl Person {
    /// Returns a path of the settings, with the home directory for `~`.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        match path.strip_prefix("~") {
            Ok(rest) => self.home.join(rest),
            Err(_) => path.to_owned(),
        }
    }
}

/// Someone who owns files and has no entry.
fn stranger(uid: u32, gid: u32) -> Person {
    Person {
        identity: Identity {
            uid,
            gid: if gid == 0 { NOBODY.gid } else { gid },
        },
        name: None,
        home: HOMELESS.into(),
        for_root: false,
    }
}

impl From<Entry> for Person {
    fn from(user: Entry) -> Self {
        Self {
            identity: Identity {
                uid: user.uid,
                gid: user.gid,
            },
            name: Some(user.name),
            home: home(&user.home),
            for_root: false,
        }
    }
}

/// A home directory that can be shown inside: resolved where it exists.
pub(crate) fn home(said: &str) -> PathBuf {
    let path = PathBuf::from(said);
    let path = path.canonicalize().unwrap_or(path);
    let plain = path.is_absolute()
        && path
            .components()
            .all(|part| !matches!(part, std::path::Component::ParentDir));
    let shown = |part: &&str| path.starts_with(part) || Path::new(part).starts_with(&path);
    if plain && !weighlock_confine::SYSTEM.iter().any(shown) {
        path
    } else {
        HOMELESS.into()
    }
}
