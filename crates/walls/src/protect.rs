//! Protects the auto-exec surface: what other programs run later, outside the
//! walls.
//!
//! A git hook, an editor's task, an agent's settings: a command that can write
//! one of them escapes from its sandbox. Each one that exists is mounted onto
//! itself read-only. A mount needs an existing path, and nothing may be created
//! on the host; so a path that does not exist yet is remembered, and checked
//! after the run.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, open, statat};

mod config;
mod git;
mod nested;
#[cfg(test)]
mod tests;

pub use config::{GitSetting, parse_git_config};
pub use git::{join_lexically, read_small_file};
pub(crate) use nested::find_repositories;

/// What a run cannot write inside a writable directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AutoExecSurface {
    /// The mounts, in the order to make them: parents before what they hold.
    pub(crate) entries: Vec<ProtectedPath>,
    /// Paths that exist and that no mount protects: a link can be replaced, and
    /// a file with a second name can be written by that name.
    pub(crate) unprotectable: Vec<PathBuf>,
    /// The target of `.git` if it does not point back here. Git does not work
    /// in such a run, so a warning says it.
    pub(crate) not_followed: Option<PathBuf>,
    /// Paths that are checked after the run, each as it was before; `None` if it
    /// did not exist.
    watched: Vec<(PathBuf, Option<PathMark>)>,
}

/// One mount. The path is relative to the directory, or absolute where it is
/// outside, so that `dir.join(path)` is right for both.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProtectedPath {
    pub(crate) path: PathBuf,
    pub(crate) protection: Protection,
    /// Completes "it is read-only because …".
    pub(crate) why: &'static str,
}

/// How a path is mounted. If a path has two, the first in this order applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protection {
    /// Onto itself, read-only.
    ReadOnly,
    /// A git directory outside of the sandbox, mounted writable.
    Outside,
    /// Onto itself, writable: a mount point cannot be renamed away.
    Pinned,
}

/// Device and inode of a path, and a file's change time, which no program can
/// set: enough to see that it was replaced. The change time of a directory
/// changes all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PathMark(u64, u64, Option<(i64, i64)>);

/// Flags to open a directory for `statat`.
const OPEN_DIR: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

const HOLDS: &str = "it holds what others run";
const GIT_HOOK: &str = "git hooks run it";
const DEV_ENV: &str = "entering the directory or calling a tool runs it";
const PACKAGES: &str = "it says which programs the package manager runs";
const TOOL: &str = "it says which program a tool is, or what it loads";
const EDITOR: &str = "an editor runs what it names";
const AGENT: &str = "an agent runs the hooks and servers it names";
const CI: &str = "a build service runs it with its secrets";
const LOGIN: &str = "a shell or the session runs it at login";

