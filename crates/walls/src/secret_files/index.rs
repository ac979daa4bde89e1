//! Finds the secret files of a directory by their names.
//!
//! Walking through a large project takes longer than a command may cost. So it
//! is walked once, and inotify reports what appears afterwards: an event is in
//! the queue before the system call that caused it returns, and the queue is
//! read before each run. Where inotify cannot be used (no watches are left, or
//! the file system is a network's), the directory is walked for every run.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use weighlock_confine::FileId;
use weighlock_policy::SecretFiles;

use super::watch::{NewName, TreeWatch};
use crate::lock::lock;

/// How many directories one walk enters: several times as many as the largest
/// repositories have. It takes a few seconds.
pub(super) const MOST_DIRECTORIES: usize = 100_000;

/// How many secret files are closed. Each is a mount for every run.
pub(super) const MOST_FILES: usize = 2_000;

/// How many indexes are kept. Each may hold a watch for every directory.
const MOST_INDEXES: usize = 16;

/// Directories that are not entered: their content was downloaded or generated,
/// and they are larger than all the rest.
const SKIPPED_DIRS: &[&str] = &[".git", "node_modules", "site-packages", "__pycache__"];

/// A directory holds more than [`MOST_DIRECTORIES`] or [`MOST_FILES`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyFound;

/// What was found below a directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SecretsFound {
    /// Files and directories on the list, under every name that they have there.
    pub(super) secrets: BTreeSet<PathBuf>,
    /// Directories that the server may not list. A command could read in them:
    /// their owner can change their mode, and a known name needs no listing.
    pub(super) unlisted: BTreeSet<PathBuf>,
}

impl SecretsFound {
    pub(super) fn add(&mut self, more: Self) {
        self.secrets.extend(more.secrets);
        self.unlisted.extend(more.unlisted);
    }

    /// Makes relative paths absolute.
    pub(super) fn below(self, root: &Path) -> Self {
        let join = |paths: BTreeSet<PathBuf>| paths.iter().map(|path| root.join(path)).collect();
        Self {
            secrets: join(self.secrets),
            unlisted: join(self.unlisted),
        }
    }
}

/// The indexes by directory.
#[derive(Default)]
pub(super) struct SecretIndexes(Mutex<HashMap<PathBuf, UsedIndex>>);

struct UsedIndex {
    list: Arc<SecretFiles>,
    used: Instant,
    index: Arc<Mutex<SecretIndex>>,
}

impl SecretIndexes {
    /// Returns what is on the list below `dir`, with absolute paths.
    pub(super) fn find_secrets(
        &self,
        dir: &Path,
        list: &Arc<SecretFiles>,
    ) -> Result<SecretsFound, TooManyFound> {
        let index = self.index_of(dir, list);
        lock(&index).find_secrets()
    }

    fn index_of(&self, dir: &Path, list: &Arc<SecretFiles>) -> Arc<Mutex<SecretIndex>> {
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
        let index = Arc::new(Mutex::new(SecretIndex::new(dir, list)));
        let kept = UsedIndex {
            list: Arc::clone(list),
            used: Instant::now(),
            index: Arc::clone(&index),
        };
        all.insert(dir.to_owned(), kept);
        index
    }
}

/// The secret files of one directory.
struct SecretIndex {
    dir: PathBuf,
    list: Arc<SecretFiles>,
    /// Which directory `dir` was when it was walked.
    is: Option<FileId>,
    /// Relative.
    found: BTreeSet<PathBuf>,
    /// Relative.
    unlisted: BTreeSet<PathBuf>,
    watch: Option<TreeWatch>,
    /// The relative names of files that have several, by device, inode and
    /// change time: a new name changes the last.
    names: HashMap<(u64, u64, i64, i64), Vec<PathBuf>>,
}

impl SecretIndex {
    fn new(dir: &Path, list: &Arc<SecretFiles>) -> Self {
        Self {
            dir: dir.to_owned(),
            list: Arc::clone(list),
            is: None,
            found: BTreeSet::new(),
            unlisted: BTreeSet::new(),
            watch: None,
            names: HashMap::new(),
        }
    }

