//! A live tree and what a run would change in it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use weighlock_confine::{FileId, Identity};
use weighlock_effects::{
    Applied, Change, Changes, CommitError, Kind, Node, NodeKind, Place, Root, Source, commit,
};
use weighlock_policy::ChangeQuestion;

use crate::tree::{Seens, tree};

pub(crate) struct Stage {
    pub(crate) temp: tempfile::TempDir,
    /// Where the live tree is, if not in `temp`.
    pub(crate) other: Option<tempfile::TempDir>,
    deleted: Vec<PathBuf>,
    renamed: Vec<(PathBuf, PathBuf)>,
    clock: u64,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(None)
    }

    /// Has the live tree on another file system than everything else.
    pub(crate) fn with(other: Option<tempfile::TempDir>) -> Self {
        let mut stage = Self {
            temp: tempfile::tempdir().unwrap(),
            other,
            deleted: Vec::new(),
            renamed: Vec::new(),
            clock: 1_000_000,
        };
        for dir in [stage.live(), stage.upper()] {
            fs::create_dir(&dir).unwrap();
            stage.age(&dir);
        }
        stage
    }

    pub(crate) fn live(&self) -> PathBuf {
        let base = self.other.as_ref().unwrap_or(&self.temp);
        base.path().canonicalize().unwrap().join("live")
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join("upper")
    }

    pub(crate) fn place(&self, name: &str) -> Place {
        Place {
            dir: self.temp.path().join("state").join(name),
            durable: false,
            alone: true,
        }
    }

    /// Gives a path a time of its own, so that no two are alike by chance.
    pub(crate) fn age(&mut self, path: &Path) {
        use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
        self.clock += 1;
        let time = Timespec {
            tv_sec: self.clock as i64,
            tv_nsec: 123_456_789,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }

    fn put(&mut self, base: PathBuf, path: &Path, make: impl FnOnce(&Path)) {
        let whole = base.join(path);
        let parent = whole.parent().unwrap().to_owned();
        self.dirs(&base, path.parent().unwrap());
        make(&whole);
        self.age(&whole);
        self.age(&parent);
    }

    /// Makes missing directories, in the upper with the rights they have live.
    pub(crate) fn dirs(&mut self, base: &Path, path: &Path) {
        let mut so_far = PathBuf::new();
        for part in path {
            so_far.push(part);
            let whole = base.join(&so_far);
            let parent = File::open(whole.parent().unwrap()).unwrap();
            let time = parent.metadata().unwrap().modified().unwrap();
            if fs::create_dir(&whole).is_ok() {
                let live = fs::metadata(self.live().join(&so_far));
                let Some(meta) = live
                    .ok()
                    .filter(|meta| meta.is_dir() && base != self.live())
                else {
                    self.age(&whole);
                    self.age(whole.parent().unwrap());
                    continue;
                };
                fs::set_permissions(&whole, meta.permissions()).unwrap();
                let dir = File::open(&whole).unwrap();
                dir.set_modified(meta.modified().unwrap()).unwrap();
                parent.set_modified(time).unwrap();
            }
        }
    }

    pub(crate) fn file(&mut self, path: impl AsRef<Path>, text: &str) {
        self.put(self.live(), path.as_ref(), |at| {
            fs::write(at, text).unwrap()
        });
    }

    pub(crate) fn new_file(&mut self, path: impl AsRef<Path>, text: &str) {
        self.put(self.upper(), path.as_ref(), |at| {
            fs::write(at, text).unwrap()
        });
    }

    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.put(self.live(), path.as_ref(), |at| {
            symlink(target, at).unwrap()
        });
    }

    pub(crate) fn new_link(&mut self, path: &str, target: &str) {
        self.put(self.upper(), path.as_ref(), |at| {
            symlink(target, at).unwrap()
        });
    }

    pub(crate) fn hard(&mut self, path: &str, other: &str) {
        let other = self.live().join(other);
        self.put(self.live(), path.as_ref(), |at| {
            fs::hard_link(other, at).unwrap()
        });
    }

    pub(crate) fn new_hard(&mut self, path: &str, other: &str) {
        let other = self.upper().join(other);
        self.put(self.upper(), path.as_ref(), |at| {
            fs::hard_link(other, at).unwrap()
        });
    }

    pub(crate) fn new_dir(&mut self, path: &str) {
        let upper = self.upper();
        self.dirs(&upper, Path::new(path));
    }

    /// As a run would have it that only changes rights.
    pub(crate) fn new_mode(&mut self, path: &str, mode: u32) {
        let (live, upper) = (self.live().join(path), self.upper().join(path));
        if live.is_dir() {
            self.new_dir(path);
        } else {
            self.new_dir(Path::new(path).parent().unwrap().to_str().unwrap());
            fs::copy(&live, &upper).unwrap();
            let file = File::options().read(true).open(&upper).unwrap();
            let time = fs::metadata(&live).unwrap().modified().unwrap();
            file.set_modified(time).unwrap();
        }
        fs::set_permissions(&upper, fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn delete(&mut self, path: &str) {
        let parent = Path::new(path).parent().unwrap().to_owned();
        let upper = self.upper();
        self.dirs(&upper, &parent);
        self.age(&upper.join(parent));
        self.deleted.push(path.into());
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        let (old, new) = (self.live().join(from), self.upper().join(to));
        for path in [from, to] {
            let upper = self.upper();
            let parent = Path::new(path).parent().unwrap().to_owned();
            self.dirs(&upper, &parent);
            self.age(&upper.join(parent));
        }
        fs::copy(&old, &new).unwrap();
        let time = fs::metadata(&old).unwrap().modified().unwrap();
        File::open(&new).unwrap().set_modified(time).unwrap();
        self.age(new.parent().unwrap());
        self.renamed.push((from.into(), to.into()));
    }

    /// What the live tree should be afterwards.
    pub(crate) fn expected(&self) -> Seens {
        let mut all = tree(&self.live());
        let gone = self
            .deleted
            .iter()
            .chain(self.renamed.iter().map(|(from, _)| from));
        for path in gone {
            all.retain(|other, _| !other.starts_with(path));
        }
        for (path, mut seen) in tree(&self.upper()) {
            seen.attributes
                .retain(|(name, _)| !name.starts_with("user.overlay."));
            all.insert(path, seen);
        }
        all
    }

    pub(crate) fn changes(&self) -> Changes {
        let live = self.live();
        let mut entries = Vec::new();
        for path in &self.deleted {
            for path in below(&live, path) {
                entries.push(change(Kind::Deleted, &path, node(&live, &path), None));
            }
        }
        let removed: BTreeSet<PathBuf> = entries.iter().map(|entry| entry.path.0.clone()).collect();
        for path in below(&self.upper(), Path::new("")) {
            let after = node(&self.upper(), &path);
            let before = match removed.contains(&path) {
                true => None,
                false => node(&live, &path),
            };
            if let Some((from, _)) = self.renamed.iter().find(|(_, to)| *to == path) {
                let mut entry = change(Kind::Renamed, &path, node(&live, from), after);
                entry.from = Some(from.clone().into());
                entries.push(entry);
            } else if let Some(kind) = kind(before.as_ref(), after.as_ref()) {
                entries.push(change(kind, &path, before, after));
            }
        }
        entries.sort_by(|a, b| (&a.path, a.after.is_some()).cmp(&(&b.path, b.after.is_some())));
        Changes {
            roots: vec![self.root()],
            entries,
            refused: Vec::new(),
        }
    }

    fn root(&self) -> Root {
        let meta = fs::metadata(self.live()).unwrap();
        Root {
            live: self.live(),
            is: FileId {
                device: meta.dev(),
                inode: meta.ino(),
            },
            owner: Identity {
                uid: meta.uid(),
                gid: meta.gid(),
            },
            source: Source::Upper(self.upper()),
            below: Vec::new(),
        }
    }

    pub(crate) fn commit(&self) -> Result<Applied, CommitError> {
        apply(&self.changes(), &self.place("first"))
    }

    /// Commits, undoes and redoes it, and compares the whole tree each time.
    pub(crate) fn there_and_back(&self) -> Applied {
        let (before, after) = (tree(&self.live()), self.expected());
        let applied = self.commit().unwrap();
        crate::tree::assert_same(&tree(&self.live()), &after, "after the commit");
        let undo = applied.inverse(&self.place("first").dir);
        let undone = apply(&undo, &self.place("undo")).unwrap();
        crate::tree::assert_same(&tree(&self.live()), &before, "after the undo");
        let redo = undone.inverse(&self.place("undo").dir);
        apply(&redo, &self.place("redo")).unwrap();
        crate::tree::assert_same(&tree(&self.live()), &after, "after the redo");
        applied
    }
}

pub(crate) fn apply(changes: &Changes, place: &Place) -> Result<Applied, CommitError> {
    let permit = ChangeQuestion::about(&changes.hash()).approved_by("ana");
    commit(changes, permit, place)
}

pub(crate) fn node(base: &Path, path: &Path) -> Option<Node> {
    let whole = base.join(path);
    let (dir, name) = match path.file_name() {
        Some(name) => (whole.parent()?.to_owned(), name.to_owned()),
        None => (base.to_owned(), ".".into()),
    };
    if !dir.is_dir() {
        return None;
    }
    Node::read(File::open(dir).ok()?, &name).unwrap()
}

fn kind(before: Option<&Node>, after: Option<&Node>) -> Option<Kind> {
    let (Some(before), Some(after)) = (before, after) else {
        return Some(if before.is_some() {
            Kind::Deleted
        } else {
            Kind::Created
        });
    };
    let content = |node: &Node| {
        (
            node.kind,
            node.size,
            node.content.clone(),
            node.target.clone(),
        )
    };
    let rights = |node: &Node| (node.mode, node.uid, node.gid, node.attributes.clone());
    if before.kind == NodeKind::Directory && after.kind == NodeKind::Directory {
        return (rights(before) != rights(after)).then_some(Kind::Mode);
    }
    if before.kind == NodeKind::Link || after.kind == NodeKind::Link {
        return Some(Kind::Link);
    }
    if content(before) != content(after) {
        return Some(Kind::Modified);
    }
    if rights(before) != rights(after) {
        return Some(Kind::Mode);
    }
    (before.mtime != after.mtime).then_some(Kind::Times)
}

fn change(kind: Kind, path: &Path, before: Option<Node>, after: Option<Node>) -> Change {
    Change {
        root: 0,
        path: path.into(),
        kind,
        from: None,
        before,
        after,
        built_on: None,
        overtaken: false,
        shared: false,
        alike: false,
        image: None,
    }
}

/// A path with all that is in it.
fn below(base: &Path, path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    let whole = base.join(path);
    if fs::symlink_metadata(&whole).unwrap().is_dir() {
        for child in fs::read_dir(&whole).unwrap() {
            all.extend(below(base, &path.join(child.unwrap().file_name())));
        }
    }
    all
}

/// Temporary names that were left in a tree.
pub(crate) fn leftovers(seen: &Seens) -> Vec<&PathBuf> {
    let ours = |path: &&PathBuf| {
        path.iter()
            .any(|name| name.as_bytes().starts_with(b".weighlock-"))
    };
    seen.keys().filter(ours).collect()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