/// Names in the sandbox's own directory.
///
/// Left out on purpose: `Makefile`, `package.json`, `build.rs`, `default.nix`.
/// They act only when a person builds the project, which runs its code anyway,
/// and agents edit them all day. Included: files that act on any call of a tool,
/// `cargo --version` too, or that choose which program the tool is.
/// `.gitattributes` only chooses among filters that the git config defines.
/// `.nvmrc` and the like are a version number; `.tool-versions` is included, as
/// asdf takes `path:./dir` for a version.
///
/// Start-up files are included for every directory. Guessing whether one is a
/// home directory would mean trusting files that the agent can delete.
const PROTECTED_NAMES: &[(&str, &str)] = &[
    (".githooks", GIT_HOOK),
    (".husky", GIT_HOOK),
    (".lefthook.yml", GIT_HOOK),
    ("lefthook.yml", GIT_HOOK),
    (".pre-commit-config.yaml", GIT_HOOK),
    (".envrc", DEV_ENV),
    (".mise.toml", DEV_ENV),
    ("mise.toml", DEV_ENV),
    (".mise", DEV_ENV),
    (".tool-versions", DEV_ENV),
    (".rvmrc", DEV_ENV),
    ("shell.nix", DEV_ENV),
    ("flake.nix", DEV_ENV),
    ("devenv.nix", DEV_ENV),
    ("devbox.json", DEV_ENV),
    (".npmrc", PACKAGES),
    (".yarnrc", PACKAGES),
    (".yarnrc.yml", PACKAGES),
    (".yarn/releases", PACKAGES),
    (".yarn/plugins", PACKAGES),
    (".yarn/sdks", PACKAGES),
    (".pnpmfile.cjs", PACKAGES),
    (".pnpmfile.mjs", PACKAGES),
    ("pnpm-workspace.yaml", PACKAGES),
    ("bunfig.toml", PACKAGES),
    (".cargo/config.toml", PACKAGES),
    (".cargo/config", PACKAGES),
    ("rust-toolchain", TOOL),
    ("rust-toolchain.toml", TOOL),
    ("tools/bazel", TOOL),
    (".bazelrc", TOOL),
    (".bazeliskrc", TOOL),
    (".bazelversion", TOOL),
    (".buckconfig", TOOL),
    (".jvmopts", TOOL),
    (".sbtopts", TOOL),
    (".mvn", TOOL),
    ("gradle/wrapper", TOOL),
    ("global.json", TOOL),
    ("ansible.cfg", TOOL),
    (".hg/hgrc", TOOL),
    (".python-version", TOOL),
    (".vscode/tasks.json", EDITOR),
    (".vscode/settings.json", EDITOR),
    (".vscode/launch.json", EDITOR),
    (".vscode/extensions.json", EDITOR),
    (".vscode/mcp.json", EDITOR),
    (".idea", EDITOR),
    (".zed", EDITOR),
    (".helix", EDITOR),
    ("rust-analyzer.toml", EDITOR),
    (".bsp", EDITOR),
    (".exrc", EDITOR),
    (".nvimrc", EDITOR),
    (".nvim.lua", EDITOR),
    (".dir-locals.el", EDITOR),
    (".devcontainer", EDITOR),
    (".devcontainer.json", EDITOR),
    (".claude", AGENT),
    (".codex", AGENT),
    (".cursor", AGENT),
    (".gemini", AGENT),
    (".agents", AGENT),
    (".mcp.json", AGENT),
    (".github/hooks", AGENT),
    (".github/workflows", CI),
    (".forgejo/workflows", CI),
    (".gitea/workflows", CI),
    (".gitlab-ci.yml", CI),
    (".circleci", CI),
    (".bashrc", LOGIN),
    (".bash_profile", LOGIN),
    (".bash_login", LOGIN),
    (".profile", LOGIN),
    (".zshrc", LOGIN),
    (".zprofile", LOGIN),
    (".zshenv", LOGIN),
    (".xprofile", LOGIN),
    (".gitconfig", git::CONFIG),
    (".config/git", git::CONFIG),
    (".config/fish", LOGIN),
    (".config/autostart", LOGIN),
    (".config/systemd/user", LOGIN),
    (".local/bin", LOGIN),
];

/// Finds what to protect in `dir`, which is canonical.
///
/// `nested` are the relative paths of the repositories below it. `unprotected`
/// are names that the configuration leaves writable, with all they hold.
pub(crate) fn find_surface(
    dir: &Path,
    nested: &[PathBuf],
    unprotected: &[String],
) -> AutoExecSurface {
    let mut found = AutoExecSurface::default();
    let Some(mut walk) = SurfaceWalk::open(dir, dir, unprotected) else {
        return found;
    };
    for (name, why) in PROTECTED_NAMES {
        walk.protect_path(Path::new(name), why);
    }
    walk.guard_root_repository();
    for repository in nested {
        walk.guard_nested_repository(repository);
    }
    let outside = walk.outside.take().and_then(|common| {
        let mut walk = SurfaceWalk::open(&common, dir, unprotected)?;
        walk.guard_outside_repository();
        Some(walk)
    });
    let mut walks: Vec<SurfaceWalk> = [Some(walk), outside].into_iter().flatten().collect();
    // A configuration in one of the two may name a path in the other.
    let named: Vec<PathBuf> = walks
        .iter_mut()
        .flat_map(|w| w.named.split_off(0))
        .collect();
    for walk in &mut walks {
        walk.protect_named(&named);
        found.take_from(walk);
    }
    found.sort_mounts();
    found
}

/// Returns the watched paths that were created or replaced since. A deleted one
/// is not returned: no program can run it.
pub(crate) fn find_replaced(dir: &Path, surface: &AutoExecSurface) -> Vec<PathBuf> {
    let Ok(fd) = open(dir, OPEN_DIR, Mode::empty()) else {
        return Vec::new();
    };
    let changed = |(path, before): &&(PathBuf, Option<PathMark>)| {
        let now = statat(&fd, path, AtFlags::SYMLINK_NOFOLLOW);
        now.is_ok_and(|now| Some(PathMark::from_stat(&now)) != *before)
    };
    let watched = surface.watched.iter().filter(changed);
    watched.map(|(path, _)| path.clone()).collect()
}

