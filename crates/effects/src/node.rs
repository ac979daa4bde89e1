//! What stands at a path.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::look::{ContentMode, look};
use crate::open::open_below;

/// A file, directory or link, with all that tells it from another and all that
/// is applied of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Permission bits, with set-id and sticky ones.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Bytes of a file.
    pub size: u64,
    /// When its content changed last.
    pub mtime: Time,
    /// When anything about it changed last; nobody sets this back.
    pub ctime: Time,
    /// The device that holds it.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// How many names it has.
    pub links: u64,
    /// Where a link leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Raw>,
    /// Hash of its extended attributes, without those of the layer itself; empty without any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub attributes: String,
    /// Hash of a file's content, where it is small enough to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

impl Node {
    /// Reads what stands at a path below an open directory, or the directory
    /// itself as `.`; `None` if there is nothing, or a link on the way. Follows
    /// no link.
    pub fn read(dir: impl AsFd, path: impl AsRef<Path>) -> io::Result<Option<Self>> {
        Self::read_with(dir, path.as_ref(), ContentMode::Hashed)
    }

    pub(crate) fn read_with(
        dir: impl AsFd,
        path: &Path,
        content: ContentMode,
    ) -> io::Result<Option<Self>> {
        let name = match path.file_name() {
            Some(name) => name,
            None if path == Path::new(".") => path.as_os_str(),
            None => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let seen = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => match open_below(dir, parent)? {
                Some(parent) => look(parent, name, content)?,
                None => None,
            },
            _ => look(dir, name, content)?,
        };
        Ok(seen.map(|seen| seen.node))
    }
}

/// What can stand at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, pipe or socket, which is never applied.
    Special,
}

/// A moment as file systems keep it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    /// And so many nanoseconds.
    pub nanos: u32,
}

/// A path as the kernel has it: any bytes. As JSON it is text where it is
/// text, and a list of bytes where it is not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Raw(pub PathBuf);

impl Raw {
    /// Returns it as a path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }
}

impl From<&Path> for Raw {
    fn from(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl From<PathBuf> for Raw {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

impl From<&OsStr> for Raw {
    fn from(name: &OsStr) -> Self {
        Self(name.into())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathForm<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes(Vec<u8>),
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => PathForm::Text(text.into()).serialize(to),
            None => PathForm::Bytes(self.bytes().to_vec()).serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(match PathForm::deserialize(from)? {
            PathForm::Text(text) => text.into_owned().into(),
            PathForm::Bytes(bytes) => std::ffi::OsString::from_vec(bytes).into(),
        }))
    }
}
