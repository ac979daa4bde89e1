//! Git directories: which of their files git runs, and where they lie.
//!
//! All else in them stays writable, so that git works. Where git wants to
//! write its configuration it says `Device or resource busy`; creating,
//! deleting and tracking branches works in spite of that.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, open, openat};

use super::config::{self, Named};
use super::{Entry, Guard, Kind, Walk};

pub(super) const CONFIG: &str = "git runs the commands it names";
pub(super) const NAMED: &str = "the git configuration names it";
const HOOKS: &str = "git runs the hooks in it";
const POINTER: &str = "it tells git where the configuration and the hooks are";

/// Names in every git directory.
///
/// `commondir` is no part of an ordinary one. Git obeys it all the same, and
/// takes configuration and hooks from wherever it points to.
const NAMES: &[(&str, &str)] = &[
    ("hooks", HOOKS),
    ("config", CONFIG),
    ("config.worktree", CONFIG),
    ("info/attributes", "it chooses the filters that git runs"),
    ("commondir", POINTER),
];

/// Directories of submodules and worktrees that are listed for one
/// repository. Past that a run would start too slowly, so the whole is made read-only.
pub(super) const MAX_DIRS: usize = 512;

/// A path and `gitdir: `, with room to spare.
const MAX_POINTER: u64 = 8 * 1024;

/// Far more than git writes; it is read for every run.
const MAX_CONFIG: u64 = 256 * 1024;

/// Configuration files that one repository may include. Git allows ten levels.
const MAX_INCLUDES: usize = 16;

