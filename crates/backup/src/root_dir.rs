//! A directory that is accessed through its descriptor. No symbolic link below
//! it is followed, so nobody can redirect a read or write to somewhere else.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileTimes, Metadata, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use crate::entry::{ArchiveEntry, EntryContent};

/// Mode bits that a restore sets. Setuid, setgid and sticky are dropped: an
/// attacker who can edit the file list could ask for them.
const PLAIN_MODE: u32 = 0o777;

/// An open directory, with its path for messages.
pub(crate) struct RootDir {
    dir: OwnedFd,
    path: PathBuf,
}

impl RootDir {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            dir: rustix::fs::open(path, flags, Mode::empty())?,
            path: path.to_owned(),
        })
    }

    /// Returns its path.
    pub(crate) fn root(&self) -> &Path {
        &self.path
    }

    /// Returns the path of something below it, for messages and for SQLite.
    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.path.join(below)
    }

    /// Opens a handle to a path below; an empty path is the directory itself.
    pub(crate) fn find(&self, path: &Path) -> io::Result<PathHandle> {
        if path == Path::new("") {
            return PathHandle::at(&self.dir, OsStr::new("."));
        }
        let (parent, name) = self.parent(path)?;
        PathHandle::at(&parent, name)
    }

    /// Lists a directory: names, and whether each is a directory.
    pub(crate) fn names(&self, path: &Path) -> io::Result<Vec<(OsString, bool)>> {
        let opened = self.find(path)?.open()?;
        let named = { opened.names()?.into_iter() }.map(|name| {
            let is_dir = PathHandle::at(&opened.file, &name)?.meta.is_dir();
            Ok((name, is_dir))
        });
        named.collect()
    }

    /// Opens a regular file for reading. Anything else is an error and never
    /// blocks.
    pub(crate) fn read(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let found = self.find(path.as_ref())?;
        if found.meta.is_file() {
            Ok(found.open()?.file)
        } else {
            Err(not_a_file())
        }
    }

    /// Creates a file that only its owner may read.
    pub(crate) fn create(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let (parent, name) = self.parent(path.as_ref())?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&parent, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(made))
    }

    /// Creates a directory that only its owner may enter.
    pub(crate) fn make_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let (parent, name) = self.parent(path.as_ref())?;
        Ok(rustix::fs::mkdirat(&parent, name, Mode::RWXU)?)
    }

    pub(crate) fn link(&self, path: &Path, target: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(rustix::fs::symlinkat(target, &parent, name)?)
    }

    /// Sets owner, time and mode of a restored entry. Only root can set the
    /// owner.
    pub(crate) fn set_metadata(&self, entry: &ArchiveEntry) -> io::Result<()> {
        let (parent, name) = self.parent(Path::new(&entry.path))?;
        if rustix::process::geteuid().is_root() {
            // For chown, the highest number means "leave as it is".
            let known = |id: u32| (id != u32::MAX).then_some(id);
            let (uid, gid) = (known(entry.uid), known(entry.gid));
            let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
            rustix::fs::chownat(&parent, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if matches!(entry.content, EntryContent::Link { .. }) {
            return Ok(());
        }
        let file = PathHandle::at(&parent, name)?.open()?.file;
        let (seconds, nanos) = entry.mtime;
        let since = Duration::new(seconds.max(0) as u64, nanos.clamp(0, 999_999_999) as u32);
        if let Some(at) = UNIX_EPOCH.checked_add(since) {
            file.set_times(FileTimes::new().set_modified(at))?;
        }
        file.set_permissions(Permissions::from_mode(entry.mode & PLAIN_MODE))
    }

    /// Opens the parent directory of a path without following links, and
    /// returns it with the last name.
    fn parent<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let name = { path.file_name() }.filter(|_| path.components().all(plain));
        let name = name.ok_or(io::ErrorKind::InvalidInput)?;
        let mut dir = self.dir.try_clone()?;
        for part in path.parent().into_iter().flatten() {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            dir = match rustix::fs::openat(&dir, part, flags, Mode::empty()) {
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(not_a_file()),
                opened => opened?,
            };
        }
        Ok((dir, name))
    }
}

/// A file, directory or link, pinned by a descriptor: replacing it at its path
/// does not affect the handle.
pub(crate) struct PathHandle {
    fd: File,
    pub(crate) meta: Metadata,
}

