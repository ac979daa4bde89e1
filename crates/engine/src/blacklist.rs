//! The blacklist's file, `.agents/terminal.json` below the base directory.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, open, openat, renameat, unlinkat};
use serde_json::json;
use weighlock_policy::Blacklist;

use crate::engine::Engine;
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
    /// The file is there and is what counts.
    pub from_file: bool,
    /// Why the file was not used, if it is there.
    pub warning: Option<String>,
}

impl Engine {
    /// Returns the blacklist in force.
    pub fn blacklist(&self) -> BlacklistFile {
        if self.forgery.is_forged() {
            return BlacklistFile::forged(&self.config.base);
        }
        BlacklistFile::load(&self.config.base)
    }

    /// Saves a blacklist of a person's own.
    pub async fn save_blacklist(&self, list: &Blacklist, by: &Principal) -> Result<(), Error> {
        by.check(Right::Administer)?;
        let detail = json!({ "commandBlacklist": list.entries() });
        self.store
            .record(vec![self.entry("blacklist.saved", by.name(), None, detail)])
            .await?;
        self.trust(Some(list.to_json()))?;
        BlacklistFile::save(&self.config.base, list)
    }

    /// Goes back to the built-in blacklist.
    pub async fn reset_blacklist(&self, by: &Principal) -> Result<(), Error> {
        by.check(Right::Administer)?;
        let entry = self.entry("blacklist.reset", by.name(), None, json!({}));
        self.store.record(vec![entry]).await?;
        self.trust(None)?;
        BlacklistFile::reset(&self.config.base)
    }

    fn trust(&self, saved: Option<String>) -> Result<(), Error> {
        self.forgery
            .trust(saved)
            .map_err(Error::file(self.forgery.dir()))
    }
}

impl BlacklistFile {
    /// Reads the list. A file that is missing or cannot be used means the
    /// built-in list: never none.
    pub(crate) fn load(base: &Path) -> Self {
        let path = base.join(".agents/terminal.json");
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
        let path = base.join(".agents/terminal.json");
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
        let path = base.join(".agents/terminal.json");
        let reset = || -> io::Result<()> {
            Ok(unlinkat(
                open_dir(base)?,
                "terminal.json",
                AtFlags::empty(),
            )?)
        };
        match reset() {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(Error::file(&path)(source))
            }
            _ => Ok(()),
        }
    }

    /// Writes a list so that a reader sees the old one or the new one.
    pub(crate) fn save(base: &Path, list: &Blacklist) -> Result<(), Error> {
        write_safely(base, &list.to_json())
            .map_err(Error::file(&base.join(".agents/terminal.json")))
    }
}

/// Writes the file. A command may have put links in its way, to have us write
/// somewhere else: none is followed, and nothing that is there is opened.
pub(crate) fn write_safely(base: &Path, text: &str) -> io::Result<()> {
    match fs::create_dir(base.join(".agents")) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        done => done?,
    }
    let dir = open_dir(base)?;
    // Nobody can know the name, and take it first.
    let mut chance = [0; 8];
    getrandom::fill(&mut chance).map_err(io::Error::other)?;
    let new = format!(".terminal.json.{:016x}", u64::from_ne_bytes(chance));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = fs::File::from(openat(&dir, &new, flags, Mode::from_raw_mode(0o644))?);
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    let renamed = written.and_then(|()| Ok(renameat(&dir, &new, &dir, "terminal.json")?));
    if renamed.is_err() {
        let _ = unlinkat(&dir, &new, AtFlags::empty());
    }
    renamed
}

/// Opens the directory that holds the file, and no link to another.
fn open_dir(base: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(open(base.join(".agents"), flags, Mode::empty())?)
}

/// Reads a file that whoever writes to the base directory may have made: it
/// could be a pipe that never speaks, or endless.
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

        fs::write(base.join(".agents/terminal.json"), "{").unwrap();
        let broken = BlacklistFile::load(base);
        assert_eq!(broken.list, Blacklist::default());
        assert!(broken.warning.unwrap().contains("built-in"));
    }
}
