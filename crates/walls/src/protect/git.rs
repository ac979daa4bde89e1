//! Finds git directories, and the files in them that git runs.
//!
//! Everything else in them stays writable, so that git works. When git tries to
//! write its configuration it says `Device or resource busy`; creating, deleting
//! and tracking branches works in spite of that.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, open, openat};

use super::config::{ConfigPaths, find_config_paths};
use super::{ProtectedPath, Protection, SurfaceWalk, UnfollowedKind};

pub(super) const CONFIG: &str = "git runs the commands it names";
pub(super) const NAMED: &str = "the git configuration names it";
const HOOKS: &str = "git runs the hooks in it";
const POINTER: &str = "it tells git where the configuration and the hooks are";

/// Names in every git directory.
///
/// An ordinary one has no `commondir`. But git follows it if it exists, and
/// takes configuration and hooks from its target.
const GIT_DIR_NAMES: &[(&str, &str)] = &[
    ("hooks", HOOKS),
    ("config", CONFIG),
    ("config.worktree", CONFIG),
    ("info/attributes", "it chooses the filters that git runs"),
    ("commondir", POINTER),
];

/// How many directories of submodules and worktrees are listed for one
/// repository. With more, runs would start too slowly; then the parent directory
/// becomes read-only.
pub(super) const MAX_DIRS: usize = 512;

/// Bytes of a pointer file: `gitdir: ` and a path, with room to spare.
const MAX_POINTER: u64 = 8 * 1024;

/// Bytes of a configuration: far more than git writes; it is read for every run.
const MAX_CONFIG: u64 = 256 * 1024;

/// How many configuration files of one repository are read. Git allows ten
/// levels of includes.
const MAX_INCLUDES: usize = 16;

