//! Two trees made by hand, and what differs between them.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use weighlock_confine::{FileId, Identity};
use weighlock_effects::{Change, Changes, Kind, Node, NodeKind, Raw, Root, Source, Time};

/// What stands at a path of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Thing {
    File(Vec<u8>),
    Program(Vec<u8>),
    Link(Vec<u8>),
}

impl Thing {
    pub(crate) fn content(&self) -> &[u8] {
        match self {
            Self::File(content) | Self::Program(content) | Self::Link(content) => content,
        }
    }
}

pub(crate) fn file(content: impl AsRef<[u8]>) -> Option<Thing> {
    Some(Thing::File(content.as_ref().to_vec()))
}

pub(crate) fn program(content: impl AsRef<[u8]>) -> Option<Thing> {
    Some(Thing::Program(content.as_ref().to_vec()))
}

pub(crate) fn link(target: impl AsRef<[u8]>) -> Option<Thing> {
    Some(Thing::Link(target.as_ref().to_vec()))
}

/// A whole tree: what is at each path. Empty directories do not count.
pub(crate) type Tree = BTreeMap<Vec<u8>, Thing>;

/// A live tree and one that shall take its place.
pub(crate) struct Trees {
    dir: tempfile::TempDir,
}

impl Trees {
    pub(crate) fn new(before: &Tree, after: &Tree) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let trees = Self { dir };
        write(&trees.live(), before);
        write(&trees.upper(), after);
        trees
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(crate) fn live(&self) -> PathBuf {
        self.dir().join("live")
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.dir().join("upper")
    }

    /// What differs. These were renamed, from and to.
    pub(crate) fn changes(&self, renamed: &[(&[u8], &[u8])]) -> Changes {
        let (before, after) = (nodes(&self.live()), nodes(&self.upper()));
        let mut entries: Vec<Change> = vec![];
        let paths: BTreeSet<&Raw> = before.keys().chain(after.keys()).collect();
        for path in paths {
            let from = renamed.iter().find(|(_, to)| *to == path.bytes());
            let from = from.map(|(from, _)| raw(from));
            let left = renamed.iter().any(|(from, _)| *from == path.bytes());
            let old = match &from {
                Some(from) => before.get(from),
                None => before.get(path).filter(|_| !left),
            };
            entries.extend(compare(path, from.clone(), old, after.get(path)));
        }
        Changes {
            roots: vec![self.root()],
            entries,
            refused: vec![],
        }
    }

    pub(crate) fn root(&self) -> Root {
        let is = fs::metadata(self.live()).unwrap();
        Root {
            live: self.live(),
            is: FileId {
                device: is.dev(),
                inode: is.ino(),
            },
            owner: Identity {
                uid: is.uid(),
                gid: is.gid(),
            },
            source: Source::Upper(self.upper()),
            below: vec![],
        }
    }
}

/// One path that holds one thing and then another.
pub(crate) fn one(before: Option<Thing>, after: Option<Thing>) -> Trees {
    let tree = |thing: Option<Thing>| thing.map(|thing| (b"f".to_vec(), thing));
    Trees::new(
        &tree(before).into_iter().collect(),
        &tree(after).into_iter().collect(),
    )
}

fn compare(
    path: &Raw,
    from: Option<Raw>,
    before: Option<&Node>,
    after: Option<&Node>,
) -> Vec<Change> {
    let change = |kind, before: Option<&Node>, after: Option<&Node>| Change {
        root: 0,
        path: path.clone(),
        kind,
        from: from.clone(),
        before: before.cloned(),
        after: after.cloned(),
        built_on: None,
        overtaken: false,
        shared: false,
        alike: false,
        image: None,
    };
    let is_dir = |node: &Node| node.kind == NodeKind::Directory;
    match (before, after) {
        (Some(old), Some(new)) if from.is_some() => {
            vec![change(Kind::Renamed, Some(old), Some(new))]
        }
        (None, None) => vec![],
        (None, new) => vec![change(Kind::Created, None, new)],
        (old, None) => vec![change(Kind::Deleted, old, None)],
        (Some(old), Some(new)) if is_dir(old) && is_dir(new) => vec![],
        (Some(old), Some(new)) if is_dir(old) || is_dir(new) => vec![
            change(Kind::Deleted, Some(old), None),
            change(Kind::Created, None, Some(new)),
        ],
        (Some(old), Some(new)) => {
            let kind = if old.kind == NodeKind::Link || new.kind == NodeKind::Link {
                Kind::Link
            } else if old.content != new.content {
                Kind::Modified
            } else if old.mode != new.mode {
                Kind::Mode
            } else {
                Kind::Times
            };
            vec![change(kind, Some(old), Some(new))]
        }
    }
}

