//! What stays read-only inside a writable directory: the auto-exec surface.
//!
//! Some files are run later by other programs, outside of the walls: a git
//! hook, an editor's task, an agent's settings. Whoever can write them has
//! left the sandbox. Each one that exists is mounted onto itself read-only.
//! A mount needs something to sit on and nothing may be created on the host,
//! so what does not exist yet is remembered, and looked at after the run.

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

pub(crate) use config::{Setting, settings};
pub(crate) use git::{lexical, read as read_small};
pub(crate) use nested::nested;

/// What is kept from being written inside a writable directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Surface {
    /// The mounts, in the order to make them: parents before what they hold.
    pub(crate) entries: Vec<Entry>,
    /// Found, but no mount can keep them: a link can be replaced, and a file
    /// with a second name can be written by that name.
    pub(crate) unprotectable: Vec<PathBuf>,
    /// Where `.git` points to, when that was not believed. Git does not work
    /// in such a run, so it is said.
    pub(crate) not_followed: Option<PathBuf>,
    /// Looked at again after the run: as they were, or none.
    watched: Vec<(PathBuf, Option<Mark>)>,
}

/// One mount. The path is relative to the directory, or absolute where it is
/// outside, so that `dir.join(path)` is right for both.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    pub(crate) guard: Guard,
    /// Completes "it is read-only because …".
    pub(crate) why: &'static str,
}

/// How a path is mounted. Of two for one path the first listed here counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Guard {
    /// Onto itself, read-only.
    ReadOnly,
    /// A git directory outside of the sandbox, writable.
    Outside,
    /// Onto itself, writable: a mount point cannot be renamed away.
    Pinned,
}

/// Enough to see that something was replaced. A file has its change time too,
/// which a program cannot set; that of a directory changes all the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark(u64, u64, Option<(i64, i64)>);

