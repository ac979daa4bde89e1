//! A backup that is being read. Nothing in it is trusted.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use weighlock_store::hex;

use crate::digest::{FileDigest, copy_and_hash};
use crate::error::{Error, quoted};
use crate::manifest::{FORMAT, MANIFEST, Manifest};
use crate::root_dir::RootDir;

/// The largest manifest that is read. It has a line for each rule file.
const MANIFEST_BYTES: u64 = 1 << 20;

/// The directory of a backup.
pub(crate) struct BackupDir(RootDir);

impl BackupDir {
    pub(crate) fn open(dir: &Path) -> Result<Self, Error> {
        RootDir::open(dir)
            .map(Self)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => not_a_backup(dir),
                _ => Error::file(dir)(error),
            })
    }

    /// Returns the absolute path of a file, for error messages.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    /// Lists a directory of the backup: names, and whether each is a directory.
    pub(crate) fn names(&self, dir: &Path) -> Result<Vec<(std::ffi::OsString, bool)>, Error> {
        self.0.names(dir).map_err(Error::file(&self.0.path(dir)))
    }

    /// Reads the manifest and returns it with its hash, which must be the
    /// expected one if the caller has kept it elsewhere.
    pub(crate) fn manifest(&self, expected: Option<&str>) -> Result<(Manifest, String), Error> {
        let text = self.read_manifest()?;
        let sha256 = hex(&Sha256::digest(&text));
        if let Some(expected) = expected.filter(|hash| !hash.eq_ignore_ascii_case(&sha256)) {
            return Err(Error::damaged(format!(
                "its hash is {sha256}, and not {}",
                quoted(expected)
            )));
        }
        check_format(&text)?;
        let manifest = serde_json::from_slice(&text);
        let manifest = manifest.map_err(|error| Error::damaged(format!("{MANIFEST}: {error}")))?;
        Ok((manifest, sha256))
    }

    fn read_manifest(&self) -> Result<Vec<u8>, Error> {
        let file = match self.0.read(MANIFEST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(not_a_backup(self.0.root()));
            }
            _ => self.open_file(MANIFEST)?,
        };
        let mut text = vec![];
        let read = file.take(MANIFEST_BYTES).read_to_end(&mut text);
        read.map_err(Error::file(&self.path(MANIFEST)))?;
        Ok(text)
    }

    pub(crate) fn open_file(&self, name: &str) -> Result<File, Error> {
        self.0.read(name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::damaged(format!("{name} is missing")),
            io::ErrorKind::InvalidData => Error::damaged(format!("{name} is no file")),
            _ => Error::file(&self.path(name))(error),
        })
    }

    /// Checks that a file has the digest that the manifest gives.
    pub(crate) fn check_file(&self, name: &str, expected: &FileDigest) -> Result<(), Error> {
        self.copy_file(name, expected, (Path::new(""), io::sink()))
    }

    /// Copies a file, and checks that what it copied has the expected digest.
    /// It reads one byte more than expected at most: a longer file was changed.
    pub(crate) fn copy_file(
        &self,
        name: &str,
        expected: &FileDigest,
        to: (&Path, impl io::Write),
    ) -> Result<(), Error> {
        let file = self.open_file(name)?;
        let bounded = file.take(expected.bytes.saturating_add(1));
        match copy_and_hash((&self.path(name), bounded), to)? == *expected {
            true => Ok(()),
            false => Err(Error::damaged(format!("{name} was changed"))),
        }
    }
}

fn check_format(manifest: &[u8]) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct FormatHeader {
        format: u32,
    }
    match serde_json::from_slice::<FormatHeader>(manifest) {
        Ok(header) if header.format > FORMAT => Err(Error::invalid(
            "backup_newer",
            "the backup was made by a newer version; nothing was done".into(),
            "use the newer version of weighlock",
        )),
        _ => Ok(()),
    }
}

fn not_a_backup(dir: &Path) -> Error {
    Error::invalid(
        "no_backup",
        format!("{} is not a backup: it has no {MANIFEST}", dir.display()),
        "give the directory that `weighlock backup` printed",
    )
}
