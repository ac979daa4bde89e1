//! Trees of files: copied with their hashes, listed, and put back.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Hashed;

/// Bytes that are read at a time.
const STEP: usize = 256 * 1024;

/// One thing of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Thing {
    /// From the state directory.
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// When it was changed, in seconds and nanoseconds since 1970.
    pub(super) mtime: (i64, i64),
    #[serde(flatten)]
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(super) enum What {
    File {
        bytes: u64,
        sha256: String,
    },
    Dir,
    /// Where it points, in hexadecimal: that may be any bytes.
    Link {
        target: String,
    },
}

impl Thing {
    /// Returns where it is below a directory, unless it would be elsewhere.
    pub(super) fn below(&self, dir: &Path) -> Option<PathBuf> {
        let path = Path::new(&self.path);
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let fine = !self.path.is_empty() && path.components().all(plain);
        let part = path.components().next().map(Component::as_os_str);
        let known = super::PARTS
            .iter()
            .any(|part_of| part == Some(OsStr::new(part_of)));
        (fine && known).then(|| dir.join(path))
    }
}

/// Copies trees from one directory to another, and lists what it copies.
pub(super) struct Copier<'a> {
    pub(super) from: &'a Path,
    pub(super) to: &'a Path,
    pub(super) list: BufWriter<File>,
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl Copier<'_> {
    /// Copies a tree. What is gone, and what is no file, directory or link, is
    /// left out; so is what is called `but`.
    pub(super) fn tree(&mut self, path: &Path, but: Option<&str>) -> io::Result<()> {
        let whole = self.from.join(path);
        let Some(found) = present(whole.symlink_metadata())? else {
            return Ok(());
        };
        let what = match found.file_type() {
            kind if kind.is_dir() => {
                make_dir(&self.to.join(path))?;
                What::Dir
            }
            kind if kind.is_symlink() => {
                let Some(target) = present(fs::read_link(&whole))? else {
                    return Ok(());
                };
                What::Link {
                    target: hex(target.as_os_str().as_bytes()),
                }
            }
            kind if kind.is_file() => {
                let Some(hashed) = present(copy(&whole, &self.to.join(path)))? else {
                    return Ok(());
                };
                self.files += 1;
                self.bytes += hashed.bytes;
                What::File {
                    bytes: hashed.bytes,
                    sha256: hashed.sha256,
                }
            }
            _ => return Ok(()),
        };
        let is_dir = what == What::Dir;
        self.note(path, &found, what)?;
        if is_dir {
            for name in names(&whole)? {
                if but.is_none_or(|but| name != but) {
                    self.tree(&path.join(name), but)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the directories above a tree, as they are.
    pub(super) fn parents(&mut self, path: &Path) -> io::Result<()> {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.pop();
        for dir in above.into_iter().rev() {
            if self.to.join(dir).is_dir() {
                continue;
            }
            make_dir(&self.to.join(dir))?;
            if let Some(found) = present(self.from.join(dir).symlink_metadata())? {
                self.note(dir, &found, What::Dir)?;
            }
        }
        Ok(())
    }

    fn note(&mut self, path: &Path, found: &fs::Metadata, what: What) -> io::Result<()> {
        let Some(path) = path.to_str() else {
            return Ok(());
        };
        let thing = Thing {
            path: path.to_owned(),
            mode: found.mode() & 0o7777,
            uid: found.uid(),
            gid: found.gid(),
            mtime: (found.mtime(), found.mtime_nsec()),
            what,
        };
        serde_json::to_writer(&mut self.list, &thing)?;
        self.list.write_all(b"\n")
    }
}

/// In an order in which what tells of other files comes before them: an index
/// of output that grows meanwhile must not name what was not copied.
fn names(dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let Some(entries) = present(fs::read_dir(dir))? else {
        return Ok(vec![]);
    };
    let mut names = entries
        .map(|entry| Ok(entry?.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_by_key(|name| {
        let is_index = Path::new(name).extension().is_some_and(|end| end == "idx");
        (!is_index, name.clone())
    });
    Ok(names)
}

/// Copies one file, and returns what was copied. The new one is for us alone.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<Hashed> {
    let mut source = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
        .open(from)?;
    let mut how = OpenOptions::new();
    let mut target = how.write(true).create_new(true).mode(0o600).open(to)?;
    pump(&mut source, &mut target)
}

/// Returns the hash of a file.
pub(super) fn hash(path: &Path) -> io::Result<Hashed> {
    pump(&mut File::open(path)?, &mut io::sink())
}

fn pump(from: &mut impl Read, to: &mut impl Write) -> io::Result<Hashed> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; STEP];
    let mut bytes = 0;
    loop {
        let read = match from.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
        bytes += read as u64;
    }
    Ok(Hashed {
        bytes,
        sha256: hex(&hasher.finalize()),
    })
}

/// Gives a thing that was put back what else it had. Who it belonged to counts
/// only where we may say so.
pub(super) fn dress(thing: &Thing, path: &Path) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(path, Some(thing.uid), Some(thing.gid))?;
    }
    if matches!(thing.what, What::Link { .. }) {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(thing.mode))?;
    let (seconds, nanos) = thing.mtime;
    let since = Duration::new(seconds.max(0) as u64, nanos.clamp(0, 999_999_999) as u32);
    let times = FileTimes::new().set_modified(UNIX_EPOCH + since);
    match File::open(path).and_then(|file| file.set_times(times)) {
        // What nobody may read keeps the time of now.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        done => done,
    }
}

pub(super) fn make_dir(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Has the disk keep what was written below a directory.
pub(super) fn sync(dir: &Path) -> io::Result<()> {
    rustix::fs::syncfs(File::open(dir)?).map_err(io::Error::from)
}

/// What is gone meanwhile is no error.
fn present<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn unhex(text: &str) -> Option<PathBuf> {
    let digits = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes = digits.map(byte).collect::<Option<Vec<u8>>>()?;
    Some(std::ffi::OsString::from_vec(bytes).into())
}
