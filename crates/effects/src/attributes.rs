//! Extended attributes: what they say about the layer, and what is the run's.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{fgetxattr, flistxattr};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::look::hex;

/// The kernel gives neither a longer list of names nor a longer value.
const LONGEST: usize = 64 * 1024;

/// The layer's own marks begin with this. What a run itself sets so gets the
/// second word twice.
const OWN: &[u8] = b"user.overlay.";
const ESCAPED: &[u8] = b"user.overlay.overlay.";

const CAPABILITY: &[u8] = b"security.capability";

/// Extended attributes of one file.
#[derive(Debug, Default)]
pub(crate) struct FileAttributes {
    /// What belongs to the file, by name; names as the run sees them.
    pub(crate) of_file: Vec<(CString, Vec<u8>)>,
    /// It is marked as hiding what is below it.
    pub(crate) opaque: bool,
    /// It is marked as standing for something deleted.
    pub(crate) whiteout: bool,
    /// It is marked as copied up, and from where.
    pub(crate) origin: Option<Vec<u8>>,
    /// The run gave it what would be a layer's mark outside.
    pub(crate) pretends: bool,
}

impl FileAttributes {
    /// Reads those that are ours to know; others belong to the system.
    pub(crate) fn read(file: impl AsFd) -> io::Result<Self> {
        let mut found = Self::default();
        for name in list(&file)? {
            found.add(&file, &name)?;
        }
        found.of_file.sort();
        Ok(found)
    }

    /// Returns a hash of the attributes that belong to the file; empty without
    /// any.
    pub(crate) fn hash(&self) -> String {
        if self.of_file.is_empty() {
            return String::new();
        }
        let mut hasher = Sha256::new();
        for (name, value) in &self.of_file {
            hasher.update(name.to_bytes_with_nul());
            hasher.update((value.len() as u64).to_le_bytes());
            hasher.update(value);
        }
        hex(&hasher.finalize(), 32)
    }

    /// Returns what it grants to who runs it.
    pub(crate) fn capability(&self) -> Option<&[u8]> {
        let mut all = self.of_file.iter();
        all.find(|(name, _)| name.as_bytes() == CAPABILITY)
            .map(|(_, value)| value.as_slice())
    }

    fn add(&mut self, file: impl AsFd, name: &CStr) -> io::Result<()> {
        let bytes = name.to_bytes();
        if let Some(rest) = bytes.strip_prefix(ESCAPED) {
            self.pretends = true;
            let seen = [OWN, rest].concat();
            return self.keep(file, name, CString::new(seen)?);
        }
        match bytes.strip_prefix(OWN) {
            // Only `y` hides; `x` says that files may stand for deleted ones.
            Some(b"opaque") => self.opaque = value(file, name)?.as_deref() == Some(b"y"),
            Some(b"whiteout") => self.whiteout = true,
            Some(b"origin") => self.origin = Some(value(file, name)?.unwrap_or_default()),
            Some(_) => {}
            None if is_of_file(bytes) => self.keep(file, name, name.to_owned())?,
            None => {}
        }
        Ok(())
    }

    fn keep(&mut self, file: impl AsFd, name: &CStr, seen: CString) -> io::Result<()> {
        if let Some(value) = value(file, name)? {
            self.of_file.push((seen, value));
        }
        Ok(())
    }
}

fn is_of_file(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_") || name == CAPABILITY
}

fn list(file: impl AsFd) -> io::Result<Vec<CString>> {
    let mut names = vec![0; 1024];
    let length = loop {
        match flistxattr(&file, names.as_mut_slice()) {
            Ok(length) => break length,
            Err(Errno::RANGE) if names.len() < LONGEST => names.resize(LONGEST, 0),
            Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
    };
    let each = names[..length].split(|byte| *byte == 0);
    each.filter(|name| !name.is_empty())
        .map(|name| Ok(CString::new(name)?))
        .collect()
}

fn value(file: impl AsFd, name: &CStr) -> io::Result<Option<Vec<u8>>> {
    let mut value = vec![0; 1024];
    loop {
        match fgetxattr(&file, name, value.as_mut_slice()) {
            Ok(length) => {
                value.truncate(length);
                return Ok(Some(value));
            }
            Err(Errno::RANGE) if value.len() < LONGEST => value.resize(LONGEST, 0),
            Err(Errno::NODATA | Errno::OPNOTSUPP) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}
