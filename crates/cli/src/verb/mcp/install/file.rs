//! A settings file: where it really is, what is in it, and how it is written.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use super::client::ClientSettings;
use crate::client::Failure;

/// A file, or where one would be.
pub(super) struct SettingsFile {
    /// What a link leads to: it stays a link, since people keep their settings
    /// elsewhere.
    real: PathBuf,
    is_link: bool,
    before: Option<Metadata>,
    pub(super) text: String,
}

impl SettingsFile {
    /// Reads it. No link leads out of the directories that it may be in.
    pub(super) fn read(settings: &ClientSettings) -> Result<Self, Failure> {
        let file = &settings.file;
        let real = real(file).map_err(|error| cannot("read", file, &error))?;
        let within = |dir: &PathBuf| self::real(dir).is_ok_and(|dir| real.starts_with(dir));
        if !settings.within.iter().any(within) {
            return Err(Failure::new(
                format!(
                    "{} is really {}, which is elsewhere; nothing was written",
                    file.display(),
                    real.display()
                ),
                "change it by hand: --print shows what it has to say",
            ));
        }
        let (before, text) = read(&real).map_err(|error| cannot("read", file, &error))?;
        Ok(Self {
            is_link: fs::symlink_metadata(file).is_ok_and(|file| file.is_symlink()),
            real,
            before,
            text,
        })
    }

    pub(super) fn exists(&self) -> bool {
        self.before.is_some()
    }

    /// Whether others than its owner may read it.
    pub(super) fn is_open(&self) -> bool {
        { self.before.as_ref() }.is_some_and(|before| before.mode() & 0o077 != 0)
    }

    /// Writes it anew, whole or not at all, if it is still what was read. A new
    /// file is for everybody who may, or for its owner alone.
    pub(super) fn write(&self, text: &str, is_private: bool) -> Result<(), Failure> {
        self.check()?;
        let written = self.replace(text, is_private);
        written.map_err(|error| cannot("write", &self.real, &error))
    }

    /// Takes it away, or what is in it where a link leads there.
    pub(super) fn remove(&self, left: &str) -> Result<(), Failure> {
        if self.is_link {
            return self.write(left, false);
        }
        self.check()?;
        fs::remove_file(&self.real).map_err(|error| cannot("remove", &self.real, &error))
    }

    fn check(&self) -> Result<(), Failure> {
        let now = read(&self.real).map_err(|error| cannot("read", &self.real, &error))?;
        if now.0.is_some() == self.exists() && now.1 == self.text {
            Ok(())
        } else {
            Err(Failure::new(
                format!(
                    "{} has changed meanwhile; nothing was written",
                    self.real.display()
                ),
                "try again",
            ))
        }
    }

    fn replace(&self, text: &str, is_private: bool) -> io::Result<()> {
        let dir = self.real.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(dir)?;
        let mut beside = self.real.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(beside);
        let mode = if self.exists() || is_private {
            0o600
        } else {
            0o666
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        let mut new = options.open(&beside)?;
        let done = self.fill(&mut new, text);
        let done = done.and_then(|()| fs::rename(&beside, &self.real));
        if done.is_err() {
            let _ = fs::remove_file(&beside);
        }
        done
    }

    fn fill(&self, new: &mut File, text: &str) -> io::Result<()> {
        new.write_all(text.as_bytes())?;
        if let Some(before) = &self.before {
            let made = new.metadata()?;
            if (made.uid(), made.gid()) != (before.uid(), before.gid()) {
                fchown(&*new, Some(before.uid()), Some(before.gid()))?;
            }
            new.set_permissions(before.permissions())?;
        }
        new.sync_all()
    }
}

fn cannot(what: &str, file: &Path, error: &io::Error) -> Failure {
    Failure::new(
        format!(
            "cannot {what} {}: {error}; nothing was written",
            file.display()
        ),
        "--print shows what it has to say",
    )
}

/// Where a file is, or would be, without links.
fn real(file: &Path) -> io::Result<PathBuf> {
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match file.canonicalize() {
        Err(error) if missing(&error) && fs::symlink_metadata(file).is_err() => {
            match (file.parent(), file.file_name()) {
                (Some(dir), Some(name)) => Ok(real(dir)?.join(name)),
                _ => Err(error),
            }
        }
        Err(error) if missing(&error) => Err(io::Error::other("it is a link that leads nowhere")),
        found => found,
    }
}

fn read(real: &Path) -> io::Result<(Option<Metadata>, String)> {
    match fs::metadata(real) {
        Ok(found) if !found.is_file() => Err(io::Error::other("it is not a file")),
        Ok(found) => Ok((Some(found), fs::read_to_string(real)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((None, String::new())),
        Err(error) => Err(error),
    }
}
