//! Compares the live tree with what the run saw there.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;
use weighlock_confine::FileId;

use crate::changes::{Change, Changes, Kind, Root};
use crate::error::Error;
use crate::look::{ContentMode, look};
use crate::node::{Node, NodeKind, Raw};
use crate::open::{is_forbidden, names, open_below, open_root};

/// Something in the live tree that is not as the run saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Index of the root it is in.
    pub root: usize,
    /// Relative to the root; empty for the root itself.
    pub path: Raw,
    /// Why, as a predicate without a full stop.
    pub why: String,
}

const CHANGED: &str = "was changed meanwhile";
const GONE: &str = "is gone";
const APPEARED: &str = "appeared meanwhile";

impl Changes {
    /// Returns what in the live tree is not as the run saw it.
    pub fn conflicts(&self) -> Result<Vec<Conflict>, Error> {
        let mut found = Vec::new();
        for (index, root) in self.roots.iter().enumerate() {
            let mut check = RootComparison::new(index, root, &self.entries, &mut found)?;
            for change in check.entries.clone() {
                match check.change(change) {
                    Err(error) if is_forbidden(&error) => {
                        check.note(change.path.path(), "cannot be read any more");
                    }
                    done => {
                        let path = root.live.join(change.path.path());
                        done.map_err(Error::read(path))?;
                    }
                }
            }
        }
        Ok(found)
    }
}

/// One root while it is compared.
struct RootComparison<'a> {
    index: usize,
    live: Option<OwnedFd>,
    entries: Vec<&'a Change>,
    /// Paths that will be free.
    freed: HashSet<&'a Path>,
    /// Directories that will be there.
    made: HashSet<&'a Path>,
    /// The directory that was looked into last; the next is often the same.
    last: Option<(PathBuf, Option<OwnedFd>)>,
    found: &'a mut Vec<Conflict>,
}

impl<'a> RootComparison<'a> {
    fn new(
        index: usize,
        root: &Root,
        all: &'a [Change],
        found: &'a mut Vec<Conflict>,
    ) -> Result<Self, Error> {
        let live = open_live(root)?;
        let mut entries: Vec<&Change> = all.iter().filter(|change| change.root == index).collect();
        if live.is_none() {
            found.push(Conflict {
                root: index,
                path: Path::new("").into(),
                why: "is no longer the same directory".into(),
            });
            entries.clear();
        }
        Ok(Self {
            index,
            live,
            freed: entries.iter().filter_map(|change| freed(change)).collect(),
            made: entries.iter().filter_map(|change| made(change)).collect(),
            entries,
            last: None,
            found,
        })
    }

    fn change(&mut self, change: &Change) -> io::Result<()> {
        let path = change.path.path();
        if change.overtaken {
            self.note(path, "was changed while it ran");
            return Ok(());
        }
        let old = change.from.as_ref().unwrap_or(&change.path).path();
        if let Some(before) = &change.before
            && let Some(why) = self.differs(old, before, change)?
        {
            self.note(old, &why);
            return Ok(());
        }
        if change.before.is_none() || change.from.is_some() {
            self.must_be_free(path)?;
        }
        if change.kind == Kind::Deleted && is_dir(&change.before) {
            self.must_hold_no_more(path)?;
        }
        Ok(())
    }

    /// Returns in what the live tree differs from what stood there.
    fn differs(
        &mut self,
        path: &Path,
        before: &Node,
        change: &Change,
    ) -> io::Result<Option<String>> {
        let Some(now) = self.look(path, ContentMode::Left)? else {
            return Ok(Some(GONE.into()));
        };
        if now.kind != before.kind {
            return Ok(Some(format!("is now {}", noun(now.kind))));
        }
        let same = if change.takes_like() {
            is_like(before, &now)
        } else {
            is_it(before, &now)
        };
        // The time of a directory only says that names in it came and went;
        // those that matter have entries of their own.
        let timely = before.kind == NodeKind::Directory || now.mtime == before.mtime;
        if !same || !timely {
            return Ok(Some(CHANGED.into()));
        }
        let untouched = !change.takes_like() && now.ctime == before.ctime;
        if untouched || before.kind != NodeKind::File {
            let alike = before.attributes == now.attributes;
            return Ok((!alike).then(|| CHANGED.into()));
        }
        self.reads_otherwise(path, before, change.takes_like())
    }

