//! The directories that runs see as their home directory.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirEntry};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use crate::build_caches::restore_access;
use crate::error::Error;
use crate::run_user::RunUser;

/// Returns the directories that runs of a sandbox see as their home directory.
pub(crate) fn list_homes(state_dir: &Path, sandbox_id: &str) -> Vec<PathBuf> {
    let homes = state_dir.join("homes").join(sandbox_id);
    let homes = fs::read_dir(homes).into_iter().flatten().flatten();
    homes.map(|entry| entry.path()).collect()
}

/// Returns the directory that a run sees as its home directory, and creates it
/// the first time. Caches stay there from run to run.
///
/// `part` is the directory of the run where the sandbox's holds many projects.
/// Each project has a home of its own: one must not leave traps for another.
pub(crate) fn open_home(
    state_dir: &Path,
    sandbox_id: &str,
    user: &RunUser,
    part: Option<&Path>,
) -> Result<PathBuf, Error> {
    let uid = user.identity.uid;
    let name = match part {
        Some(dir) => format!("{uid}-{:016x}", path_hash(dir)),
        None => uid.to_string(),
    };
    let home = state_dir.join("homes").join(sandbox_id).join(name);
    if home.is_dir() {
        restore_access(&home).map_err(Error::at_path(&home))?;
    } else {
        create_home(&home, user)?;
    }
    Ok(home)
}

fn create_home(home: &Path, user: &RunUser) -> Result<(), Error> {
    let mut private = fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    private.create(home).map_err(Error::at_path(home))?;
    // Exists, so that git writes settings to it and not to the file where the
    // person's settings are shown.
    let config = home.join(".gitconfig");
    fs::write(&config, "").map_err(Error::at_path(&config))?;
    if weighlock_confine::is_root() {
        for made in [home, &config] {
            chown(made, Some(user.identity.uid), Some(user.identity.gid))
                .map_err(Error::at_path(made))?;
        }
    }
    Ok(())
}

/// Returns a short name for a path (FNV-1a), the same in every version.
pub fn path_hash(path: &Path) -> u64 {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The names in a home directory before a run.
#[derive(Default)]
pub(crate) struct HomeSnapshot {
    /// The directory to which the run writes.
    dir: PathBuf,
    before: BTreeSet<OsString>,
    /// Whether what the run writes there is kept.
    is_kept: bool,
}

/// What a run created in its home directory, where a person would not find it.
#[derive(Debug, PartialEq, Eq)]
pub struct HomeLeftovers {
    /// The names in the home directory, sorted; at least one.
    pub names: Vec<OsString>,
    /// They are in the sandbox's own home directory; otherwise they were
    /// discarded.
    pub is_kept: bool,
}

impl HomeSnapshot {
    /// Lists the names before a run, in `discarded` where its writes go there.
    pub(crate) fn take(home: &Path, discarded: Option<&Path>) -> Self {
        let is_kept = discarded.is_none();
        let dir = discarded.unwrap_or(home);
        Self {
            dir: dir.to_owned(),
            before: list_names(dir, is_kept),
            is_kept,
        }
    }

    /// Returns what is new, except for the parts of the project's path: mount
    /// points of it appear below the home directory.
    pub(crate) fn find_leftovers(&self, project: &Path) -> Option<HomeLeftovers> {
        let is_mount_point = |name: &OsString| project.iter().any(|part| part == name);
        let names = list_names(&self.dir, self.is_kept).into_iter();
        let new = names.filter(|name| !self.before.contains(name) && !is_mount_point(name));
        let names: Vec<OsString> = new.collect();
        (!names.is_empty()).then_some(HomeLeftovers {
            names,
            is_kept: self.is_kept,
        })
    }
}

/// Returns the names in a home directory that a person may look for. Hidden
/// directories are caches. Hidden files are settings, which matter only where
/// they are discarded.
fn list_names(home: &Path, is_kept: bool) -> BTreeSet<OsString> {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    let is_hidden = |name: &OsString| name.as_encoded_bytes().starts_with(b".");
    let is_file = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    entries
        .filter(|entry| !is_hidden(&entry.file_name()) || !is_kept && is_file(entry))
        .map(|entry| entry.file_name())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_leaves_at_home_is_found_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str| fs::write(dir.path().join(name), "").unwrap();
        put("before");
        let project = Path::new("/home/ana/shop");
        let kept = HomeSnapshot::take(dir.path(), None);
        let discarded = HomeSnapshot::take(Path::new("/nowhere"), Some(dir.path()));
        assert_eq!(kept.find_leftovers(project), None);
        for name in ["notes", ".rc", "ana"] {
            put(name);
        }
        let left = |names: &[&str], is_kept| {
            let names = names.iter().map(OsString::from).collect();
            Some(HomeLeftovers { names, is_kept })
        };
        assert_eq!(kept.find_leftovers(project), left(&["notes"], true));
        let expected = left(&[".rc", "notes"], false);
        assert_eq!(discarded.find_leftovers(project), expected);
    }
}