impl AutoExecSurface {
    fn take_from(&mut self, walk: &mut SurfaceWalk) {
        let inside = walk.base == walk.dir;
        let shown = |path: PathBuf| {
            if inside {
                path
            } else if path.as_os_str().is_empty() {
                walk.base.clone()
            } else {
                walk.base.join(path)
            }
        };
        let from = &mut walk.found;
        self.entries.extend(from.entries.drain(..).map(|mut entry| {
            entry.path = shown(entry.path);
            entry
        }));
        let watched = from.watched.drain(..);
        self.watched
            .extend(watched.map(|(path, mark)| (shown(path), mark)));
        self.unprotectable
            .extend(from.unprotectable.drain(..).map(shown));
        self.not_followed = self.not_followed.take().or(from.not_followed.take());
    }

    /// Sorts the mounts, and drops those inside a read-only one: a pin there
    /// would make it writable again.
    fn sort_mounts(&mut self) {
        self.entries.sort();
        let mut closed: Option<PathBuf> = None;
        self.entries.retain(|entry| {
            if closed
                .as_ref()
                .is_some_and(|top| entry.path.starts_with(top))
            {
                return false;
            }
            if entry.protection == Protection::ReadOnly {
                closed = Some(entry.path.clone());
            }
            true
        });
        self.entries.dedup_by(|next, kept| next.path == kept.path);
        self.unprotectable.sort();
        self.unprotectable.dedup();
        self.watched.sort_by(|a, b| a.0.cmp(&b.0));
        self.watched.dedup_by(|next, kept| next.0 == kept.0);
    }
}

impl PathMark {
    fn from_stat(stat: &Stat) -> Self {
        let file = FileType::from_raw_mode(stat.st_mode) != FileType::Directory;
        #[expect(clippy::unnecessary_cast, reason = "the types differ by architecture")]
        let changed = file.then_some((stat.st_ctime as i64, stat.st_ctime_nsec as i64));
        Self(stat.st_dev, stat.st_ino, changed)
    }
}

/// What a path is if no link in any part of it is followed.
enum UnfollowedKind {
    Absent,
    /// This part of the path is a link, or cannot be read.
    Link(PathBuf),
    Plain(Stat),
}

/// Searches one directory that the run may write: the sandbox's, or a git
/// directory outside of it. Paths are relative to `base`.
struct SurfaceWalk<'a> {
    base: PathBuf,
    fd: OwnedFd,
    /// The sandbox's directory.
    dir: &'a Path,
    unprotected: &'a [String],
    /// All names in `base`, unless there are many. One listing is cheaper than
    /// one `stat` for each name, most of which are absent.
    top: Option<HashSet<OsString>>,
    /// The last parent that was found to have no link in it.
    plain: RefCell<PathBuf>,
    /// How many more directories may be listed. See [`git::MAX_DIRS`].
    budget: usize,
    /// The git directory outside of the sandbox, if it points back here.
    outside: Option<PathBuf>,
    /// Absolute paths that a git configuration names.
    named: Vec<PathBuf>,
    found: AutoExecSurface,
}

impl<'a> SurfaceWalk<'a> {
    fn open(base: &Path, dir: &'a Path, unprotected: &'a [String]) -> Option<Self> {
        let mut walk = Self {
            base: base.to_path_buf(),
            fd: open(base, OPEN_DIR, Mode::empty()).ok()?,
            dir,
            unprotected,
            top: None,
            plain: RefCell::default(),
            budget: git::MAX_DIRS,
            outside: None,
            named: Vec::new(),
            found: AutoExecSurface::default(),
        };
        let top = walk.list_directory(Path::new("."));
        walk.top = top.map(|list| list.into_iter().map(|(name, _)| name).collect());
        Some(walk)
    }

    /// Makes one path read-only, or watches for it if it does not exist.
    fn protect_path(&mut self, path: &Path, why: &'static str) {
        if self.is_left_writable(path) {
            return;
        }
        match self.look_at(path) {
            UnfollowedKind::Absent => self.found.watched.push((path.to_path_buf(), None)),
            UnfollowedKind::Link(at) => self.found.unprotectable.push(at),
            UnfollowedKind::Plain(stat) => {
                let file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                if file && stat.st_nlink > 1 {
                    self.found.unprotectable.push(path.to_path_buf());
                }
                self.add_mount(path, Protection::ReadOnly, why, &stat);
            }
        }
    }

    /// Keeps a directory from being renamed.
    fn pin_directory(&mut self, path: &Path) {
        if self.is_left_writable(path) || path.as_os_str().is_empty() {
            return;
        }
        if let UnfollowedKind::Plain(stat) = self.look_at(path) {
            self.add_mount(path, Protection::Pinned, HOLDS, &stat);
        }
    }

