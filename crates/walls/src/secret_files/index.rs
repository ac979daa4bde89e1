//! Finds the files of a directory that hold secrets.
//!
//! Walking through a large project takes longer than a command may cost. So it
//! is walked once, and the kernel tells what appears afterwards: an event is in
//! the queue before the system call that caused it returns, and the queue is
//! read before each run. Where the kernel cannot tell (no watches are left, or
//! the file system is a network's), the directory is walked for every run.

mod watch;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use weighlock_confine::FileId;
use weighlock_policy::SecretFiles;

use self::watch::{Appeared, Watch};
use crate::live::lock;

/// Directories that are walked through at the most: several times what the
/// largest repositories have, and a few seconds.
pub(super) const MOST_DIRECTORIES: usize = 100_000;

/// Secret files at the most. Each is a mount for every run.
pub(super) const MOST_FILES: usize = 2_000;

/// Indexes that are kept. Each may hold as many watches as there are
/// directories.
const MOST_INDEXES: usize = 16;

/// Directories that are not entered: what is in them was downloaded, or made
/// of what is elsewhere, and they are larger than all the rest.
const SKIPPED: &[&str] = &[".git", "node_modules", "site-packages", "__pycache__"];

/// There is more to look through than can be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// What is known, by directory.
#[derive(Default)]
pub(crate) struct Indexes(Mutex<HashMap<PathBuf, Kept>>);

struct Kept {
    list: Arc<SecretFiles>,
    used: Instant,
    index: Arc<Mutex<Index>>,
}

impl Indexes {
    /// Returns the files and directories below `dir` that are on the list, with
    /// all names that they have there; absolute.
    pub(super) fn find(
        &self,
        dir: &Path,
        list: &Arc<SecretFiles>,
    ) -> Result<BTreeSet<PathBuf>, TooMany> {
        let index = self.index(dir, list);
        lock(&index).find()
    }

    fn index(&self, dir: &Path, list: &Arc<SecretFiles>) -> Arc<Mutex<Index>> {
        let mut all = lock(&self.0);
        if let Some(kept) = all.get_mut(dir)
            && kept.list == *list
        {
            kept.used = Instant::now();
            return Arc::clone(&kept.index);
        }
        if all.len() >= MOST_INDEXES {
            let oldest = all.iter().min_by_key(|(_, kept)| kept.used);
            let oldest = oldest.map(|(dir, _)| dir.clone());
            oldest.and_then(|dir| all.remove(&dir));
        }
        let index = Arc::new(Mutex::new(Index::new(dir, list)));
        let kept = Kept {
            list: Arc::clone(list),
            used: Instant::now(),
            index: Arc::clone(&index),
        };
        all.insert(dir.to_owned(), kept);
        index
    }
}

/// The secret files of one directory.
struct Index {
    dir: PathBuf,
    list: Arc<SecretFiles>,
    /// What `dir` was when it was walked through.
    is: Option<FileId>,
    /// Relative.
    found: BTreeSet<PathBuf>,
    watch: Option<Watch>,
    /// All names of files that have several, relative, by what tells that
    /// there are others now: the time of change.
    names: HashMap<(u64, u64, i64, i64), Vec<PathBuf>>,
}

impl Index {
    fn new(dir: &Path, list: &Arc<SecretFiles>) -> Self {
        Self {
            dir: dir.to_owned(),
            list: Arc::clone(list),
            is: None,
            found: BTreeSet::new(),
            watch: None,
            names: HashMap::new(),
        }
    }