impl SurfaceWalk<'_> {
    /// Guards the repository at the top of the sandbox: the only one whose git
    /// directory may be outside.
    pub(super) fn guard_root_repository(&mut self) {
        let git = Path::new(".git");
        if !self.is_file(git) {
            return self.guard_nested_repository(Path::new(""));
        }
        self.protect_path(git, POINTER);
        let Some(target) = read_pointer(self.dir, git) else {
            return;
        };
        if let Ok(inside) = target.strip_prefix(self.dir) {
            self.guard_if_git_dir(inside);
        } else if let Some(common) = accept_outside(self.dir, &target) {
            self.outside = Some(common);
        } else {
            self.found.not_followed = Some(target);
        }
    }

    pub(super) fn guard_nested_repository(&mut self, at: &Path) {
        let git = at.join(".git");
        self.budget = MAX_DIRS;
        match self.look_at(&git) {
            UnfollowedKind::Link(at) => self.found.unprotectable.push(at),
            UnfollowedKind::Plain(_) if self.is_dir(&git) => {
                self.guard_git_dir(&git, Some(self.base.join(at)))
            }
            UnfollowedKind::Plain(_) => self.guard_pointer_file(&git),
            UnfollowedKind::Absent if self.is_git_dir(at) => return self.guard_git_dir(at, None),
            UnfollowedKind::Absent => self.watch_path(&git),
        }
        // A run may delete the HEAD in `.git`. Without a valid `.git`, git takes
        // a directory with HEAD, objects and refs for a repository, and obeys
        // the config beside them.
        self.watch_path(&at.join("HEAD"));
    }

    /// Guards the `.git` file of a submodule or of a worktree. That of a
    /// worktree is only watched: worktrees come and go with the work, and a mount
    /// point cannot be deleted.
    fn guard_pointer_file(&mut self, git: &Path) {
        let target = read_pointer(&self.base, git);
        let parent = target.as_deref().and_then(Path::parent);
        if parent.is_some_and(|parent| parent.ends_with("worktrees")) {
            return self.watch_path(git);
        }
        self.protect_path(git, POINTER);
        if let Some(inside) = target
            .as_deref()
            .and_then(|t| t.strip_prefix(&self.base).ok())
        {
            self.guard_if_git_dir(inside);
        }
    }

    /// Guards a git directory outside of the sandbox, which is this walk's base.
    pub(super) fn guard_outside_repository(&mut self) {
        self.found.entries.push(ProtectedPath {
            path: PathBuf::new(),
            protection: Protection::Outside,
            why: "the sandbox is a worktree or a submodule of it",
        });
        // A relative hook path starts at the worktree in use.
        self.guard_git_dir(Path::new(""), Some(self.dir.to_path_buf()));
    }

    fn guard_if_git_dir(&mut self, at: &Path) {
        if self.is_git_dir(at) && at != Path::new("") {
            self.guard_git_dir(at, None);
        }
    }

    fn is_git_dir(&self, at: &Path) -> bool {
        self.is_file(&at.join("HEAD"))
            && self.is_dir(&at.join("objects"))
            && self.is_dir(&at.join("refs"))
    }

    /// Guards one git directory. `work` is its working tree.
    fn guard_git_dir(&mut self, git: &Path, work: Option<PathBuf>) {
        self.pin_directory(git);
        for (name, why) in GIT_DIR_NAMES {
            self.protect_path(&git.join(name), why);
        }
        self.guard_linked_hooks(&git.join("hooks"));
        self.collect_config_paths(git, work);
        self.guard_submodules(&git.join("modules"));
        self.guard_worktrees(&git.join("worktrees"));
    }

    /// Guards hooks that are links, often to a script among the sources. The
    /// link cannot be replaced, as its directory is read-only; its target is
    /// protected like a configured hook.
    fn guard_linked_hooks(&mut self, hooks: &Path) {
        if !self.is_dir(hooks) || self.is_left_writable(hooks) {
            return;
        }
        let absolute = self.base.join(hooks);
        let Some(list) = self.list_directory(hooks) else {
            return self.found.unprotectable.push(hooks.to_path_buf());
        };
        for (name, kind) in list {
            if kind != FileType::Symlink {
                continue;
            }
            if let Ok(target) = fs::read_link(absolute.join(name)) {
                self.named.push(join_lexically(&absolute, &target));
            }
        }
    }

    /// Collects the hook directories and further files that the configuration
    /// names. `~` is not expanded: it is seldom inside of a sandbox.
    fn collect_config_paths(&mut self, git: &Path, work: Option<PathBuf>) {
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
            let tree = named.worktree.map(|tree| join_lexically(&git_dir, &tree));
            work = tree.or(work);
            let from = work.as_deref().unwrap_or(&git_dir);
            let hooks = named.hooks.iter().map(|hooks| join_lexically(from, hooks));
            self.named.extend(hooks);
            let programs = named.programs.iter();
            self.named
                .extend(programs.map(|word| join_lexically(from, word)));
            let beside = file.parent().unwrap_or(&git_dir);
            for include in named.includes {
                let include = join_lexically(beside, &include);
                self.named.push(include.clone());
                files.push(include);
            }
        }
    }

    /// Reads a configuration below `base`. The run cannot write others, so that
    /// they need not be read.
    fn read_config(&mut self, file: &Path) -> Option<ConfigPaths> {
        let inside = file.strip_prefix(&self.base).ok()?.to_path_buf();
        if !self.is_file(&inside) {
            return None;
        }
        match read_small_file(file, MAX_CONFIG) {
            Some(text) => Some(find_config_paths(&text)),
            None => {
                self.found.unprotectable.push(inside);
                None
            }
        }
    }

    /// Guards the git directories of submodules. Their names have slashes, so one
    /// may be deeper: a directory with a HEAD is one, others may hold some.
    fn guard_submodules(&mut self, modules: &Path) {
        if self.is_dir(modules) && !self.is_left_writable(modules) && !self.enter_modules(modules) {
            self.protect_path(modules, "it holds more submodules than can be looked at");
        }
    }

    /// Guards the submodules below a directory. Returns whether it saw all.
    fn enter_modules(&mut self, dir: &Path) -> bool {
        let Some(list) = self.list_directory(dir) else {
            return false;
        };
        for (name, kind) in list {
            let path = dir.join(name);
            match kind {
                FileType::Symlink => self.found.unprotectable.push(path),
                FileType::Directory if self.is_file(&path.join("HEAD")) => {
                    self.guard_git_dir(&path, None);
                }
                FileType::Directory if !self.enter_modules(&path) => return false,
                _ => {}
            }
        }
        true
    }

    /// Guards the git directory of each linked worktree.
    fn guard_worktrees(&mut self, worktrees: &Path) {
        if !self.is_dir(worktrees) || self.is_left_writable(worktrees) {
            return;
        }
        let Some(list) = self.list_directory(worktrees) else {
            return self.protect_path(worktrees, "it holds more worktrees than can be looked at");
        };
        for (name, kind) in list {
            match kind {
                FileType::Directory => self.guard_worktree(&worktrees.join(name)),
                FileType::Symlink => self.found.unprotectable.push(worktrees.join(name)),
                _ => {}
            }
        }
    }

    /// Guards one of them. If its worktree is below the sandbox it may be
    /// removed together with that, so it is only watched. The run cannot see
    /// other worktrees, and `git worktree prune` would remove the data of a
    /// worktree that a person uses.
    fn guard_worktree(&mut self, at: &Path) {
        let back = read_pointer(&self.base, &at.join("gitdir"));
        let own = back.as_deref() == Some(&self.dir.join(".git"));
        if !own && back.is_some_and(|back| back.starts_with(self.dir)) {
            self.watch_path(&at.join("commondir"));
            self.watch_path(&at.join("config.worktree"));
            return;
        }
        for name in ["commondir", "gitdir", "config.worktree"] {
            self.protect_path(&at.join(name), POINTER);
        }
        if !own {
            self.protect_path(&at.join("HEAD"), "its worktree is outside of the sandbox");
        }
        self.collect_config_paths(at, None);
    }

    /// Lists a directory; `None` once the budget is used up.
    pub(super) fn list_directory(&mut self, path: &Path) -> Option<Vec<(OsString, FileType)>> {
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

    /// Returns the kind of a directory entry. Some file systems do not list it.
    fn kind_of(&self, dir: &Path, name: &[u8], listed: FileType) -> FileType {
        match listed {
            FileType::Unknown => match self.look_at(&dir.join(OsStr::from_bytes(name))) {
                UnfollowedKind::Plain(stat) => FileType::from_raw_mode(stat.st_mode),
                _ => FileType::Symlink,
            },
            listed => listed,
        }
    }
}