    /// Compares content, as somebody may only have given the file another name.
    fn reads_otherwise(
        &mut self,
        path: &Path,
        before: &Node,
        applied: bool,
    ) -> io::Result<Option<String>> {
        let now = match self.look(path, ContentMode::Hashed)? {
            Some(now) => now,
            None => return Ok(Some(GONE.into())),
        };
        let same = match &before.content {
            Some(_) => before.content == now.content,
            None => applied,
        };
        let same = same && before.attributes == now.attributes;
        Ok((!same).then(|| CHANGED.into()))
    }

    fn must_be_free(&mut self, path: &Path) -> io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new(""));
        if self.made.contains(parent) {
            return Ok(());
        }
        if self.dir(parent)?.is_none() {
            self.note(path, "is in a directory that is gone");
        } else if !self.freed.contains(path) && self.look(path, ContentMode::Left)?.is_some() {
            self.note(path, APPEARED);
        }
        Ok(())
    }

    /// One name more is enough: the directory cannot go.
    fn must_hold_no_more(&mut self, dir: &Path) -> io::Result<()> {
        let Some(live) = &self.live else {
            return Ok(());
        };
        let Some(listed) = open_below(live, dir)? else {
            return Ok(());
        };
        let paths = names(listed)?.into_iter().map(|name| dir.join(name));
        let more = paths.into_iter().find(|path| !self.freed.contains(&**path));
        if let Some(path) = more {
            self.note(&path, APPEARED);
        }
        Ok(())
    }

    fn look(&mut self, path: &Path, content: ContentMode) -> io::Result<Option<Node>> {
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().unwrap_or(OsStr::new("."));
        match self.dir(parent)? {
            Some(dir) => Ok(look(dir, name, content)?.map(|seen| seen.node)),
            None => Ok(None),
        }
    }

    fn dir(&mut self, path: &Path) -> io::Result<Option<&OwnedFd>> {
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            let dir = match &self.live {
                Some(live) => open_below(live, path)?,
                None => None,
            };
            self.last = Some((path.to_owned(), dir));
        }
        Ok(self.last.as_ref().and_then(|(_, dir)| dir.as_ref()))
    }

    fn note(&mut self, path: &Path, why: &str) {
        self.found.push(Conflict {
            root: self.index,
            path: path.into(),
            why: why.into(),
        });
    }
}

/// Opens a root, if it is still what it was.
fn open_live(root: &Root) -> Result<Option<OwnedFd>, Error> {
    let Ok(live) = open_root(&root.live) else {
        return Ok(None);
    };
    let stat = fstat(&live).map_err(Error::read(&root.live))?;
    let found = FileId::from(&stat);
    Ok((found == root.is).then_some(live))
}

/// Returns whether it is the very same thing, apart from times.
fn is_it(before: &Node, now: &Node) -> bool {
    let key = |node: &Node| (node.device, node.inode, node.uid, node.gid);
    key(before) == key(now) && is_like(before, now)
}

/// Returns whether it could be taken for it, apart from times and content.
fn is_like(before: &Node, now: &Node) -> bool {
    let size = |node: &Node| match node.kind {
        // The file system decides on it.
        NodeKind::Directory => 0,
        _ => node.size,
    };
    before.mode == now.mode && before.target == now.target && size(before) == size(now)
}

fn freed(change: &Change) -> Option<&Path> {
    match change.after {
        // Whatever it is called: a link that goes is a change of links.
        None => Some(change.path.path()),
        Some(_) => change.from.as_ref().map(|from| from.path()),
    }
}

fn made(change: &Change) -> Option<&Path> {
    let is_new = change.kind == Kind::Created && is_dir(&change.after);
    is_new.then_some(change.path.path())
}

fn is_dir(node: &Option<Node>) -> bool {
    let is_dir = |node: &Node| node.kind == NodeKind::Directory;
    node.as_ref().is_some_and(is_dir)
}

fn noun(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::File => "a file",
        NodeKind::Directory => "a directory",
        NodeKind::Link => "a link",
        NodeKind::Special => "a device, pipe or socket",
    }
}
