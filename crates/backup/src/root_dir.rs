//! A directory that is used by its descriptor: whoever puts a link below it
//! leads nobody elsewhere.

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

use super::files::{Thing, What};

/// What may be given to anybody. Bits that lend rights, or keep others from
/// removing, are not put back: whoever can change a list could ask for them.
const PLAIN_MODE: u32 = 0o777;

/// A directory, and where it is, for people.
pub(super) struct Tree {
    dir: OwnedFd,
    path: PathBuf,
}

impl Tree {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            dir: rustix::fs::open(path, flags, Mode::empty())?,
            path: path.to_owned(),
        })
    }

    /// Returns where it is.
    pub(super) fn root(&self) -> &Path {
        &self.path
    }

    /// Returns where something below it is, for people and for SQLite.
    pub(super) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.path.join(below)
    }

    /// Finds what is at a place; without one, the directory itself.
    pub(super) fn find(&self, path: &Path) -> io::Result<Found> {
        if path == Path::new("") {
            return Found::at(&self.dir, OsStr::new("."));
        }
        let (around, name) = self.around(path)?;
        Found::at(&around, name)
    }

    /// Lists a directory: names, and whether they are directories.
    pub(super) fn names(&self, path: &Path) -> io::Result<Vec<(OsString, bool)>> {
        let opened = self.find(path)?.open()?;
        let named = { opened.names()?.into_iter() }.map(|name| {
            let is_dir = Found::at(&opened.file, &name)?.meta.is_dir();
            Ok((name, is_dir))
        });
        named.collect()
    }

    /// Opens a file to read it. Anything else is none, and is not waited for.
    pub(super) fn read(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let found = self.find(path.as_ref())?;
        match found.meta.is_file() {
            true => Ok(found.open()?.file),
            false => Err(no_file()),
        }
    }

    /// Makes a file, for its owner alone.
    pub(super) fn create(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let (around, name) = self.around(path.as_ref())?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::openat(&around, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(made))
    }

    /// Makes a directory, for its owner alone.
    pub(super) fn make_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let (around, name) = self.around(path.as_ref())?;
        Ok(rustix::fs::mkdirat(&around, name, Mode::RWXU)?)
    }

    pub(super) fn link(&self, path: &Path, target: &Path) -> io::Result<()> {
        let (around, name) = self.around(path)?;
        Ok(rustix::fs::symlinkat(target, &around, name)?)
    }

    /// Gives a thing that was put back what else it had. Who it belonged to
    /// counts only where we may say so.
    pub(super) fn dress(&self, thing: &Thing) -> io::Result<()> {
        let (around, name) = self.around(Path::new(&thing.path))?;
        if rustix::process::geteuid().is_root() {
            // The highest number means nobody.
            let known = |id: u32| (id != u32::MAX).then_some(id);
            let (uid, gid) = (known(thing.uid), known(thing.gid));
            let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
            rustix::fs::chownat(&around, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        if matches!(thing.what, What::Link { .. }) {
            return Ok(());
        }
        let file = Found::at(&around, name)?.open()?.file;
        let (seconds, nanos) = thing.mtime;
        let since = Duration::new(seconds.max(0) as u64, nanos.clamp(0, 999_999_999) as u32);
        if let Some(at) = UNIX_EPOCH.checked_add(since) {
            file.set_times(FileTimes::new().set_modified(at))?;
        }
        file.set_permissions(Permissions::from_mode(thing.mode & PLAIN_MODE))
    }

    /// Returns the directory around something, which no link leads to.
    fn around<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let name = { path.file_name() }.filter(|_| path.components().all(plain));
        let name = name.ok_or(io::ErrorKind::InvalidInput)?;
        let mut dir = self.dir.try_clone()?;
        for part in path.parent().into_iter().flatten() {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            dir = match rustix::fs::openat(&dir, part, flags, Mode::empty()) {
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(no_file()),
                opened => opened?,
            };
        }
        Ok((dir, name))
    }
}

