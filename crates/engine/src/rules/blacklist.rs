//! The blacklist's file, `.agents/terminal.json` below the base directory.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};
use serde_json::json;
use weighlock_policy::Blacklist;
use weighlock_walls::{blacklist_path, remove_blacklist, write_blacklist};

use super::Rules;
use crate::error::Error;
use crate::principal::{Principal, Right};

/// Far more than anyone writes by hand; it is read for every command.
const MAX_FILE: u64 = 1024 * 1024;

/// The list in force, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlacklistFile {
    /// The list.
    pub list: Blacklist,
    /// Where it is kept.
    pub path: PathBuf,
    /// The file exists and is in force.
    pub from_file: bool,
    /// Why the file was not used, if it is there.
    pub warning: Option<String>,
}

impl Rules {
    /// Returns the blacklist in force.
    pub fn blacklist(&self) -> BlacklistFile {
        if self.walls.blacklist().is_forged() {
            return BlacklistFile::forged(&self.core.config.base);
        }
        BlacklistFile::load(&self.core.config.base)
    }

    /// Saves a blacklist of a person's own.
    pub async fn save_blacklist(&self, list: &Blacklist, by: &Principal) -> Result<(), Error> {
        by.check(Right::Administer)?;
        let detail = json!({ "commandBlacklist": list.entries() });
        self.core
            .store
            .record(vec![self.core.entry(
                "blacklist.saved",
                by.name(),
                None,
                detail,
            )])
            .await?;
        self.trust(Some(list.to_json()))?;
        BlacklistFile::save(&self.core.config.base, list)
    }

    /// Goes back to the built-in blacklist.
    pub async fn reset_blacklist(&self, by: &Principal) -> Result<(), Error> {
        by.check(Right::Administer)?;
        let entry = self
            .core
            .entry("blacklist.reset", by.name(), None, json!({}));
        self.core.store.record(vec![entry]).await?;
        self.trust(None)?;
        BlacklistFile::reset(&self.core.config.base)
    }

    fn trust(&self, saved: Option<String>) -> Result<(), Error> {
        let guard = self.walls.blacklist();
        guard.trust_saved(saved).map_err(Error::file(guard.dir()))
    }
}

impl BlacklistFile {
    /// Reads the list. A file that is missing or cannot be used means the
    /// built-in list: never none.
    pub(crate) fn load(base: &Path) -> Self {
        let path = blacklist_path(base);
        let read = match read_small(&path) {
            Ok(text) => Blacklist::from_json(&text).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Self {
                    list: Blacklist::default(),
                    path,
                    from_file: false,
                    warning: None,
                };
            }
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(list) => Self {
                list,
                path,
                from_file: true,
                warning: None,
            },
            Err(why) => Self {
                list: Blacklist::default(),
                warning: Some(format!(
                    "{} cannot be used, so the built-in blacklist applies: {why}",
                    path.display()
                )),
                path,
                from_file: false,
            },
        }
    }

    /// The list that is in force while there is one that a run has made.
    pub(crate) fn forged(base: &Path) -> Self {
        let path = blacklist_path(base);
        Self {
            list: Blacklist::default(),
            warning: Some(format!(
                "{} was made while a command ran that could make it, so the built-in blacklist \
                 applies",
                path.display()
            )),
            path,
            from_file: false,
        }
    }

    /// Goes back to the built-in list.
    pub(crate) fn reset(base: &Path) -> Result<(), Error> {
        remove_blacklist(base).map_err(Error::file(&blacklist_path(base)))
    }

    /// Writes a list so that a reader sees the old one or the new one.
    pub(crate) fn save(base: &Path, list: &Blacklist) -> Result<(), Error> {
        write_blacklist(base, &list.to_json()).map_err(Error::file(&blacklist_path(base)))
    }
}

/// Reads a file that a command may have made: it could be a pipe to which
/// nothing is written, or endless.
fn read_small(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_wins_and_a_broken_one_means_the_default() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path();
        let missing = BlacklistFile::load(base);
        assert_eq!(missing.list, Blacklist::default());
        assert_eq!((missing.from_file, missing.warning), (false, None));

        let mut list = Blacklist::default();
        list.add("deploy").unwrap();
        BlacklistFile::save(base, &list).unwrap();
        let saved = BlacklistFile::load(base);
        assert_eq!((saved.list, saved.from_file), (list, true));
        assert_eq!(fs::read_dir(base.join(".agents")).unwrap().count(), 1);

        fs::write(blacklist_path(base), "{").unwrap();
        let broken = BlacklistFile::load(base);
        assert_eq!(broken.list, Blacklist::default());
        assert!(broken.warning.unwrap().contains("built-in"));
    }
}
