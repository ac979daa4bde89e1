//! Caches of what is only tried.
//!
//! What it writes to the home directory is thrown away, and whoever compiles
//! would begin from nothing each time. So some caches are kept, apart from those
//! of commands that a person has allowed: one must not build what it finds of
//! the others.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::person::Person;
use crate::live::lock;

/// Where compilers keep what they have compiled, below a home directory. Nothing
/// in there was downloaded: that would be missed without a network.
const CACHES: &[(&str, &str)] = &[
    ("ccache", ".cache/ccache"),
    ("go-build", ".cache/go-build"),
    ("golangci-lint", ".cache/golangci-lint"),
    ("gradle", ".gradle/caches/build-cache-1"),
    ("sccache", ".cache/sccache"),
];

/// Held while they are made: two runs may be the first.
static MAKING: Mutex<()> = Mutex::new(());

/// Returns where those are that belong to a home directory, and where they are
/// seen.
pub(super) fn of(home: &Path, person: &Person) -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let dir = beside(home);
    make(&dir, person)?;
    let caches = CACHES.iter().map(|(name, at)| {
        let cache = dir.join(name);
        // A run may have closed it for those after it.
        open(&cache)?;
        Ok((cache, person.home.join(at)))
    });
    caches.collect()
}

/// Lets the owner of a directory use it.
pub(super) fn open(dir: &Path) -> io::Result<()> {
    let mode = dir.metadata()?.permissions().mode();
    match mode & 0o700 {
        0o700 => Ok(()),
        _ => std::fs::set_permissions(dir, Permissions::from_mode(mode | 0o700)),
    }
}

fn beside(home: &Path) -> PathBuf {
    let mut name: OsString = home.file_name().unwrap_or_default().to_owned();
    name.push("-tried");
    home.with_file_name(name)
}

/// Makes all of them before they are where they are looked for.
fn make(dir: &Path, person: &Person) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let _one = lock(&MAKING);
    let coming = dir.with_extension("new");
    let mut private = std::fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    for (name, _) in CACHES {
        let cache = coming.join(name);
        private.create(&cache)?;
        if weighlock_confine::is_root() {
            let owner = person.identity;
            chown(&cache, Some(owner.uid), Some(owner.gid))?;
        }
    }
    match dir.is_dir() {
        true => std::fs::remove_dir_all(coming),
        false => std::fs::rename(coming, dir),
    }
}