    fn find(&mut self) -> Result<BTreeSet<PathBuf>, TooMany> {
        self.refresh()?;
        let mut all = BTreeSet::new();
        for path in self.found.clone() {
            let at = self.dir.join(&path);
            let Ok(meta) = at.symlink_metadata() else {
                // If it comes back, the kernel tells.
                self.found.remove(&path);
                continue;
            };
            if meta.is_symlink() {
                // Reading it is reading what it leads to.
                let whole = self.list.has(&path.to_string_lossy(), true);
                let to = at.canonicalize().ok();
                let to = to.filter(|to| to.is_file() || whole && !self.dir.starts_with(to));
                all.extend(to);
                continue;
            }
            if meta.nlink() > 1 && meta.is_file() {
                let names = self.names_of(&meta)?;
                all.extend(names.iter().map(|name| self.dir.join(name)));
            }
            all.insert(at);
        }
        match all.len() > MOST_FILES {
            true => Err(TooMany),
            false => Ok(all),
        }
    }

    /// Brings what was found up to date.
    fn refresh(&mut self) -> Result<(), TooMany> {
        let is = { self.dir.symlink_metadata().ok() }.map(|meta| FileId::from(&meta));
        if let Some(watch) = &mut self.watch
            && is.is_some()
            && is == self.is
            && let Some(appeared) = watch.appeared()
        {
            return self.take_in(appeared);
        }
        self.is = is;
        self.found.clear();
        self.names.clear();
        self.watch = Watch::new(&self.dir);
        self.walk(PathBuf::new())
    }

    fn take_in(&mut self, appeared: Vec<Appeared>) -> Result<(), TooMany> {
        for Appeared { path, is_dir } in appeared {
            match is_dir {
                true => self.meet_directory(path)?,
                false => self.meet_file(path),
            }
        }
        Ok(())
    }

    /// Takes note of what is no directory; but it may be a link to one.
    fn meet_file(&mut self, path: PathBuf) {
        let text = path.to_string_lossy();
        if self.list.has(&text, false) || self.list.has(&text, true) {
            self.found.insert(path);
        }
    }

    fn meet_directory(&mut self, path: PathBuf) -> Result<(), TooMany> {
        match self.list.has(&path.to_string_lossy(), true) {
            true => {
                self.found.insert(path);
                Ok(())
            }
            false if is_skipped(&path) => Ok(()),
            false => self.walk(path),
        }
    }

    /// Walks through a directory, the shallow parts first. Links are not
    /// followed.
    fn walk(&mut self, from: PathBuf) -> Result<(), TooMany> {
        let mut waiting = VecDeque::from([from]);
        let mut walked = 0;
        while let Some(dir) = waiting.pop_front() {
            walked += 1;
            if walked > MOST_DIRECTORIES {
                // Not to be taken for complete the next time.
                self.watch = None;
                return Err(TooMany);
            }
            let at = self.dir.join(&dir);
            // Before it is listed: what appears in between is told, then.
            if let Some(watch) = &mut self.watch
                && !watch.add(&at, &dir)
            {
                self.watch = None;
            }
            // What we may not list, the command may not either.
            for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
                let path = dir.join(entry.file_name());
                let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if !is_dir {
                    self.meet_file(path);
                } else if self.list.has(&path.to_string_lossy(), true) {
                    self.found.insert(path);
                } else if !is_skipped(&path) {
                    waiting.push_back(path);
                }
            }
        }
        Ok(())
    }

    /// Returns all names that a file has here.
    fn names_of(&mut self, meta: &fs::Metadata) -> Result<Vec<PathBuf>, TooMany> {
        let key = (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec());
        if let Some(names) = self.names.get(&key) {
            return Ok(names.clone());
        }
        let names = names_of(&self.dir, meta.ino())?;
        self.names.insert(key, names.clone());
        Ok(names)
    }
}

/// Finds every name of a file by its number, wherever it is; relative.
fn names_of(dir: &Path, inode: u64) -> Result<Vec<PathBuf>, TooMany> {
    let mut names = vec![];
    let mut waiting = vec![PathBuf::new()];
    let mut walked = 0;
    while let Some(from) = waiting.pop() {
        walked += 1;
        if walked > MOST_DIRECTORIES {
            return Err(TooMany);
        }
        for entry in fs::read_dir(dir.join(&from))
            .into_iter()
            .flatten()
            .flatten()
        {
            let path = from.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
            } else if entry.ino() == inode {
                names.push(path);
            }
        }
    }
    Ok(names)
}

