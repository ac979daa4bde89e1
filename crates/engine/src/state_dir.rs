//! The state directory: only its owner looks into it, and one engine uses it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use crate::error::Error;

/// Makes a directory that only its owner may look into.
pub(crate) fn make_private(dir: &Path) -> Result<(), Error> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
    let make = || {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)?;
        let found = fs::metadata(dir)?;
        if found.uid() != rustix::process::geteuid().as_raw() {
            // Ours would lock its owner out.
            let why = "it belongs to another user";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let mode = found.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
        }
        Ok(())
    };
    make().map_err(Error::file(dir))
}

/// Takes a state directory for ourselves, for as long as what is returned is
/// kept.
pub(crate) fn take(dir: &Path) -> Result<File, Error> {
    let path = dir.join("lock");
    let file = Error::file(&path);
    let mut lock = File::options()
        .create(true)
        .write(true)
        .truncate(false)
        .open(&path)
        .map_err(&file)?;
    match lock.try_lock() {
        Ok(()) => {
            // For people; the lock itself is what counts.
            let pid = format!("{:<10}\n", std::process::id());
            let _ = lock.write_all(pid.as_bytes());
            Ok(lock)
        }
        Err(TryLockError::WouldBlock) => Err(Error::Taken {
            dir: dir.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(file(source)),
    }
}