pub(crate) fn raw(name: &[u8]) -> Raw {
    Raw::from(OsStr::from_bytes(name))
}

pub(crate) fn write(dir: &Path, tree: &Tree) {
    fs::create_dir_all(dir).unwrap();
    for (name, thing) in tree {
        let path = dir.join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let (content, mode) = match thing {
            Thing::File(content) => (content, 0o644),
            Thing::Program(content) => (content, 0o755),
            Thing::Link(target) => {
                symlink(OsStr::from_bytes(target), path).unwrap();
                continue;
            }
        };
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
}

/// Reads a tree back, without git's own files.
pub(crate) fn read(dir: &Path) -> Tree {
    let mut tree = Tree::new();
    for (path, is) in walk(dir) {
        let whole = dir.join(&path);
        let thing = if is.is_symlink() {
            Thing::Link(
                fs::read_link(whole)
                    .unwrap()
                    .as_os_str()
                    .as_bytes()
                    .to_vec(),
            )
        } else if is.is_dir() {
            continue;
        } else if is.mode() & 0o100 != 0 {
            Thing::Program(fs::read(whole).unwrap())
        } else {
            Thing::File(fs::read(whole).unwrap())
        };
        tree.insert(path.as_os_str().as_bytes().to_vec(), thing);
    }
    tree
}

fn walk(dir: &Path) -> Vec<(PathBuf, Metadata)> {
    let mut found = vec![];
    let mut left = vec![dir.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let is = fs::symlink_metadata(&path).unwrap();
            if path.file_name() == Some(OsStr::new(".git")) {
                continue;
            }
            if is.is_dir() {
                left.push(path.clone());
            }
            found.push((path.strip_prefix(dir).unwrap().to_owned(), is));
        }
    }
    found
}

fn nodes(dir: &Path) -> BTreeMap<Raw, Node> {
    let node = |(path, is): (PathBuf, Metadata)| (Raw(path.clone()), node(&dir.join(path), &is));
    walk(dir).into_iter().map(node).collect()
}

pub(crate) fn node(path: &Path, is: &Metadata) -> Node {
    let time = |seconds, nanos: i64| Time {
        seconds,
        nanos: nanos as u32,
    };
    let kind = match is.file_type() {
        kind if kind.is_symlink() => NodeKind::Link,
        kind if kind.is_dir() => NodeKind::Directory,
        kind if kind.is_file() => NodeKind::File,
        _ => NodeKind::Special,
    };
    let content = || fs::read(path).map(|bytes| hash(&bytes)).unwrap();
    let target = || Raw(fs::read_link(path).unwrap());
    Node {
        kind,
        mode: is.mode() & 0o7777,
        uid: is.uid(),
        gid: is.gid(),
        size: is.size(),
        mtime: time(is.mtime(), is.mtime_nsec()),
        ctime: time(is.ctime(), is.ctime_nsec()),
        device: is.dev(),
        inode: is.ino(),
        links: is.nlink(),
        target: (kind == NodeKind::Link).then(target),
        attributes: String::new(),
        content: (kind == NodeKind::File).then(content),
    }
}

fn hash(bytes: &[u8]) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish().to_string()
}

/// Numbers that look random and are the same each time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}
