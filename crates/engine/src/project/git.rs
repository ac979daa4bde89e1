//! The settings of git repositories.
//!
//! Unknown keys count as dangerous: extensions of git, and git itself, keep
//! learning new ones. What [`build_environment`](weighlock_walls::build_environment)
//! sets for runs that only read wins over a few more (`core.hooksPath`), and
//! those are harmless here, too, unless the command takes that away (`env -i`).

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weighlock_walls::{GitSetting, join_lexically, parse_git_config};

use super::index::submodules;
use super::view::View;

/// Repositories that are looked at for one part: submodules, and those above.
const MAX_REPOSITORIES: usize = 64;

/// Bytes of an index. It is about 100 for each file.
const MAX_INDEX: u64 = 64 * 1024 * 1024;

/// Where git keeps a person's settings, below the home directory.
const AT_HOME: &[&str] = &[".gitconfig", ".config/git/config"];

/// Sections in which no key makes a command that reads run anything.
const HARMLESS_SECTIONS: &[&str] = &[
    "add",
    "advice",
    "apply",
    "author",
    "blame",
    "branch",
    "checkout",
    "clean",
    "clone",
    "color",
    "column",
    "commit",
    "committer",
    "feature",
    "fetch",
    "fsck",
    "gc",
    "gitflow",
    "grep",
    "gui",
    "http",
    "i18n",
    "index",
    "init",
    "mailmap",
    "maintenance",
    "notes",
    "pack",
    "pull",
    "push",
    "rebase",
    "receive",
    "rerere",
    "safe",
    "stash",
    "tag",
    "transfer",
    "user",
    "versionsort",
    "worktree",
];

/// Other keys that are harmless, without the name between section and key.
const HARMLESS: &[&str] = &[
    "core.abbrev",
    "core.attributesfile",
    "core.autocrlf",
    "core.bare",
    "core.bigfilethreshold",
    "core.checkstat",
    "core.commentchar",
    "core.commitgraph",
    "core.compression",
    "core.deltabasecachelimit",
    "core.editor",
    "core.eol",
    "core.excludesfile",
    "core.filemode",
    "core.fscache",
    "core.hidedotfiles",
    "core.hookspath",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.longpaths",
    "core.loosecompression",
    "core.multipackindex",
    "core.packedgitlimit",
    "core.packedgitwindowsize",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.protecthfs",
    "core.protectntfs",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.sharedrepository",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.trustctime",
    "core.untrackedcache",
    "core.warnambiguousrefs",
    "core.whitespace",
    "diff.algorithm",
    "diff.autorefreshindex",
    "diff.binary",
    "diff.cachetextconv",
    "diff.colormoved",
    "diff.colormovedws",
    "diff.context",
    "diff.dirstat",
    "diff.funcname",
    "diff.guitool",
    "diff.ignoresubmodules",
    "diff.indentheuristic",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.orderfile",
    "diff.relative",
    "diff.renamelimit",
    "diff.renames",
    "diff.statgraphwidth",
    "diff.suppressblankempty",
    "diff.tool",
    "diff.wordregex",
    "diff.wserrorhighlight",
    "diff.xfuncname",
    "extensions.compatobjectformat",
    "extensions.noop",
    "extensions.objectformat",
    "extensions.partialclone",
    "extensions.preciousobjects",
    "extensions.refstorage",
    "extensions.relativeworktrees",
    "extensions.worktreeconfig",
    "help.autocorrect",
    "lfs.access",
    "lfs.locksverify",
    "lfs.repositoryformatversion",
    "lfs.url",
    "log.abbrevcommit",
    "log.date",
    "log.decorate",
    "log.excludedecoration",
    "log.follow",
    "log.initialdecorationset",
    "log.mailmap",
    "log.showroot",
    "merge.autostash",
    "merge.conflictstyle",
    "merge.ff",
    "merge.log",
    "merge.name",
    "merge.renamelimit",
    "merge.renames",
    "merge.stat",
    "merge.tool",
    "remote.fetch",
    "remote.gh-resolved",
    "remote.mirror",
    "remote.partialclonefilter",
    "remote.promisor",
    "remote.prune",
    "remote.prunetags",
    "remote.push",
    "remote.pushdefault",
    "remote.pushurl",
    "remote.skipdefaultupdate",
    "remote.skipfetchall",
    "remote.tagopt",
    "remote.url",
    "sequence.editor",
    "status.aheadbehind",
    "status.branch",
    "status.displaycommentprefix",
    "status.relativepaths",
    "status.renamelimit",
    "status.renames",
    "status.short",
    "status.showstash",
    "status.showuntrackedfiles",
    "submodule.active",
    "submodule.alternateerrorstrategy",
    "submodule.alternatelocation",
    "submodule.branch",
    "submodule.fetchjobs",
    "submodule.fetchrecursesubmodules",
    "submodule.ignore",
    "submodule.recurse",
    "submodule.shallow",
    "submodule.url",
    "url.insteadof",
    "url.pushinsteadof",
];

/// Keys that matter only where git talks to another machine, which commands
/// that read do for objects that a partial clone lacks.
const FOR_FETCHING: &[&str] = &[
    "core.askpass",
    "core.sshcommand",
    "credential.helper",
    "credential.provider",
    "credential.usehttppath",
    "credential.username",
];

