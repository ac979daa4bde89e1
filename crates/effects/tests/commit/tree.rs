//! Whole trees as values, so that they can be compared.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// All that a person could see of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: char,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) mtime: (i64, i64),
    pub(crate) size: u64,
    pub(crate) content: String,
    pub(crate) target: Option<PathBuf>,
    /// The first of the names in this tree that are the same file.
    pub(crate) same_as: PathBuf,
    pub(crate) attributes: Vec<(String, Vec<u8>)>,
}

pub(crate) type Seens = BTreeMap<PathBuf, Seen>;

/// Reads a directory with all that is in it; itself is the empty path.
pub(crate) fn tree(dir: &Path) -> Seens {
    let mut all = Seens::new();
    let mut first = BTreeMap::new();
    let mut paths = vec![PathBuf::new()];
    while let Some(path) = paths.pop() {
        let whole = if path.as_os_str().is_empty() {
            dir.to_owned()
        } else {
            dir.join(&path)
        };
        if fs::symlink_metadata(&whole).unwrap().is_dir() {
            let children = fs::read_dir(&whole).unwrap();
            let mut names: Vec<_> = children.map(|child| child.unwrap().file_name()).collect();
            names.sort();
            paths.extend(names.iter().rev().map(|name| path.join(name)));
        }
        let seen = see(&whole, &path, &mut first);
        all.insert(path, seen);
    }
    all
}

fn see(whole: &Path, path: &Path, first: &mut BTreeMap<u64, PathBuf>) -> Seen {
    let meta = fs::symlink_metadata(whole).unwrap();
    let kind = match meta.file_type() {
        kind if kind.is_dir() => 'd',
        kind if kind.is_file() => 'f',
        kind if kind.is_symlink() => 'l',
        _ => '?',
    };
    let bytes = match kind {
        // As an ordinary user a file of mode 0 cannot be read.
        'f' => fs::read(whole).unwrap_or_default(),
        _ => Vec::new(),
    };
    let same_as = first.entry(meta.ino()).or_insert_with(|| path.to_owned());
    Seen {
        kind,
        mode: meta.permissions().mode() & 0o7777,
        owner: (meta.uid(), meta.gid()),
        mtime: (meta.mtime(), meta.mtime_nsec()),
        size: if kind == 'f' { meta.len() } else { 0 },
        content: format!("{:?}", Sha256::digest(&bytes)),
        target: fs::read_link(whole).ok(),
        same_as: same_as.clone(),
        attributes: if kind == 'l' {
            Vec::new()
        } else {
            attributes(whole)
        },
    }
}

fn attributes(path: &Path) -> Vec<(String, Vec<u8>)> {
    let mut buffer = vec![0; 65536];
    let length = rustix::fs::listxattr(path, &mut buffer[..]).unwrap_or(0);
    let names = buffer[..length].split(|byte| *byte == 0);
    let names = names.filter(|name| name.starts_with(b"user."));
    let mut all = Vec::new();
    for name in names.map(|name| String::from_utf8(name.to_vec()).unwrap()) {
        let mut value = vec![0; 65536];
        if let Ok(length) = rustix::fs::getxattr(path, name.as_str(), &mut value[..]) {
            value.truncate(length);
            all.push((name, value));
        }
    }
    all.sort();
    all
}

/// Compares two trees, and names the paths that differ.
pub(crate) fn assert_same(left: &Seens, right: &Seens, what: &str) {
    if left == right {
        return;
    }
    let mut lines = Vec::new();
    for path in left.keys().chain(right.keys()) {
        let (left, right) = (left.get(path), right.get(path));
        if left != right {
            lines.push(format!("{}:\n  {left:?}\n  {right:?}", path.display()));
        }
    }
    lines.dedup();
    panic!("{what}: the trees differ at\n{}", lines.join("\n"));
}