    fn find_secrets(&mut self) -> Result<SecretsFound, TooManyFound> {
        self.refresh()?;
        let mut all = BTreeSet::new();
        for path in self.found.clone() {
            let at = self.dir.join(&path);
            let meta = match at.symlink_metadata() {
                Ok(meta) => meta,
                Err(error) if is_gone(&error) => {
                    // If it comes back, inotify reports it.
                    self.found.remove(&path);
                    continue;
                }
                Err(_) => {
                    all.insert(at);
                    continue;
                }
            };
            if !meta.is_symlink() {
                self.add_with_names(at, &meta, &mut all)?;
                continue;
            }
            // Reading a link means reading its target.
            let whole = self.list.has(&path.to_string_lossy(), true);
            let to = at.canonicalize().ok();
            let to = to.filter(|to| to.is_file() || whole && !self.dir.starts_with(to));
            if let Some(to) = to
                && let Ok(meta) = to.symlink_metadata()
            {
                self.add_with_names(to, &meta, &mut all)?;
            }
        }
        if all.len() > MOST_FILES {
            return Err(TooManyFound);
        }
        Ok(SecretsFound {
            secrets: all,
            unlisted: self.unlisted.iter().map(|dir| self.dir.join(dir)).collect(),
        })
    }

    /// Adds a file under all names that it has here; for a directory, also the
    /// names elsewhere of the files in it.
    fn add_with_names(
        &mut self,
        at: PathBuf,
        meta: &fs::Metadata,
        to: &mut BTreeSet<PathBuf>,
    ) -> Result<(), TooManyFound> {
        let mut linked = vec![];
        if meta.is_dir() {
            linked = files_with_links(&at);
        } else if meta.nlink() > 1 {
            linked.push(meta.clone());
        }
        for meta in linked {
            let names = self.names_of(&meta)?.into_iter();
            let names = names.map(|name| self.dir.join(name));
            to.extend(names.filter(|name| !name.starts_with(&at)));
        }
        to.insert(at);
        Ok(())
    }

    /// Brings what was found up to date.
    fn refresh(&mut self) -> Result<(), TooManyFound> {
        let meta = self.dir.symlink_metadata().ok();
        let is = meta.map(|meta| FileId::from(&meta));
        if let Some(watch) = &mut self.watch
            && is.is_some()
            && is == self.is
            && let Some(appeared) = watch.take_new()
        {
            return self.add_new(appeared);
        }
        self.is = is;
        self.found.clear();
        self.unlisted.clear();
        self.names.clear();
        self.watch = TreeWatch::new(&self.dir);
        self.walk(PathBuf::new())
    }

    fn add_new(&mut self, appeared: Vec<NewName>) -> Result<(), TooManyFound> {
        for NewName { path, is_dir } in appeared {
            if is_dir {
                self.add_directory(path)?;
            } else {
                self.add_file(path);
            }
        }
        // inotify does not report when one can be listed.
        for dir in std::mem::take(&mut self.unlisted) {
            self.walk(dir)?;
        }
        Ok(())
    }

    /// Adds a file that is on the list. It may be a link to a directory.
    fn add_file(&mut self, path: PathBuf) {
        let text = path.to_string_lossy();
        if self.list.has(&text, false) || self.list.has(&text, true) {
            self.found.insert(path);
        }
    }

    fn add_directory(&mut self, path: PathBuf) -> Result<(), TooManyFound> {
        if self.list.has(&path.to_string_lossy(), true) {
            self.found.insert(path);
        } else if !is_skipped(&path) {
            self.walk(path)?;
        }
        Ok(())
    }

    /// Walks through a directory, breadth first. Follows no links.
    fn walk(&mut self, from: PathBuf) -> Result<(), TooManyFound> {
        let mut waiting = VecDeque::from([from]);
        let mut walked = 0;
        while let Some(dir) = waiting.pop_front() {
            walked += 1;
            if walked > MOST_DIRECTORIES {
                // So that the next run does not take it for complete.
                self.watch = None;
                return Err(TooManyFound);
            }
            let at = self.dir.join(&dir);
            // Before the listing, so that what appears in between is reported.
            if let Some(watch) = &mut self.watch
                && !watch.add_directory(&at, &dir)
            {
                self.watch = None;
            }
            let entries = match fs::read_dir(&at) {
                Ok(entries) => entries,
                Err(error) if is_gone(&error) => continue,
                // If the directory itself were closed, nothing would be left.
                Err(_) if dir.as_os_str().is_empty() => return Err(TooManyFound),
                Err(_) => {
                    self.unlisted.insert(dir);
                    continue;
                }
            };
            for entry in entries.flatten() {
                let path = dir.join(entry.file_name());
                let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if !is_dir {
                    self.add_file(path);
                } else if self.list.has(&path.to_string_lossy(), true) {
                    self.found.insert(path);
                } else if !is_skipped(&path) {
                    waiting.push_back(path);
                }
            }
        }
        Ok(())
    }