/// Keys of partial clones.
const FETCHES: &[&str] = &["extensions.partialclone", "remote.promisor"];

/// Looks at the repository that git finds from a directory on, at those above
/// it, which it finds where that one is none, and at their submodules.
pub(super) fn look(
    dir: &Path,
    subcommand: &str,
    stripped: bool,
    view: &View,
) -> Result<(), String> {
    let mut look = Look {
        view,
        subcommand,
        stripped,
        seen: HashSet::new(),
    };
    for home in &view.homes {
        for name in AT_HOME {
            look.configs(&[home.join(name)], None)?;
        }
    }
    dir.ancestors().try_for_each(|at| look.repository(at))
}

struct Look<'a> {
    view: &'a View,
    subcommand: &'a str,
    /// What [`crate::env`] sets may be missing.
    stripped: bool,
    seen: HashSet<PathBuf>,
}

impl Look<'_> {
    /// Looks at a repository whose files would be in a directory, or which is
    /// the directory itself.
    fn repository(&mut self, at: &Path) -> Result<(), String> {
        let git = at.join(".git");
        let mut is_file = false;
        for (_, meta) in self.view.versions(&git)? {
            is_file |= meta.is_file();
            if meta.is_dir() {
                self.git_dir(&git, Some(at))?;
            }
        }
        if is_file {
            for text in self.view.read(&git)? {
                self.git_dir(&pointed_to(at, &text), Some(at))?;
            }
        }
        // The objects may be elsewhere, where `commondir` says.
        let has = |name| self.view.exists(&at.join(name));
        if has("objects")? && has("refs")? || has("HEAD")? && has("commondir")? {
            self.git_dir(at, None)?;
        }
        Ok(())
    }

    fn git_dir(&mut self, git: &Path, work: Option<&Path>) -> Result<(), String> {
        if !self.seen.insert(git.to_owned()) {
            return Ok(());
        }
        if self.seen.len() > MAX_REPOSITORIES {
            return Err("there are too many repositories to look at".into());
        }
        let mut dirs = vec![git.to_owned()];
        for text in self.view.read(&git.join("commondir"))? {
            dirs.push(pointed_to(git, &text));
        }
        let named = |name| { dirs.iter() }.map(move |dir: &PathBuf| dir.join(name));
        let files: Vec<PathBuf> = named("config").chain(named("config.worktree")).collect();
        self.configs(&files, work)?;
        for dir in &dirs {
            // Git runs it when it has written the index, which even `status` does.
            let hook = dir.join("hooks/post-index-change");
            if self.view.exists(&hook)? {
                return Err(format!("git runs {}", self.view.name(&hook)));
            }
        }
        if self
            .view
            .has_name(git, |name| name.starts_with("sharedindex."))?
        {
            return Err(format!("the index of {} is split", self.view.name(git)));
        }
        for index in self.view.read_up_to(&git.join("index"), MAX_INDEX)? {
            let links = submodules(&index);
            let links = links.map_err(|why| format!("{}: {why}", self.view.name(git)))?;
            for link in links {
                self.repository(&work.unwrap_or(git).join(link))?;
            }
        }
        Ok(())
    }

    /// Looks at the files with the settings of a repository, whose own files are
    /// at `work`.
    fn configs(&self, files: &[PathBuf], work: Option<&Path>) -> Result<(), String> {
        let mut found: Vec<(&Path, GitSetting)> = vec![];
        for file in files {
            for text in self.view.read(file)? {
                let settings = parse_git_config(&text).into_iter();
                found.extend(settings.map(|it| (file.as_path(), it)));
            }
        }
        let fetches = { found.iter() }.any(|(_, it)| FETCHES.contains(&&*it.plain_name()));
        let harmful =
            { found.iter() }.find(|(file, it)| !self.is_harmless(it, file, work, fetches));
        harmful.map_or(Ok(()), |(file, setting)| {
            Err(format!(
                "`{}` in {} can have git run other code",
                setting.full_name(),
                self.view.name(file)
            ))
        })
    }

    fn is_harmless(
        &self,
        setting: &GitSetting,
        file: &Path,
        work: Option<&Path>,
        fetches: bool,
    ) -> bool {
        let name = setting.plain_name();
        match (setting.section.as_str(), name.as_str()) {
            // A subcommand of git itself cannot be an alias.
            ("alias", _) => !setting.is_about(self.subcommand),
            (_, "core.fsmonitor") => matches!(&*setting.value, b"true" | b"false" | b""),
            (_, "core.worktree") => {
                let from = file.parent().unwrap_or(file);
                let tree = join_lexically(from, Path::new(OsStr::from_bytes(&setting.value)));
                work == Some(&*tree)
            }
            (_, name) if FOR_FETCHING.contains(&name) => !fetches,
            (_, "core.hookspath") if self.stripped => false,
            (section, name) => HARMLESS_SECTIONS.contains(&section) || HARMLESS.contains(&name),
        }
    }
}

/// Returns where a file with a path leads, as git reads it.
fn pointed_to(from: &Path, text: &[u8]) -> PathBuf {
    let path = text.strip_prefix(b"gitdir:").unwrap_or(text).trim_ascii();
    join_lexically(from, Path::new(OsStr::from_bytes(path)))
}
