//! Files as a run that only reads sees them.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use weighlock_walls::read_small_file;

/// Far more than anybody writes by hand, or git for them.
const MAX_SETTINGS: u64 = 256 * 1024;

/// The files of a sandbox, with the changes that its session holds back.
///
/// Which of several versions of a file a run sees, whiteouts and opaque
/// directories decide. Here every version counts: settings that are harmless
/// must be so in all of them.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// The directory that is shown to the run.
    pub(crate) root: PathBuf,
    /// Directories, each with one that has changes to it.
    pub(crate) layers: Vec<(PathBuf, PathBuf)>,
    /// Directories that stand for the home directory.
    pub(crate) homes: Vec<PathBuf>,
}

impl View {
    /// Checks that a directory is one that programs work in where its name
    /// says. A shell that cannot enter a directory stays where it is, and
    /// behind a link it would be elsewhere.
    pub(super) fn enter(&self, dir: &Path) -> Result<(), String> {
        if !dir.starts_with(&self.root) {
            return Err(format!(
                "it works in {}, which is outside the sandbox",
                dir.display()
            ));
        }
        for part in dir.ancestors().take_while(|part| *part != self.root) {
            let found = self.versions(part)?;
            let enters = |meta: &Metadata| meta.is_dir() && meta.mode() & 0o100 != 0;
            if found.is_empty() || !found.iter().all(|(_, meta)| enters(meta)) {
                return Err(format!("{} is not a directory", self.name(part)));
            }
        }
        Ok(())
    }

    /// Returns every version of a file or directory. A link is an error: what
    /// it leads to could be anywhere.
    pub(super) fn versions(&self, path: &Path) -> Result<Vec<(PathBuf, Metadata)>, String> {
        let layers = { self.layers.iter() }.filter_map(|(live, upper)| {
            let below = path.strip_prefix(live).ok()?;
            Some(upper.join(below))
        });
        let mut found = vec![];
        for version in std::iter::once(path.to_owned()).chain(layers) {
            let meta = match version.symlink_metadata() {
                Ok(meta) => meta,
                Err(error) if is_absent(error.kind()) => continue,
                Err(error) => {
                    return Err(format!("{} cannot be looked at: {error}", self.name(path)));
                }
            };
            if meta.file_type().is_symlink() {
                return Err(format!("{} is a link", self.name(path)));
            }
            // A whiteout says that the file was deleted.
            if !meta.file_type().is_char_device() {
                found.push((version, meta));
            }
        }
        Ok(found)
    }

    /// Returns the content of every version of a file of settings.
    pub(super) fn read(&self, path: &Path) -> Result<Vec<Vec<u8>>, String> {
        self.read_up_to(path, MAX_SETTINGS)
    }

    pub(super) fn read_up_to(&self, path: &Path, most: u64) -> Result<Vec<Vec<u8>>, String> {
        self.is_plain(path)?;
        let found = self.versions(path)?.into_iter();
        found
            .map(|(version, _)| {
                read_small_file(&version, most)
                    .ok_or_else(|| format!("{} cannot be read", self.name(path)))
            })
            .collect()
    }

    /// Returns whether a name is in a version of a directory.
    pub(super) fn has_name(&self, dir: &Path, test: fn(&str) -> bool) -> Result<bool, String> {
        for (version, _) in self.versions(dir)? {
            let list = fs::read_dir(version);
            let list = list.map_err(|error| format!("{}: {error}", self.name(dir)))?;
            if list
                .flatten()
                .any(|entry| test(&entry.file_name().to_string_lossy()))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn exists(&self, path: &Path) -> Result<bool, String> {
        Ok(!self.versions(path)?.is_empty())
    }

    /// Checks that no directory on the way to a file is a link.
    fn is_plain(&self, path: &Path) -> Result<(), String> {
        let is_base = |part: &Path| part == self.root || self.homes.iter().any(|at| at == part);
        let mut above = path.ancestors().skip(1).take_while(|part| !is_base(part));
        above.try_for_each(|part| self.versions(part).map(drop))
    }

    /// Names a file for people: from the sandbox on, if it is in there.
    pub(super) fn name(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.root);
        inside.unwrap_or(path).display().to_string()
    }
}

fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}