    /// Returns all names that a file has in the directory.
    fn names_of(&mut self, meta: &fs::Metadata) -> Result<Vec<PathBuf>, TooManyFound> {
        let key = (meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec());
        // A directory on the way to a name may have been renamed.
        let is_there = |name: &PathBuf| {
            let there = self.dir.join(name).symlink_metadata();
            there.is_ok_and(|there| there.ino() == meta.ino())
        };
        if let Some(names) = self.names.get(&key)
            && names.iter().all(is_there)
        {
            return Ok(names.clone());
        }
        let names = find_names(&self.dir, meta.ino())?;
        self.names.insert(key, names.clone());
        Ok(names)
    }
}

/// Finds every name of a file below a directory by its inode; relative.
fn find_names(dir: &Path, inode: u64) -> Result<Vec<PathBuf>, TooManyFound> {
    let mut names = vec![];
    let mut waiting = vec![PathBuf::new()];
    let mut walked = 0;
    while let Some(from) = waiting.pop() {
        walked += 1;
        if walked > MOST_DIRECTORIES {
            return Err(TooManyFound);
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

/// Finds what is on the list below a directory that is not worth an index, since
/// it changes with every run; relative.
pub(super) fn find_once(dir: &Path, list: &Arc<SecretFiles>) -> Result<SecretsFound, TooManyFound> {
    let mut index = SecretIndex::new(dir, list);
    index.walk(PathBuf::new())?;
    Ok(SecretsFound {
        secrets: index.found,
        unlisted: index.unlisted,
    })
}

/// Returns the files in a directory that have several names. Looks at no more
/// than [`MOST_FILES`] of them, since it does so for every run.
fn files_with_links(dir: &Path) -> Vec<fs::Metadata> {
    let mut linked = vec![];
    let mut waiting = vec![dir.to_owned()];
    let mut looked = 0;
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            looked += 1;
            if looked > MOST_FILES {
                return linked;
            }
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                waiting.push(entry.path());
            } else if meta.nlink() > 1 {
                linked.push(meta);
            }
        }
    }
    linked
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

fn is_skipped(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| SKIPPED_DIRS.iter().any(|skipped| name == *skipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir, SecretIndexes, Arc<SecretFiles>);

    impl Tree {
        fn new() -> Self {
            let list = SecretFiles::new([]).unwrap();
            Self(
                tempfile::tempdir().unwrap(),
                SecretIndexes::default(),
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
            let found = self.1.find_secrets(self.dir(), &self.2).unwrap().secrets;
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
        let find = || tree.1.find_secrets(&dir, &tree.2).unwrap().secrets;
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
        // What it leads to has other names as well.
        fs::hard_link(tree.dir().join("a/b.txt"), tree.dir().join("c.txt")).unwrap();
        assert_eq!(tree.found(), [".env", "a/b.txt", "a/more.txt", "c.txt"]);
    }

    #[test]
    fn names_of_what_is_in_a_secret_directory_are_found() {
        let tree = Tree::new();
        tree.put(".ssh/deep/config");
        // Nobody watches there.
        tree.put("node_modules/a/x");
        let link = |name: &str| {
            fs::hard_link(tree.dir().join(".ssh/deep/config"), tree.dir().join(name)).unwrap();
        };
        link("node_modules/a/notes.txt");
        assert_eq!(tree.found(), [".ssh", "node_modules/a/notes.txt"]);
        let at = |name: &str| tree.dir().join("node_modules").join(name);
        fs::rename(at("a"), at("b")).unwrap();
        assert_eq!(tree.found(), [".ssh", "node_modules/b/notes.txt"]);
    }

    #[test]
    fn what_cannot_be_looked_into_is_told() {
        use std::os::unix::fs::PermissionsExt;
        if rustix::process::geteuid().is_root() {
            return weighlock_testing::not_as_this_user("root may list every directory");
        }
        let tree = Tree::new();
        tree.put("locked/.env");
        let dir = tree.dir().join("locked");
        let allow = |mode| fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
        let unlisted = || tree.1.find_secrets(tree.dir(), &tree.2).unwrap().unlisted;
        for mode in [0, 0o311] {
            allow(mode);
            assert_eq!(unlisted(), BTreeSet::from([dir.clone()]));
            assert!(tree.found().is_empty());
        }
        allow(0o755);
        assert_eq!(tree.found(), ["locked/.env"]);
        assert!(unlisted().is_empty());
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
