//! Opens the directory that a command runs in.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode, OFlags, access, open};

use crate::error::{Error, shorten_text};

/// A checked working directory. The descriptor decides: whatever the path comes
/// to mean later, the command starts here.
#[derive(Debug)]
pub struct WorkDir {
    /// Without symbolic links.
    pub path: PathBuf,
    /// Open as `O_PATH`.
    pub fd: OwnedFd,
}

impl WorkDir {
    /// Opens a directory, which must be `base` or below it; `base` itself if
    /// none is asked for.
    pub fn open(base: &Path, asked: Option<&str>) -> Result<Self, Error> {
        let asked = asked.unwrap_or(".");
        let refused = |why: &str| bad_directory(asked, why, base);
        let path = resolve_path(base, asked)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = open(&path, flags, Mode::empty()).map_err(|error| refused(&cause(error)))?;
        access(&path, Access::EXEC_OK).map_err(|error| refused(&cause(error)))?;
        // A part of the path may have been replaced since it was resolved.
        let opened = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        if opened.is_ok_and(|opened| opened == path) {
            Ok(Self { path, fd })
        } else {
            Err(refused("changed while it was opened"))
        }
    }
}

fn resolve_path(base: &Path, asked: &str) -> Result<PathBuf, Error> {
    let refused = |why: &str| bad_directory(asked, why, base);
    if asked.contains('\0') {
        return Err(refused("has a NUL byte"));
    }
    let resolved = base.join(asked).canonicalize();
    let path = resolved.map_err(|error| refused(&cause(error)))?;
    if path.to_str().is_none() {
        return Err(refused("leads to a name that is not text"));
    }
    if !path.starts_with(base) {
        let base = base.to_owned();
        return Err(Error::OutsideBase { path, base });
    }
    Ok(path)
}

fn bad_directory(asked: &str, why: &str, base: &Path) -> Error {
    Error::BadDirectory {
        asked: shorten_text(asked),
        why: why.to_owned(),
        base: base.to_owned(),
    }
}

/// Completes "it …" for an error of the system.
fn cause(error: impl Into<io::Error>) -> String {
    let error = error.into();
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".into(),
        io::ErrorKind::NotADirectory => "is not a directory".into(),
        io::ErrorKind::PermissionDenied => "may not be entered".into(),
        _ => format!("cannot be used ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn outcome(base: &Path, asked: &str) -> &'static str {
        match WorkDir::open(base, Some(asked)) {
            Ok(_) => "ok",
            Err(Error::OutsideBase { .. }) => "outside_base",
            Err(Error::BadDirectory { .. }) => "bad_directory",
            Err(_) => "other",
        }
    }

    #[test]
    fn nothing_outside_the_base_is_reached() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let base = dir.join("base");
        std::fs::create_dir_all(base.join("sub")).unwrap();
        std::fs::create_dir(dir.join("base2")).unwrap();
        std::fs::write(base.join("file"), "").unwrap();
        symlink(&dir, base.join("out")).unwrap();
        symlink("sub", base.join("in")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        for (asked, expected) in [
            ("", "ok"),
            ("sub", "ok"),
            ("in", "ok"),
            ("sub/..", "ok"),
            ("..", "outside_base"),
            ("../base2", "outside_base"),
            ("out", "outside_base"),
            ("out/base2", "outside_base"),
            ("sub/../../base2", "outside_base"),
            ("/", "outside_base"),
            ("/etc", "outside_base"),
            ("file", "bad_directory"),
            ("missing", "bad_directory"),
            ("loop", "bad_directory"),
            ("a\0b", "bad_directory"),
            ("~", "bad_directory"),
        ] {
            assert_eq!(outcome(&base, asked), expected, "{asked:?}");
        }
        assert_eq!(outcome(&base, base.join("sub").to_str().unwrap()), "ok");
        let other = base.with_file_name("base2");
        assert_eq!(outcome(&base, other.to_str().unwrap()), "outside_base");
    }
}
