//! The directory a command runs in.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode, OFlags, access, open};

use crate::error::{Error, brief};

/// A checked working directory. The descriptor is what counts: whatever the
/// path comes to mean later, the command starts here.
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) fd: OwnedFd,
}

/// Resolves a directory and makes sure that it is the base or below it.
pub(crate) fn resolve(base: &Path, asked: Option<&str>) -> Result<Place, Error> {
    let asked = asked.unwrap_or(".");
    if asked.contains('\0') {
        return Err(refuse(asked, "has a NUL byte", base));
    }
    let path = match base.join(asked).canonicalize() {
        Ok(path) => path,
        Err(error) => return Err(refuse(asked, &cause(&error), base)),
    };
    if path.to_str().is_none() {
        return Err(refuse(asked, "leads to a name that is not text", base));
    }
    if !path.starts_with(base) {
        return Err(Error::invalid(
            "outside_base",
            format!(
                "the working directory {} is outside {}, where commands run; nothing was run",
                path.display(),
                base.display()
            ),
            "use a directory below it or another sandbox, or `weighlock serve --replace --base DIR`",
        ));
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = open(&path, flags, Mode::empty())
        .map_err(|error| refuse(asked, &cause(&error.into()), base))?;
    access(&path, Access::EXEC_OK).map_err(|error| refuse(asked, &cause(&error.into()), base))?;
    // Somebody may have swapped a part of the path since it was resolved.
    let opened = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    if opened.is_ok_and(|opened| opened == path) {
        Ok(Place { path, fd })
    } else {
        Err(refuse(asked, "changed while it was opened", base))
    }
}

/// Refuses whoever leaves a private directory; what is outside is not their
/// business.
pub(crate) fn violation() -> Error {
    Error::invalid(
        "sandbox_violation",
        "Working directory is outside your sandbox.".into(),
        "use a relative path inside it, or none",
    )
}

fn refuse(asked: &str, why: &str, base: &Path) -> Error {
    Error::invalid(
        "bad_directory",
        format!(
            "cannot run in the working directory `{}`: it {why}; nothing was run",
            brief(asked)
        ),
        format!("give an existing directory below {}", base.display()),
    )
}

fn cause(error: &io::Error) -> String {
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

    fn code(base: &Path, asked: &str) -> &'static str {
        match resolve(base, Some(asked)) {
            Ok(_) => "ok",
            Err(error) => error.problem().code,
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
            assert_eq!(code(&base, asked), expected, "{asked:?}");
        }
        assert_eq!(code(&base, base.join("sub").to_str().unwrap()), "ok");
        let other = base.with_file_name("base2");
        assert_eq!(code(&base, other.to_str().unwrap()), "outside_base");
    }
}