/// What was found at a place, whatever comes to that place later.
pub(super) struct Found {
    fd: File,
    pub(super) meta: Metadata,
}

/// Something that is open, for as long as that takes with the mode it needs.
pub(super) struct Opened {
    pub(super) file: File,
    _lent: Option<Lent>,
}

/// A mode that was changed, until this is dropped.
struct Lent {
    fd: File,
    mode: u32,
}

impl Found {
    pub(super) fn at(around: impl AsFd, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = File::from(rustix::fs::openat(around, name, flags, Mode::empty())?);
        Ok(Self {
            meta: fd.metadata()?,
            fd,
        })
    }

    /// Returns where a link points.
    pub(super) fn target(&self) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.fd, "", vec![])?.into_bytes())
    }

    /// Opens a file or directory to read it; what is ours, even where its mode
    /// keeps us out. What a run removed is kept as it was, and stays so.
    pub(super) fn open(&self) -> io::Result<Opened> {
        let open = || {
            let flags = (OFlags::NONBLOCK | OFlags::CLOEXEC).bits() as i32;
            let mut how = File::options();
            how.read(true).custom_flags(flags).open(again(&self.fd))
        };
        // A directory that can be read, but not entered, has to be entered.
        let mode = self.meta.permissions().mode();
        let needs = if self.meta.is_dir() { 0o500 } else { 0o400 };
        let root = rustix::process::geteuid().is_root();
        if root || mode & needs == needs {
            match open() {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                opened => {
                    return Ok(Opened {
                        file: opened?,
                        _lent: None,
                    });
                }
            }
        }
        let lent = Lent {
            fd: self.fd.try_clone()?,
            mode: mode & 0o7777,
        };
        fs::set_permissions(again(&self.fd), Permissions::from_mode(lent.mode | needs))?;
        let file = open()?;
        Ok(Opened {
            file,
            // Who reads a file needs its mode no longer.
            _lent: self.meta.is_dir().then_some(lent),
        })
    }
}

impl Opened {
    /// Lists a directory.
    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
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

impl Drop for Lent {
    fn drop(&mut self) {
        let _ = fs::set_permissions(again(&self.fd), Permissions::from_mode(self.mode));
    }
}

/// The very thing that is open, as a path.
fn again(fd: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Where there should be a file, or a directory on the way to one.
fn no_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "something else is there")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;

    /// Takes from this thread what lets root read everything.
    fn be_ordinary() {
        let mut all = capabilities(None).unwrap();
        all.effective
            .remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
        set_capabilities(None, all).unwrap();
    }

    #[test]
    fn what_its_mode_keeps_from_everybody_is_read_and_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let (closed, file) = (dir.path().join("closed"), dir.path().join("closed/file"));
        fs::create_dir(&closed).unwrap();
        fs::write(&file, "kept").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o0)).unwrap();
        std::thread::spawn(move || {
            be_ordinary();
            assert!(fs::read_dir(&closed).is_err(), "nobody may look");
            let tree = Tree::open(dir.path()).unwrap();
            let opened = tree.find(Path::new("closed")).unwrap().open().unwrap();
            assert_eq!(opened.names().unwrap(), ["file"]);
            let found = Found::at(&opened.file, OsStr::new("file")).unwrap();
            let mut text = String::new();
            found
                .open()
                .unwrap()
                .file
                .read_to_string(&mut text)
                .unwrap();
            assert_eq!(text, "kept");
            let mode = |found: Found| found.meta.permissions().mode() & 0o7777;
            assert_eq!(
                mode(Found::at(&opened.file, OsStr::new("file")).unwrap()),
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
    fn no_link_is_followed_on_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        assert!(tree.read("link/file").is_err());
        assert!(tree.create("link/new").is_err());
        assert!(tree.make_dir("link/new").is_err());
        assert!(tree.create("../new").is_err());
        assert!(tree.link(Path::new("link/new"), Path::new("x")).is_err());
        let names = fs::read_dir(outside.path()).unwrap().count();
        assert_eq!(names, 1);
    }
}
