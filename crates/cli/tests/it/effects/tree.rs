//! All that can be told of a directory and what is below it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// By path, relative to the directory, which is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree(pub(crate) BTreeMap<PathBuf, Node>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    kind: &'static str,
    mode: u32,
    owner: (u32, u32),
    size: u64,
    /// Of a file's content.
    hash: u64,
    target: Option<PathBuf>,
    /// Seconds and nanoseconds.
    pub(crate) mtime: (i64, i64),
    /// The first of the names that the same file has.
    first_name: PathBuf,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Takes less than half of its size on disk.
    sparse: bool,
}

impl Tree {
    pub(crate) fn of(dir: &Path) -> Self {
        let mut tree = BTreeMap::new();
        let mut names = HashMap::new();
        walk(dir, Path::new(""), &mut tree, &mut names);
        Self(tree)
    }

    /// Without what is below these, and without the content of files with such
    /// names.
    pub(crate) fn without(mut self, loose: &[&str]) -> Self {
        for (path, node) in &mut self.0 {
            if loose.iter().any(|name| is_meant(path, name)) {
                (node.hash, node.size, node.sparse) = (0, 0, false);
            }
        }
        self
    }

    /// What differs, in words; at most a dozen of them.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let all: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let lines = all.iter().filter_map(|path| {
            let (one, two) = (self.0.get(*path), other.0.get(*path));
            (one != two).then(|| format!("{}: {one:?}\n    and {two:?}", path.display()))
        });
        lines.take(12).collect()
    }

    /// Puts each time that was now for the one that made it into the other's
    /// place, if it was now for that one too.
    pub(crate) fn with_times_of(mut self, own: &Span, other: &Self, others: &Span) -> Self {
        for (path, node) in &mut self.0 {
            if let Some(other) = other.0.get(path)
                && own.holds(node.mtime)
                && others.holds(other.mtime)
            {
                node.mtime = other.mtime;
            }
        }
        self
    }
}

impl Tree {
    /// The same but for times.
    pub(crate) fn alike(&self, other: &Self) -> bool {
        let timeless = |tree: &Self| {
            let mut tree = tree.clone();
            tree.0.values_mut().for_each(|node| node.mtime = (0, 0));
            tree
        };
        timeless(self) == timeless(other)
    }

    /// As if each name were a file of its own.
    pub(crate) fn split(mut self) -> Self {
        for (path, node) in &mut self.0 {
            node.first_name.clone_from(path);
        }
        self
    }

    /// Takes the other's word for the time of directories that have the names
    /// that they had, if it is the time that they had.
    pub(crate) fn with_old_dirs_of(mut self, other: &Self, before: &Self) -> Self {
        let old: Vec<PathBuf> = { self.0.iter() }
            .filter(|(path, node)| {
                let mtime = |tree: &Self| tree.0.get(*path).map(|node| node.mtime);
                node.kind == "directory"
                    && mtime(other) == mtime(before)
                    && self.names(path) == before.names(path)
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in old {
            if let (Some(node), Some(other)) = (self.0.get_mut(&path), other.0.get(&path)) {
                node.mtime = other.mtime;
            }
        }
        self
    }

    fn names(&self, dir: &Path) -> Vec<&PathBuf> {
        let is_in = |path: &&PathBuf| path.parent() == Some(dir) && *path != dir;
        self.0.keys().filter(is_in).collect()
    }
}

/// `a/b/` means what is below it, `a/b` the file.
fn is_meant(path: &Path, name: &str) -> bool {
    match name.strip_suffix('/') {
        Some(dir) => path.starts_with(dir) && path != Path::new(dir),
        None => path == Path::new(name),
    }
}

/// From when to when something ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) from: std::time::SystemTime,
    pub(crate) to: std::time::SystemTime,
}

impl Span {
    /// The clock of files is coarse: a hundredth of a second at worst.
    fn holds(&self, (seconds, nanos): (i64, i64)) -> bool {
        let at = |time: std::time::SystemTime| {
            let since = time.duration_since(std::time::UNIX_EPOCH).unwrap();
            since.as_micros() as i64
        };
        let time = seconds * 1_000_000 + nanos / 1000;
        (at(self.from) - 20_000..=at(self.to)).contains(&time)
    }
}

type Names = HashMap<(u64, u64), PathBuf>;

fn walk(dir: &Path, path: &Path, tree: &mut BTreeMap<PathBuf, Node>, names: &mut Names) {
    let at = match path.as_os_str().is_empty() {
        true => dir.to_owned(),
        false => dir.join(path),
    };
    let node = node(&at, path, names);
    let is_dir = node.kind == "directory";
    tree.insert(path.to_owned(), node);
    if !is_dir {
        return;
    }
    let entries = fs::read_dir(&at).unwrap();
    let mut below: Vec<OsString> = entries.map(|entry| entry.unwrap().file_name()).collect();
    below.sort();
    for name in below {
        walk(dir, &path.join(name), tree, names);
    }
}

fn node(at: &Path, path: &Path, names: &mut Names) -> Node {
    let meta = fs::symlink_metadata(at).unwrap();
    let kind = meta.file_type();
    let first_name = match kind.is_dir() {
        true => path.to_owned(),
        false => { names.entry((meta.dev(), meta.ino())) }
            .or_insert_with(|| path.to_owned())
            .clone(),
    };
    Node {
        kind: match kind {
            kind if kind.is_dir() => "directory",
            kind if kind.is_file() => "file",
            kind if kind.is_symlink() => "link",
            kind if kind.is_fifo() => "fifo",
            kind if kind.is_socket() => "socket",
            _ => "device",
        },
        mode: meta.mode() & 0o7777,
        owner: (meta.uid(), meta.gid()),
        size: if kind.is_dir() { 0 } else { meta.size() },
        hash: if kind.is_file() { hash(at) } else { 0 },
        target: kind.is_symlink().then(|| fs::read_link(at).unwrap()),
        mtime: (meta.mtime(), meta.mtime_nsec()),
        first_name,
        xattrs: xattrs(at),
        sparse: kind.is_file() && meta.size() > 1 << 20 && meta.blocks() * 1024 < meta.size(),
    }
}

fn hash(at: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    // One that we cannot read is left as it is by those who cannot either.
    let Ok(mut file) = fs::File::open(at) else {
        return 0;
    };
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).unwrap() {
            0 => return hasher.finish(),
            count => hasher.write(&buffer[..count]),
        }
    }
}

fn xattrs(at: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut list = [0; 4096];
    let length = rustix::fs::llistxattr(at, &mut list).unwrap_or_default();
    let names = list[..length].split(|&byte| byte == 0);
    let mut xattrs = BTreeMap::new();
    for name in names.filter(|name| !name.is_empty()) {
        let mut value = [0; 4096];
        let key = std::ffi::OsStr::from_bytes(name);
        let length = rustix::fs::lgetxattr(at, key, &mut value).unwrap_or_default();
        xattrs.insert(name.to_vec(), value[..length].to_vec());
    }
    xattrs
}