/// Returns the git directory to mount for a `.git` file that points outside.
///
/// An agent can write such a file itself, to have any directory mounted
/// writable. So the git directory must point back at this very sandbox: only a
/// process that could write there can have made it do so.
fn accept_outside(dir: &Path, target: &Path) -> Option<PathBuf> {
    let uid = fs::symlink_metadata(dir).ok()?.uid();
    let worktrees = target
        .parent()
        .filter(|parent| parent.ends_with("worktrees"));
    let common = match worktrees {
        Some(worktrees) => {
            let common = worktrees.parent()?;
            let back = read_pointer(target, Path::new("gitdir"))?;
            // A forged worktree could name the directory of another user here.
            let named = read_pointer(target, Path::new("commondir"))?;
            (back == dir.join(".git") && named == common).then_some(common)?
        }
        None => {
            let config = find_config_paths(&read_small_file(&target.join("config"), MAX_CONFIG)?);
            (join_lexically(target, &config.worktree?) == dir).then_some(target)?
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
fn read_pointer(base: &Path, file: &Path) -> Option<PathBuf> {
    let file = base.join(file);
    let text = read_small_file(&file, MAX_POINTER)?;
    let path = text.strip_prefix(b"gitdir:").unwrap_or(&text).trim_ascii();
    if path.is_empty() || path.iter().any(|b| matches!(b, 0 | b'\n')) {
        return None;
    }
    Some(join_lexically(
        file.parent()?,
        Path::new(OsStr::from_bytes(path)),
    ))
}

/// Joins two paths by their text alone. Where a link makes the true path another
/// one, the result is refused or not found.
pub fn join_lexically(from: &Path, path: &Path) -> PathBuf {
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

/// Reads a regular file of at most `most` bytes, following no link. Whatever is
/// there may be a pipe, or endless.
pub fn read_small_file(path: &Path, most: u64) -> Option<Vec<u8>> {
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