/// Finds what is on the list below a directory that changes with every run;
/// relative.
pub(super) fn find_once(dir: &Path, list: &Arc<SecretFiles>) -> Result<BTreeSet<PathBuf>, TooMany> {
    let mut index = Index::new(dir, list);
    index.walk(PathBuf::new())?;
    Ok(index.found)
}

fn is_skipped(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| SKIPPED.iter().any(|skipped| name == *skipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir, Indexes, Arc<SecretFiles>);

    impl Tree {
        fn new() -> Self {
            let list = SecretFiles::new([]).unwrap();
            Self(
                tempfile::tempdir().unwrap(),
                Indexes::default(),
                Arc::new(list),
            )
        }

        fn dir(&self) -> &Path {
            self.0.path()
        }

        fn put(&self, path: &str) {
            let path = self.dir().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }

        fn found(&self) -> Vec<String> {
            let found = self.1.find(self.dir(), &self.2).unwrap();
            let relative = |path: &PathBuf| path.strip_prefix(self.dir()).unwrap().to_owned();
            let found = found.iter().map(relative);
            found
                .map(|path| path.to_str().unwrap().to_owned())
                .collect()
        }
    }

    #[test]
    fn what_appears_is_found_at_once() {
        let tree = Tree::new();
        tree.put("src/main.rs");
        tree.put(".env");
        assert_eq!(tree.found(), [".env"]);
        tree.put("src/deep/er/.env.local");
        assert_eq!(tree.found(), [".env", "src/deep/er/.env.local"]);
        fs::rename(tree.dir().join("src/deep"), tree.dir().join("moved")).unwrap();
        assert_eq!(tree.found(), [".env", "moved/er/.env.local"]);
        tree.put("moved/er/tls.key");
        fs::remove_file(tree.dir().join(".env")).unwrap();
        assert_eq!(tree.found(), ["moved/er/.env.local", "moved/er/tls.key"]);
        fs::rename(
            tree.dir().join("moved/er/tls.key"),
            tree.dir().join("x.key"),
        )
        .unwrap();
        tree.put(".ssh/config");
        assert_eq!(tree.found(), [".ssh", "moved/er/.env.local", "x.key"]);
    }

    #[test]
    fn another_directory_in_its_place_is_walked_through() {
        let tree = Tree::new();
        let dir = tree.dir().join("project");
        tree.put("project/.env");
        let find = || tree.1.find(&dir, &tree.2).unwrap();
        assert_eq!(find().len(), 1);
        fs::rename(&dir, tree.dir().join("old")).unwrap();
        tree.put("project/web/.env");
        assert_eq!(find(), BTreeSet::from([dir.join("web/.env")]));
    }

    #[test]
    fn every_name_of_a_secret_is_found() {
        let tree = Tree::new();
        tree.put(".env");
        tree.put("a/b.txt");
        assert_eq!(tree.found(), [".env"]);
        fs::hard_link(tree.dir().join(".env"), tree.dir().join("a/notes.txt")).unwrap();
        assert_eq!(tree.found(), [".env", "a/notes.txt"]);
        fs::rename(
            tree.dir().join("a/notes.txt"),
            tree.dir().join("a/more.txt"),
        )
        .unwrap();
        assert_eq!(tree.found(), [".env", "a/more.txt"]);
        std::os::unix::fs::symlink("a/b.txt", tree.dir().join(".env.local")).unwrap();
        assert_eq!(tree.found(), [".env", "a/b.txt", "a/more.txt"]);
    }

    #[test]
    fn many_events_are_no_loss() {
        let tree = Tree::new();
        assert!(tree.found().is_empty());
        // More than the kernel queues.
        for n in 0..20_000 {
            fs::File::create(tree.dir().join(n.to_string())).unwrap();
        }
        tree.put("last/.env");
        assert_eq!(tree.found(), ["last/.env"]);
    }
}
