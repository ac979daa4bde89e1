//! Extended attributes: those that a person would miss, and no others.
//!
//! `security.*` and `trusted.*` are left alone: capabilities on a file would
//! raise privileges, and labels belong to the system.

use std::io;

use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::node::Raw;

const LAYER: &[u8] = b"user.overlay.";
const ESCAPED: &[u8] = b"user.overlay.overlay.";
const ORIGIN: &[u8] = b"user.overlay.origin";
/// The kernel's own bound on a list of names and on a value (`XATTR_LIST_MAX`,
/// `XATTR_SIZE_MAX`).
const LONGEST: usize = 64 * 1024;
const LISTS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];

/// Names and values, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Attributes(Vec<(Raw, Vec<u8>)>);

impl Attributes {
    /// Reads those of the file that this path leads to. What may not be read
    /// is left out; it cannot be changed either.
    pub(crate) fn read(path: &str) -> io::Result<Self> {
        let mut list = Vec::new();
        for name in names(path)? {
            match value(path, &name) {
                Ok(value) => list.push((Raw::from(os(&name)), value)),
                Err(Errno::ACCESS | Errno::NODATA | Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        list.sort();
        Ok(Self(list))
    }

    /// Returns them as a run saw them, without the marks of the layer.
    pub(crate) fn outer(&self) -> Self {
        let seen = self.0.iter().filter_map(|(name, value)| {
            let name = match name.bytes().strip_prefix(ESCAPED) {
                Some(rest) => [LAYER, rest].concat(),
                None if name.bytes().starts_with(LAYER) => return None,
                None => name.bytes().to_vec(),
            };
            Some((Raw::from(os(&name)), value.clone()))
        });
        Self(seen.collect())
    }

    /// Whether the layer marked the file as one that it copied from below.
    pub(crate) fn has_origin(&self) -> bool {
        self.0.iter().any(|(name, _)| name.bytes() == ORIGIN)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes those of a file that has `old` into these.
    pub(crate) fn write(&self, path: &str, old: &Self) -> io::Result<()> {
        for (name, _) in &old.0 {
            if !self.0.iter().any(|(other, _)| other == name) {
                match removexattr(path, name.path()) {
                    Ok(()) | Err(Errno::NODATA) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        for pair in self.0.iter().filter(|pair| !old.0.contains(pair)) {
            setxattr(path, pair.0.path(), &pair.1, XattrFlags::empty())?;
        }
        Ok(())
    }
}

fn names(path: &str) -> io::Result<Vec<Vec<u8>>> {
    let all = match filled(|buffer| listxattr(path, buffer)) {
        Ok(all) => all,
        Err(Errno::OPNOTSUPP) => return Ok(vec![]),
        Err(error) => return Err(error.into()),
    };
    let all = all.split(|byte| *byte == 0);
    let ours = all.filter(|name| name.starts_with(b"user.") || LISTS.contains(name));
    Ok(ours.map(<[u8]>::to_vec).collect())
}

fn value(path: &str, name: &[u8]) -> Result<Vec<u8>, Errno> {
    filled(|buffer| getxattr(path, name, buffer))
}

/// Has a buffer filled that is large enough. Most files have no attributes at
/// all, and clearing the largest buffer takes longer than asking.
fn filled(mut fill: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 512];
    loop {
        match fill(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < LONGEST => buffer.resize(LONGEST, 0),
            Err(error) => return Err(error),
        }
    }
}

fn os(bytes: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}
