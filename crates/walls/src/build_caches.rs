//! Keeps compilers' caches for commands that run on a copy.
//!
//! What such a command writes to the home directory is discarded, so every
//! build would start from nothing. So a few caches are kept, apart from those of
//! commands that a person has allowed: an allowed build must not use objects
//! that a command on a copy has put there.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::lock::lock;
use crate::run_user::RunUser;

/// Caches of compilers, each with its path below a home directory. None of them
/// holds downloads: without a network, those would be missed.
const CACHES: &[(&str, &str)] = &[
    ("ccache", ".cache/ccache"),
    ("go-build", ".cache/go-build"),
    ("golangci-lint", ".cache/golangci-lint"),
    ("gradle", ".gradle/caches/build-cache-1"),
    ("sccache", ".cache/sccache"),
];

/// Held while the caches are created: two runs may be the first.
static CREATING: Mutex<()> = Mutex::new(());

/// Returns the caches that belong to a sandbox's home directory, each with the
/// path where the run sees it. Creates them the first time.
pub(crate) fn open_caches(home: &Path, user: &RunUser) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let dir = caches_beside(home);
    create_caches(&dir, user)?;
    let caches = CACHES.iter().map(|(name, at)| {
        let cache = dir.join(name);
        // An earlier run may have taken the permissions away.
        restore_access(&cache)?;
        Ok((cache, user.home.join(at)))
    });
    caches.collect()
}

/// Gives the owner of a directory all permissions on it.
pub(crate) fn restore_access(dir: &Path) -> io::Result<()> {
    let mode = dir.metadata()?.permissions().mode();
    match mode & 0o700 {
        0o700 => Ok(()),
        _ => std::fs::set_permissions(dir, Permissions::from_mode(mode | 0o700)),
    }
}

fn caches_beside(home: &Path) -> PathBuf {
    let mut name: OsString = home.file_name().unwrap_or_default().to_owned();
    name.push("-tried");
    home.with_file_name(name)
}

/// Creates all caches in a temporary directory, and renames that into place.
fn create_caches(dir: &Path, user: &RunUser) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let _creating = lock(&CREATING);
    let temporary = dir.with_extension("new");
    let mut private = std::fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    for (name, _) in CACHES {
        let cache = temporary.join(name);
        private.create(&cache)?;
        if weighlock_confine::is_root() {
            let owner = user.identity;
            chown(&cache, Some(owner.uid), Some(owner.gid))?;
        }
    }
    if dir.is_dir() {
        return std::fs::remove_dir_all(temporary);
    }
    std::fs::rename(temporary, dir)
}