impl Walk<'_> {
    /// The repository that the sandbox itself is: the only one whose git
    /// directory may lie outside.
    pub(super) fn root_repository(&mut self) {
        let git = Path::new(".git");
        if !self.is_file(git) {
            return self.nested_repository(Path::new(""));
        }
        self.protect(git, POINTER);
        let Some(target) = pointer(self.dir, git) else {
            return;
        };
        if let Ok(inside) = target.strip_prefix(self.dir) {
            self.git_dir_if_one(inside);
        } else if let Some(common) = accept(self.dir, &target) {
            self.outside = Some(common);
        } else {
            self.found.not_followed = Some(target);
        }
    }

    pub(super) fn nested_repository(&mut self, at: &Path) {
        let git = at.join(".git");
        self.budget = MAX_DIRS;
        match self.look(&git) {
            Kind::Link(at) => self.found.unprotectable.push(at),
            Kind::Plain(_) if self.is_dir(&git) => self.git_dir(&git, Some(self.base.join(at))),
            Kind::Plain(_) => self.pointer_file(&git),
            Kind::Absent if self.is_git_dir(at) => return self.git_dir(at, None),
            Kind::Absent => self.watch(&git),
        }
        // Without a valid `.git`, and a run may delete the HEAD in it, git
        // takes a directory with HEAD, objects and refs for a repository, and
        // obeys the config beside them.
        self.watch(&at.join("HEAD"));
    }

    /// A `.git` file of a submodule or of a worktree. Worktrees come and go
    /// with the work, and a mount point cannot be deleted, so that one is
    /// watched only.
    fn pointer_file(&mut self, git: &Path) {
        let target = pointer(&self.base, git);
        let parent = target.as_deref().and_then(Path::parent);
        if parent.is_some_and(|parent| parent.ends_with("worktrees")) {
            return self.watch(git);
        }
        self.protect(git, POINTER);
        if let Some(inside) = target
            .as_deref()
            .and_then(|t| t.strip_prefix(&self.base).ok())
        {
            self.git_dir_if_one(inside);
        }
    }

    /// This walk's base is a git directory outside of the sandbox.
    pub(super) fn outside_repository(&mut self) {
        self.found.entries.push(Entry {
            path: PathBuf::new(),
            guard: Guard::Outside,
            why: "the sandbox is a worktree or a submodule of it",
        });
        // A relative hook path is meant from the worktree in use.
        self.git_dir(Path::new(""), Some(self.dir.to_path_buf()));
    }

    fn git_dir_if_one(&mut self, at: &Path) {
        if self.is_git_dir(at) && at != Path::new("") {
            self.git_dir(at, None);
        }
    }

    fn is_git_dir(&self, at: &Path) -> bool {
        self.is_file(&at.join("HEAD"))
            && self.is_dir(&at.join("objects"))
            && self.is_dir(&at.join("refs"))
    }

    /// Guards one git directory. `work` is where its files are checked out.
    fn git_dir(&mut self, git: &Path, work: Option<PathBuf>) {
        self.pin(git);
        for (name, why) in NAMES {
            self.protect(&git.join(name), why);
        }
        self.linked_hooks(&git.join("hooks"));
        self.named_by_config(git, work);
        self.submodules(&git.join("modules"));
        self.worktrees(&git.join("worktrees"));
    }

    /// Hooks that are links, often to a script among the sources. The link
    /// cannot be replaced, as its directory is read-only; what it names is
    /// protected like a configured hook.
    fn linked_hooks(&mut self, hooks: &Path) {
        if !self.is_dir(hooks) || self.left_writable(hooks) {
            return;
        }
        let absolute = self.base.join(hooks);
        let Some(list) = self.list(hooks) else {
            return self.found.unprotectable.push(hooks.to_path_buf());
        };
        for (name, kind) in list {
            if kind != FileType::Symlink {
                continue;
            }
            if let Ok(target) = fs::read_link(absolute.join(name)) {
                self.named.push(lexical(&absolute, &target));
            }
        }
    }

    /// Notes the hook directories and further files that the configuration
    /// names. `~` is not expanded: it is seldom inside of a sandbox.
    fn named_by_config(&mut self, git: &Path, work: Option<PathBuf>) {
        let git_dir = self.base.join(git);
        let mut work = work;
        let mut files = vec![git_dir.join("config"), git_dir.join("config.worktree")];
        let mut at = 0;
        while at < files.len().min(MAX_INCLUDES) {
            let file = files[at].clone();
            at += 1;
            let Some(named) = self.read_config(&file) else {
                continue;
            };
            let tree = named.worktree.map(|tree| lexical(&git_dir, &tree));
            work = tree.or(work);
            let from = work.as_deref().unwrap_or(&git_dir);
            let hooks = named.hooks.iter().map(|hooks| lexical(from, hooks));
            self.named.extend(hooks);
            let programs = named.programs.iter();
            self.named.extend(programs.map(|word| lexical(from, word)));
            let beside = file.parent().unwrap_or(&git_dir);
            for include in named.includes {
                let include = lexical(beside, &include);
                self.named.push(include.clone());
                files.push(include);
            }
        }
    }

    /// Reads a configuration inside of the walk. Others cannot be written by
    /// the run, and need not be read.
    fn read_config(&mut self, file: &Path) -> Option<Named> {
        let inside = file.strip_prefix(&self.base).ok()?.to_path_buf();
        if !self.is_file(&inside) {
            return None;
        }
        match read(file, MAX_CONFIG) {
            Some(text) => Some(config::parse(&text)),
            None => {
                self.found.unprotectable.push(inside);
                None
            }
        }
    }

    /// Guards the git directories of submodules. Their names have slashes,
    /// so one may lie deeper: what has a HEAD is one, all else leads to more.
    fn submodules(&mut self, modules: &Path) {
        if self.is_dir(modules) && !self.left_writable(modules) && !self.enter(modules) {
            self.protect(modules, "it holds more submodules than can be looked at");
        }
    }

    /// Says whether everything below was seen.
    fn enter(&mut self, dir: &Path) -> bool {
        let Some(list) = self.list(dir) else {
            return false;
        };
        for (name, kind) in list {
            let path = dir.join(name);
            match kind {
                FileType::Symlink => self.found.unprotectable.push(path),
                FileType::Directory if self.is_file(&path.join("HEAD")) => {
                    self.git_dir(&path, None);
                }
                FileType::Directory if !self.enter(&path) => return false,
                _ => {}
            }
        }
        true
    }

    /// Guards what is kept for each linked worktree.
    fn worktrees(&mut self, worktrees: &Path) {
        if !self.is_dir(worktrees) || self.left_writable(worktrees) {
            return;
        }
        let Some(list) = self.list(worktrees) else {
            return self.protect(worktrees, "it holds more worktrees than can be looked at");
        };
        for (name, kind) in list {
            match kind {
                FileType::Directory => self.worktree(&worktrees.join(name)),
                FileType::Symlink => self.found.unprotectable.push(worktrees.join(name)),
                _ => {}
            }
        }
    }

    /// One below the sandbox may be removed with its worktree, so it is only
    /// watched. Others the run cannot even see: there `git worktree prune`
    /// would clear away what a person works in.
    fn worktree(&mut self, at: &Path) {
        let back = pointer(&self.base, &at.join("gitdir"));
        let own = back.as_deref() == Some(&self.dir.join(".git"));
        if !own && back.is_some_and(|back| back.starts_with(self.dir)) {
            self.watch(&at.join("commondir"));
            self.watch(&at.join("config.worktree"));
            return;
        }
        for name in ["commondir", "gitdir", "config.worktree"] {
            self.protect(&at.join(name), POINTER);
        }
        if !own {
            self.protect(&at.join("HEAD"), "its worktree is outside of the sandbox");
        }
        self.named_by_config(at, None);
    }

    /// Lists a directory, while the budget lasts.
    pub(super) fn list(&mut self, path: &Path) -> Option<Vec<(OsString, FileType)>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.budget = self.budget.checked_sub(1)?;
        let dir = Dir::new(openat(&self.fd, path, flags, Mode::empty()).ok()?).ok()?;
        let mut list = Vec::new();
        for entry in dir {
            let entry = entry.ok()?;
            let name = entry.file_name().to_bytes();
            if list.len() > MAX_DIRS {
                return None;
            }
            if !matches!(name, b"." | b"..") {
                let kind = self.kind_of(path, name, entry.file_type());
                list.push((OsString::from_vec(name.to_vec()), kind));
            }
        }
        Some(list)
    }

    /// Some file systems do not tell the kind with the name.
    fn kind_of(&self, dir: &Path, name: &[u8], told: FileType) -> FileType {
        match told {
            FileType::Unknown => match self.look(&dir.join(OsStr::from_bytes(name))) {
                Kind::Plain(stat) => FileType::from_raw_mode(stat.st_mode),
                _ => FileType::Symlink,
            },
            told => told,
        }
    }
}