/// A file or directory that is open for reading.
pub(crate) struct OpenedPath {
    pub(crate) file: File,
    _mode: Option<ModeGuard>,
}

/// Restores a temporarily widened mode when dropped.
struct ModeGuard {
    fd: File,
    mode: u32,
}

impl PathHandle {
    pub(crate) fn at(parent: impl AsFd, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = File::from(rustix::fs::openat(parent, name, flags, Mode::empty())?);
        Ok(Self {
            meta: fd.metadata()?,
            fd,
        })
    }

    /// Returns the target of a link.
    pub(crate) fn target(&self) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.fd, "", vec![])?.into_bytes())
    }

    /// Opens a file or directory for reading. If its mode forbids that to its
    /// owner, the mode is widened for as long as necessary: before-images keep
    /// the mode that the original had.
    pub(crate) fn open(&self) -> io::Result<OpenedPath> {
        let open = || {
            let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits() as i32;
            let mut how = File::options();
            how.read(true).custom_flags(flags).open(proc_path(&self.fd))
        };
        // Reading the entries of a directory also needs permission to enter it.
        let mode = self.meta.permissions().mode();
        let needs = if self.meta.is_dir() { 0o500 } else { 0o400 };
        let root = rustix::process::geteuid().is_root();
        if root || mode & needs == needs {
            match open() {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                opened => {
                    return Ok(OpenedPath {
                        file: opened?,
                        _mode: None,
                    });
                }
            }
        }
        let guard = ModeGuard {
            fd: self.fd.try_clone()?,
            mode: mode & 0o7777,
        };
        fs::set_permissions(
            proc_path(&self.fd),
            Permissions::from_mode(guard.mode | needs),
        )?;
        let file = open()?;
        Ok(OpenedPath {
            file,
            // An open file can be read whatever its mode; a directory cannot.
            _mode: self.meta.is_dir().then_some(guard),
        })
    }
}

impl OpenedPath {
    /// Lists a directory.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = vec![];
        for entry in rustix::fs::Dir::read_from(&self.file)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }
}

impl Drop for ModeGuard {
    fn drop(&mut self) {
        let _ = fs::set_permissions(proc_path(&self.fd), Permissions::from_mode(self.mode));
    }
}

/// Returns a path that leads to an open descriptor.
fn proc_path(fd: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Something other than a regular file, or than a directory on the way to one.
fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "something else is there")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;

    /// Takes from this thread what lets root read everyentry.
    fn drop_read_capabilities() {
        let mut all = capabilities(None).unwrap();
        all.effective
            .remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
        set_capabilities(None, all).unwrap();
    }

    #[test]
    fn a_file_without_read_permission_is_read_and_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let (closed, file) = (dir.path().join("closed"), dir.path().join("closed/file"));
        fs::create_dir(&closed).unwrap();
        fs::write(&file, "kept").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o0)).unwrap();
        std::thread::spawn(move || {
            drop_read_capabilities();
            assert!(fs::read_dir(&closed).is_err(), "nobody may look");
            let tree = RootDir::open(dir.path()).unwrap();
            let opened = tree.find(Path::new("closed")).unwrap().open().unwrap();
            assert_eq!(opened.names().unwrap(), ["file"]);
            let found = PathHandle::at(&opened.file, OsStr::new("file")).unwrap();
            let mut text = String::new();
            found
                .open()
                .unwrap()
                .file
                .read_to_string(&mut text)
                .unwrap();
            assert_eq!(text, "kept");
            let mode = |found: PathHandle| found.meta.permissions().mode() & 0o7777;
            assert_eq!(
                mode(PathHandle::at(&opened.file, OsStr::new("file")).unwrap()),
                0
            );
            drop(opened);
            assert_eq!(mode(tree.find(Path::new("closed")).unwrap()), 0);
            fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
        })
        .join()
        .unwrap();
    }

    #[test]
    fn no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
        let tree = RootDir::open(dir.path()).unwrap();
        assert!(tree.read("link/file").is_err());
        assert!(tree.create("link/new").is_err());
        assert!(tree.make_dir("link/new").is_err());
        assert!(tree.create("../new").is_err());
        assert!(tree.link(Path::new("link/new"), Path::new("x")).is_err());
        let names = fs::read_dir(outside.path()).unwrap().count();
        assert_eq!(names, 1);
    }
}