/// How a directory is opened to look at what is in it.
const DIR: OFlags = OFlags::PATH
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
/// Left out on purpose, as they act only when somebody builds the project,
/// which runs its code anyway, and agents edit them all day: `Makefile`,
/// `package.json`, `build.rs`, `default.nix`. Others act on any call of a tool,
/// `cargo --version` too, or say which program is the tool: those are in.
/// `.gitattributes` only chooses among filters that the git config defines.
/// `.nvmrc` and the like are a version number; `.tool-versions` is in, as asdf
/// takes `path:./dir` for a version.
///
/// Start-up files are in for every directory. To guess whether one is a home
/// would mean to trust files that the agent can delete.
const NAMES: &[(&str, &str)] = &[
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

/// Finds what to keep read-only in `dir`, which is canonical.
///
/// `nested` are the repositories below it, relative. `unprotected` are names
/// that the configuration leaves writable, with all they hold.
pub(crate) fn surface(dir: &Path, nested: &[PathBuf], unprotected: &[String]) -> Surface {
    let mut found = Surface::default();
    let Some(mut walk) = Walk::open(dir, dir, unprotected) else {
        return found;
    };
    for (name, why) in NAMES {
        walk.protect(Path::new(name), why);
    }
    walk.root_repository();
    for repository in nested {
        walk.nested_repository(repository);
    }
    let outside = walk.outside.take().and_then(|common| {
        let mut walk = Walk::open(&common, dir, unprotected)?;
        walk.outside_repository();
        Some(walk)
    });
    let mut walks: Vec<Walk> = [Some(walk), outside].into_iter().flatten().collect();
    // A configuration may name what lies in the other of the two.
    let named: Vec<PathBuf> = walks
        .iter_mut()
        .flat_map(|w| w.named.split_off(0))
        .collect();
    for walk in &mut walks {
        walk.protect_named(&named);
        found.absorb(walk);
    }
    found.settle();
    found
}

/// Which of the watched ones were created or replaced since. One that is gone
/// is not told: there is nothing left to run.
pub(crate) fn appeared(dir: &Path, surface: &Surface) -> Vec<PathBuf> {
    let Ok(fd) = open(dir, DIR, Mode::empty()) else {
        return Vec::new();
    };
    let changed = |(path, before): &&(PathBuf, Option<Mark>)| {
        let now = statat(&fd, path, AtFlags::SYMLINK_NOFOLLOW);
        now.is_ok_and(|now| Some(Mark::of(&now)) != *before)
    };
    let watched = surface.watched.iter().filter(changed);
    watched.map(|(path, _)| path.clone()).collect()
}

impl Surface {
    fn absorb(&mut self, walk: &mut Walk) {
        let inside = walk.base == walk.dir;
        let shown = |path: PathBuf| match path.as_os_str().is_empty() {
            _ if inside => path,
            true => walk.base.clone(),
            false => walk.base.join(path),
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

    /// Orders the mounts, and drops those inside a read-only one: a pin there
    /// would make it writable again.
    fn settle(&mut self) {
        self.entries.sort();
        let mut closed: Option<PathBuf> = None;
        self.entries.retain(|entry| {
            if closed
                .as_ref()
                .is_some_and(|top| entry.path.starts_with(top))
            {
                return false;
            }
            if entry.guard == Guard::ReadOnly {
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

impl Mark {
    fn of(stat: &Stat) -> Self {
        let file = FileType::from_raw_mode(stat.st_mode) != FileType::Directory;
        #[expect(clippy::unnecessary_cast, reason = "the types differ by architecture")]
        let changed = file.then_some((stat.st_ctime as i64, stat.st_ctime_nsec as i64));
        Self(stat.st_dev, stat.st_ino, changed)
    }
}

/// What a path is, when no link is followed in any part of it.
enum Kind {
    Absent,
    /// This part of the path is a link, or cannot be looked at.
    Link(PathBuf),
    Plain(Stat),
}

/// Looks through one directory that the run may write: the sandbox, or a git
/// directory outside of it. Paths are relative to `base`.
struct Walk<'a> {
    base: PathBuf,
    fd: OwnedFd,
    /// The sandbox.
    dir: &'a Path,
    unprotected: &'a [String],
    /// All names in `base`, unless there are many. One listing is cheaper
    /// than to ask for each name, most of which are absent.
    top: Option<HashSet<OsString>>,
    /// The parent last seen to have no link in it.
    plain: RefCell<PathBuf>,
    /// Directories that may still be listed. See [`git::MAX_DIRS`].
    budget: usize,
    /// The accepted git directory outside.
    outside: Option<PathBuf>,
    /// Absolute paths that a git configuration names.
    named: Vec<PathBuf>,
    found: Surface,
}

impl<'a> Walk<'a> {
    fn open(base: &Path, dir: &'a Path, unprotected: &'a [String]) -> Option<Self> {
        let mut walk = Self {
            base: base.to_path_buf(),
            fd: open(base, DIR, Mode::empty()).ok()?,
            dir,
            unprotected,
            top: None,
            plain: RefCell::default(),
            budget: git::MAX_DIRS,
            outside: None,
            named: Vec::new(),
            found: Surface::default(),
        };
        let top = walk.list(Path::new("."));
        walk.top = top.map(|list| list.into_iter().map(|(name, _)| name).collect());
        Some(walk)
    }

    /// Makes one path read-only, or remembers that it is not there.
    fn protect(&mut self, path: &Path, why: &'static str) {
        if self.left_writable(path) {
            return;
        }
        match self.look(path) {
            Kind::Absent => self.found.watched.push((path.to_path_buf(), None)),
            Kind::Link(at) => self.found.unprotectable.push(at),
            Kind::Plain(stat) => {
                let file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                if file && stat.st_nlink > 1 {
                    self.found.unprotectable.push(path.to_path_buf());
                }
                self.hold(path, Guard::ReadOnly, why, &stat);
            }
        }
    }

    /// Keeps a directory where it is.
    fn pin(&mut self, path: &Path) {
        if self.left_writable(path) || path.as_os_str().is_empty() {
            return;
        }
        if let Kind::Plain(stat) = self.look(path) {
            self.hold(path, Guard::Pinned, HOLDS, &stat);
        }
    }

    /// Adds a mount, and pins the hidden directories above it, lest one is
    /// moved away with the mount in it and made anew.
    ///
    /// Directories of sources are not pinned: a pin is a border that rename
    /// and hard links cannot cross (EXDEV), and builds do that. What lies
    /// below them is watched instead.
    fn hold(&mut self, path: &Path, guard: Guard, why: &'static str, stat: &Stat) {
        let above = path
            .ancestors()
            .skip(1)
            .filter(|p| !p.as_os_str().is_empty());
        let (pinned, loose): (Vec<_>, Vec<_>) = above.partition(|p| self.is_hidden(p));
        for &path in &pinned {
            let (path, why) = (path.to_path_buf(), HOLDS);
            let guard = Guard::Pinned;
            self.found.entries.push(Entry { path, guard, why });
        }
        let path = path.to_path_buf();
        if pinned.is_empty() && !loose.is_empty() {
            self.found
                .watched
                .push((path.clone(), Some(Mark::of(stat))));
        }
        self.found.entries.push(Entry { path, guard, why });
    }

    /// Remembers how a path is, for after the run, without keeping it so.
    fn watch(&mut self, path: &Path) {
        let mark = match self.look(path) {
            Kind::Absent => None,
            Kind::Link(at) => return self.found.unprotectable.push(at),
            Kind::Plain(stat) => Some(Mark::of(&stat)),
        };
        self.found.watched.push((path.to_path_buf(), mark));
    }

    /// Tells what a path is without following a link.
    fn look(&self, path: &Path) -> Kind {
        if let (Some(top), Some(first)) = (&self.top, path.components().next())
            && !top.contains(first.as_os_str())
        {
            return Kind::Absent;
        }
        let stat = |path: &Path| statat(&self.fd, path, AtFlags::SYMLINK_NOFOLLOW);
        let link = |s: &Stat| FileType::from_raw_mode(s.st_mode) == FileType::Symlink;
        let last = match stat(path) {
            Ok(last) if link(&last) => return Kind::Link(path.to_path_buf()),
            Ok(last) => last,
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Kind::Absent,
            Err(_) => return Kind::Link(path.to_path_buf()),
        };
        let parent = path.parent().unwrap_or(path);
        if *self.plain.borrow() == parent {
            return Kind::Plain(last);
        }
        let above = parent.ancestors().filter(|p| !p.as_os_str().is_empty());
        for part in above {
            if stat(part).map_or(true, |stat| link(&stat)) {
                return Kind::Link(part.to_path_buf());
            }
        }
        self.plain.replace(parent.to_path_buf());
        Kind::Plain(last)
    }

    fn is_dir(&self, path: &Path) -> bool {
        matches!(self.look(path), Kind::Plain(s) if FileType::from_raw_mode(s.st_mode) == FileType::Directory)
    }

    fn is_file(&self, path: &Path) -> bool {
        matches!(self.look(path), Kind::Plain(s) if FileType::from_raw_mode(s.st_mode) == FileType::RegularFile)
    }

    /// Says whether a path is in a hidden directory, or in a git directory
    /// outside, which counts as one.
    fn is_hidden(&self, path: &Path) -> bool {
        let dotted = |part: std::path::Component| part.as_os_str().as_encoded_bytes()[0] == b'.';
        self.base != self.dir || path.components().any(dotted)
    }

    /// Says whether the configuration leaves a path writable. `.git/hooks`
    /// there also means that of nested repositories and of the one outside.
    fn left_writable(&self, path: &Path) -> bool {
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

    /// Protects what git configurations name, where it lies in this walk.
    fn protect_named(&mut self, named: &[PathBuf]) {
        let git = self.base.join(".git");
        for path in named {
            let Ok(inside) = path.strip_prefix(&self.base) else {
                continue;
            };
            // The whole tree as a hook directory cannot be read-only.
            if git.starts_with(path) {
                self.found.unprotectable.push(inside.to_path_buf());
            } else {
                self.protect(inside, git::NAMED);
            }
        }
    }
}