    /// Adds a mount, and pins the hidden directories above it. Otherwise a run
    /// could rename one, with the mount in it, and create it anew.
    ///
    /// Directories of sources are not pinned: renames and hard links cannot
    /// cross a mount point (EXDEV), and builds make them. What is below them is
    /// watched instead.
    fn add_mount(&mut self, path: &Path, protection: Protection, why: &'static str, stat: &Stat) {
        let above = path
            .ancestors()
            .skip(1)
            .filter(|p| !p.as_os_str().is_empty());
        let (pinned, loose): (Vec<_>, Vec<_>) = above.partition(|p| self.is_hidden(p));
        for &path in &pinned {
            let (path, why) = (path.to_path_buf(), HOLDS);
            let protection = Protection::Pinned;
            self.found.entries.push(ProtectedPath {
                path,
                protection,
                why,
            });
        }
        let path = path.to_path_buf();
        if pinned.is_empty() && !loose.is_empty() {
            self.found
                .watched
                .push((path.clone(), Some(PathMark::from_stat(stat))));
        }
        self.found.entries.push(ProtectedPath {
            path,
            protection,
            why,
        });
    }

    /// Remembers what a path is, to check it after the run, without protecting
    /// it.
    fn watch_path(&mut self, path: &Path) {
        let mark = match self.look_at(path) {
            UnfollowedKind::Absent => None,
            UnfollowedKind::Link(at) => return self.found.unprotectable.push(at),
            UnfollowedKind::Plain(stat) => Some(PathMark::from_stat(&stat)),
        };
        self.found.watched.push((path.to_path_buf(), mark));
    }

    /// Returns what a path is, without following a link.
    fn look_at(&self, path: &Path) -> UnfollowedKind {
        if let (Some(top), Some(first)) = (&self.top, path.components().next())
            && !top.contains(first.as_os_str())
        {
            return UnfollowedKind::Absent;
        }
        let stat = |path: &Path| statat(&self.fd, path, AtFlags::SYMLINK_NOFOLLOW);
        let link = |s: &Stat| FileType::from_raw_mode(s.st_mode) == FileType::Symlink;
        let last = match stat(path) {
            Ok(last) if link(&last) => return UnfollowedKind::Link(path.to_path_buf()),
            Ok(last) => last,
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {
                return UnfollowedKind::Absent;
            }
            Err(_) => return UnfollowedKind::Link(path.to_path_buf()),
        };
        let parent = path.parent().unwrap_or(path);
        if *self.plain.borrow() == parent {
            return UnfollowedKind::Plain(last);
        }
        let above = parent.ancestors().filter(|p| !p.as_os_str().is_empty());
        for part in above {
            if stat(part).map_or(true, |stat| link(&stat)) {
                return UnfollowedKind::Link(part.to_path_buf());
            }
        }
        self.plain.replace(parent.to_path_buf());
        UnfollowedKind::Plain(last)
    }

    fn is_dir(&self, path: &Path) -> bool {
        matches!(self.look_at(path), UnfollowedKind::Plain(s) if FileType::from_raw_mode(s.st_mode) == FileType::Directory)
    }

    fn is_file(&self, path: &Path) -> bool {
        matches!(self.look_at(path), UnfollowedKind::Plain(s) if FileType::from_raw_mode(s.st_mode) == FileType::RegularFile)
    }

    /// Returns whether a path is in a hidden directory, or in a git directory
    /// outside of the sandbox.
    fn is_hidden(&self, path: &Path) -> bool {
        let dotted = |part: std::path::Component| part.as_os_str().as_encoded_bytes()[0] == b'.';
        self.base != self.dir || path.components().any(dotted)
    }

    /// Returns whether the configuration leaves a path writable. `.git/hooks`
    /// there also means that of nested repositories and of the one outside.
    fn is_left_writable(&self, path: &Path) -> bool {
        self.unprotected.iter().any(|name| {
            let name = Path::new(name.strip_prefix("./").unwrap_or(name));
            let below = |path: &Path| path.starts_with(name);
            if name.as_os_str().is_empty() {
                return false;
            }
            if self.base != self.dir {
                return below(&Path::new(".git").join(path));
            }
            let mut from_git = path.components();
            while from_git
                .clone()
                .next()
                .is_some_and(|c| c.as_os_str() != ".git")
            {
                from_git.next();
            }
            below(path) || below(from_git.as_path())
        })
    }

    /// Protects the paths that git configurations name, if they are below
    /// `base`.
    fn protect_named(&mut self, named: &[PathBuf]) {
        let git = self.base.join(".git");
        for path in named {
            let Ok(inside) = path.strip_prefix(&self.base) else {
                continue;
            };
            // A hook directory that is the whole tree cannot be read-only.
            if git.starts_with(path) {
                self.found.unprotectable.push(inside.to_path_buf());
            } else {
                self.protect_path(inside, git::NAMED);
            }
        }
    }
}