/// Returns the git directory to mount for a `.git` file that points outside.
///
/// An agent can write such a file itself, to have any directory mounted
/// writable. So the other side has to point back at this very sandbox, which
/// only somebody who could write there can have done.
fn accept(dir: &Path, target: &Path) -> Option<PathBuf> {
    let uid = fs::symlink_metadata(dir).ok()?.uid();
    let worktrees = target
        .parent()
        .filter(|parent| parent.ends_with("worktrees"));
    let common = match worktrees {
        Some(worktrees) => {
            let common = worktrees.parent()?;
            let back = pointer(target, Path::new("gitdir"))?;
            // A forged worktree could name somebody else's directory here.
            let told = pointer(target, Path::new("commondir"))?;
            (back == dir.join(".git") && told == common).then_some(common)?
        }
        None => {
            let config = config::parse(&read(&target.join("config"), MAX_CONFIG)?);
            (lexical(target, &config.worktree?) == dir).then_some(target)?
        }
    };
    let owned =
        |path: &Path| fs::symlink_metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == uid);
    let real = |path: &Path| fs::canonicalize(path).is_ok_and(|real| real == path);
    let git = owned(&common.join("objects"))
        && owned(&common.join("refs"))
        && fs::symlink_metadata(common.join("HEAD")).is_ok_and(|m| m.is_file() && m.uid() == uid);
    let fine = git && owned(target) && owned(common) && real(target) && !dir.starts_with(common);
    fine.then(|| common.to_path_buf())
}

/// Reads a file that holds a path, relative to where the file is.
fn pointer(base: &Path, file: &Path) -> Option<PathBuf> {
    let file = base.join(file);
    let text = read(&file, MAX_POINTER)?;
    let path = text.strip_prefix(b"gitdir:").unwrap_or(&text).trim_ascii();
    if path.is_empty() || path.iter().any(|b| matches!(b, 0 | b'\n')) {
        return None;
    }
    Some(lexical(file.parent()?, Path::new(OsStr::from_bytes(path))))
}

/// Joins without asking the file system. Where a link makes the true path
/// another one, the result is refused or not found.
pub(crate) fn lexical(from: &Path, path: &Path) -> PathBuf {
    let mut joined = PathBuf::new();
    for part in from.join(path).components() {
        match part {
            Component::ParentDir => _ = joined.pop(),
            Component::CurDir => {}
            part => joined.push(part),
        }
    }
    joined
}

/// Reads a plain file of at most so many bytes. It could be a pipe or endless.
pub(crate) fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = fs::File::from(open(path, flags, Mode::empty()).ok()?);
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > most {
        return None;
    }
    let mut text = Vec::with_capacity(meta.len() as usize);
    file.take(most).read_to_end(&mut text).ok()?;
    Some(text)
}
