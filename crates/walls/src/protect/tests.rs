//! Promises about the surface, kept against the real git.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use super::*;

/// A directory with git beside it that reads nobody's configuration.
struct GitBench {
    _temp: tempfile::TempDir,
    at: PathBuf,
}

impl GitBench {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let at = temp.path().canonicalize().unwrap();
        Self { _temp: temp, at }
    }

    fn repository(&self, name: &str) -> PathBuf {
        let dir = self.at.join(name);
        fs::create_dir_all(&dir).unwrap();
        self.git(&dir, "init -q -b main");
        self.git(&dir, "commit -q --allow-empty -m first");
        dir
    }

    fn git(&self, dir: &Path, words: &str) {
        let done = self.sh(dir, &format!("git {words}"));
        assert!(done.status.success(), "git {words}: {done:?}");
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the test compares with the real git"
    )]
    fn sh(&self, dir: &Path, script: &str) -> Output {
        let mut sh = Command::new("sh");
        for name in [
            "AUTHOR_NAME",
            "AUTHOR_EMAIL",
            "COMMITTER_NAME",
            "COMMITTER_EMAIL",
        ] {
            sh.env(format!("GIT_{name}"), "someone");
        }
        sh.env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ALLOW_PROTOCOL", "file")
            .args(["-c", script])
            .current_dir(dir)
            .output()
            .unwrap()
    }

    /// Runs a script below the mounts, as a run will. None without namespaces.
    fn contained(&self, dir: &Path, surface: &AutoExecSurface, script: &str) -> Option<Output> {
        let mut all = String::from("set -e\n");
        for entry in &surface.entries {
            let path = dir.join(&entry.path);
            let path = path.to_str().unwrap();
            all += &format!("mount --bind '{path}' '{path}'\n");
            if entry.protection == Protection::ReadOnly {
                all += &format!("mount -o remount,bind,ro '{path}'\n");
            }
        }
        all += &format!("cd '{}'\n{script}", dir.display());
        let able = self.sh(dir, "unshare -rm true").status.success();
        if !able {
            weighlock_testing::skip("this machine has no user namespaces");
            return None;
        }
        fs::write(self.at.join("script"), all).unwrap();
        let script = self.at.join("script");
        Some(self.sh(dir, &format!("unshare -rm sh '{}'", script.display())))
    }
}

fn paths(surface: &AutoExecSurface, protection: Protection) -> Vec<&str> {
    let entries = surface
        .entries
        .iter()
        .filter(|entry| entry.protection == protection);
    entries.map(|entry| entry.path.to_str().unwrap()).collect()
}

fn watches(surface: &AutoExecSurface, path: &str) -> bool {
    surface
        .watched
        .iter()
        .any(|(watched, _)| watched == Path::new(path))
}

fn write(path: PathBuf, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn what_exists_is_read_only_and_what_holds_it_stays() {
    let bench = GitBench::new();
    let dir = bench.repository("proj");
    for name in [
        ".envrc",
        ".vscode/tasks.json",
        ".vscode/notes",
        ".claude/settings.json",
    ] {
        write(dir.join(name), "");
    }
    write(dir.join(".git/info/attributes"), "");
    write(dir.join("Makefile"), "");
    let found = find_surface(&dir, &[], &[]);
    let read_only = paths(&found, Protection::ReadOnly);
    assert_eq!(
        read_only,
        [
            ".claude",
            ".envrc",
            ".git/config",
            ".git/hooks",
            ".git/info/attributes",
            ".vscode/tasks.json"
        ]
    );
    assert_eq!(
        paths(&found, Protection::Pinned),
        [".git", ".git/info", ".vscode"]
    );
    assert_eq!((found.unprotectable.len(), &found.not_followed), (0, &None));
    let order: Vec<_> = found.entries.iter().map(|entry| &entry.path).collect();
    assert!(order.is_sorted(), "parents come first: {order:?}");
}

#[test]
fn what_the_configuration_names_is_left_writable() {
    let bench = GitBench::new();
    let dir = bench.repository("proj");
    let inner = bench.repository("proj/inner");
    write(dir.join(".github/workflows/ci.yml"), "");
    write(dir.join(".github/hooks/x"), "");
    let nested = [inner.strip_prefix(&dir).unwrap().to_path_buf()];
    let names = ["./.github/workflows/", ".git/hooks", ""].map(String::from);
    let found = find_surface(&dir, &nested, &names);
    let read_only = paths(&found, Protection::ReadOnly);
    assert_eq!(
        read_only,
        [".git/config", ".github/hooks", "inner/.git/config"]
    );
    assert!(!watches(&found, ".git/hooks"));
}

#[test]
fn what_is_created_is_told() {
    let bench = GitBench::new();
    let dir = bench.repository("proj");
    let before = find_surface(&dir, &[], &[]);
    assert_eq!(find_replaced(&dir, &before), Vec::<PathBuf>::new());
    write(dir.join(".vscode/tasks.json"), "");
    write(dir.join(".git/commondir"), "../evil");
    symlink("nowhere", dir.join(".envrc")).unwrap();
    let told: Vec<PathBuf> = [".envrc", ".git/commondir", ".vscode/tasks.json"]
        .map(PathBuf::from)
        .into();
    assert_eq!(find_replaced(&dir, &before), told);

    let bare = bench.at.join("none");
    fs::create_dir(&bare).unwrap();
    let before = find_surface(&bare, &[], &[]);
    bench.git(&bare, "init -q --bare");
    assert_eq!(find_replaced(&bare, &before), [PathBuf::from("HEAD")]);
}

#[test]
fn a_repository_put_in_the_place_of_another_is_told() {
    let bench = GitBench::new();
    let dir = bench.repository("proj");
    let before = find_surface(&dir, &[], &[]);
    fs::remove_file(dir.join(".git/HEAD")).unwrap();
    bench.sh(&dir, "git init -q --bare .; git config core.fsmonitor evil");
    let obeyed = bench.sh(&dir, "git config core.fsmonitor");
    assert_eq!(obeyed.stdout, b"evil\n", "git takes it for real");
    assert_eq!(find_replaced(&dir, &before), [PathBuf::from("HEAD")]);
}

#[test]
fn a_nested_repository_that_was_replaced_is_told() {
    let bench = GitBench::new();
    let dir = bench.repository("proj");
    bench.repository("proj/vendor/sub");
    let (repositories, all) = find_repositories(&dir, 100);
    assert_eq!(
        (&repositories[..], all),
        (&[PathBuf::from("vendor/sub")][..], true)
    );
    let before = find_surface(&dir, &repositories, &[]);
    let pinned = paths(&before, Protection::Pinned);
    assert_eq!(pinned, [".git", "vendor/sub/.git"]);
    fs::rename(dir.join("vendor"), dir.join("old")).unwrap();
    assert!(
        find_replaced(&dir, &before).is_empty(),
        "what is gone is not told"
    );
    bench.repository("proj/vendor/sub");
    assert_eq!(
        find_replaced(&dir, &before),
        [PathBuf::from("vendor/sub/.git")]
    );
}

#[test]
fn links_and_second_names_are_said() {
    let bench = GitBench::new();
    let dir = bench.repository("proj");
    fs::remove_dir_all(dir.join(".git/hooks")).unwrap();
    symlink("/tmp", dir.join(".git/hooks")).unwrap();
    symlink(&bench.at, dir.join(".claude")).unwrap();
    write(dir.join("editor/tasks.json"), "");
    symlink("editor", dir.join(".vscode")).unwrap();
    write(dir.join(".envrc"), "");
    fs::hard_link(dir.join(".envrc"), dir.join("other")).unwrap();
    let found = find_surface(&dir, &[], &[]);
    let said = [".claude", ".envrc", ".git/hooks", ".vscode"].map(PathBuf::from);
    assert_eq!(found.unprotectable, said);
    assert_eq!(
        paths(&found, Protection::ReadOnly),
        [".envrc", ".git/config"]
    );

    let linked = bench.at.join("linked");
    fs::create_dir(&linked).unwrap();
    symlink(dir.join(".git"), linked.join(".git")).unwrap();
    let found = find_surface(&linked, &[], &[]);
    assert_eq!(found.entries, []);
    assert_eq!(found.unprotectable, [PathBuf::from(".git")]);
}

#[test]
fn hooks_kept_elsewhere_are_found() {
    let bench = GitBench::new();
    let dir = bench.repository("proj");
    write(dir.join("tools/hooks/pre-push"), "");
    write(dir.join("scripts/check.sh"), "");
    symlink("../../scripts/check.sh", dir.join(".git/hooks/pre-commit")).unwrap();
    write(
        dir.join("shared.gitconfig"),
        "[core]\nhooksPath = tools/hooks\n",
    );
    bench.git(&dir, "config include.path ../shared.gitconfig");
    let found = find_surface(&dir, &[], &[]);
    assert_eq!(
        paths(&found, Protection::ReadOnly),
        [
            ".git/config",
            ".git/hooks",
            "scripts/check.sh",
            "shared.gitconfig",
            "tools/hooks"
        ]
    );
    for (value, expected) in [
        (".".to_owned(), Some("")),
        (dir.display().to_string(), Some("")),
        (".git".to_owned(), Some(".git")),
        ("..".to_owned(), None),
        ("/etc".to_owned(), None),
    ] {
        bench.git(&dir, &format!("config core.hooksPath '{value}'"));
        let found = find_surface(&dir, &[], &[]);
        let expected: Vec<PathBuf> = expected.into_iter().map(PathBuf::from).collect();
        assert_eq!(found.unprotectable, expected, "{value}");
        assert_eq!(paths(&found, Protection::Pinned), [".git"]);
    }
}

#[test]
fn submodules_are_guarded_where_they_are_kept() {
    let bench = GitBench::new();
    bench.repository("low");
    let mid = bench.repository("mid");
    bench.git(&mid, "submodule --quiet add ../low low");
    bench.git(&mid, "commit -qm low");
    let dir = bench.repository("proj");
    bench.git(&dir, "submodule --quiet add ../mid lib/mid");
    bench.git(&dir, "submodule --quiet update --init --recursive");
    let (repositories, _) = find_repositories(&dir, 100);
    let found = find_surface(&dir, &repositories, &[]);
    let read_only = paths(&found, Protection::ReadOnly);
    for path in [
        ".git/modules/lib/mid/config",
        ".git/modules/lib/mid/hooks",
        ".git/modules/lib/mid/modules/low/config",
        "lib/mid/.git",
        "lib/mid/low/.git",
    ] {
        assert!(read_only.contains(&path), "{path} {read_only:?}");
    }
    let pinned = paths(&found, Protection::Pinned);
    for path in [".git/modules", ".git/modules/lib", ".git/modules/lib/mid"] {
        assert!(pinned.contains(&path), "{path} {pinned:?}");
    }

    let alone = find_surface(&dir.join("lib/mid"), &[], &[]);
    let git = dir.join(".git/modules/lib/mid");
    assert_eq!(paths(&alone, Protection::Outside), [git.to_str().unwrap()]);
    let config = git.join("config");
    assert!(paths(&alone, Protection::ReadOnly).contains(&config.to_str().unwrap()));
}

#[test]
fn too_many_submodules_are_all_read_only() {
    let bench = GitBench::new();
    let dir = bench.repository("proj");
    for n in 0..=git::MAX_DIRS {
        fs::create_dir_all(dir.join(format!(".git/modules/{n}"))).unwrap();
    }
    let found = find_surface(&dir, &[], &[]);
    assert!(paths(&found, Protection::ReadOnly).contains(&".git/modules"));
}

#[test]
fn a_linked_worktree_has_its_git_directory() {
    let bench = GitBench::new();
    let main = bench.repository("main");
    for name in ["one", "two"] {
        bench.git(&main, &format!("worktree add -q ../{name}"));
    }
    let dir = bench.at.join("one");
    let found = find_surface(&dir, &[], &[]);
    let git = |name: &str| main.join(".git").join(name).display().to_string();
    assert_eq!(
        paths(&found, Protection::Outside),
        [main.join(".git").to_str().unwrap()]
    );
    let mut expected = vec![git("config"), git("hooks")];
    expected.extend(["commondir", "gitdir"].map(|n| git("worktrees/one/") + n));
    expected.extend(["HEAD", "commondir", "gitdir"].map(|n| git("worktrees/two/") + n));
    expected.push(".git".into());
    assert_eq!(paths(&found, Protection::ReadOnly), expected);
    assert!(watches(&found, &git("config.worktree")));

    // Git 2.48 can write relative paths, on both sides.
    write(dir.join(".git"), "gitdir: ../main/.git/worktrees/one\n");
    write(
        main.join(".git/worktrees/one/gitdir"),
        "../../../../one/.git\n",
    );
    assert_eq!(find_surface(&dir, &[], &[]), found);
}

#[test]
fn a_worktree_inside_can_be_removed_and_is_watched() {
    let bench = GitBench::new();
    let dir = bench.repository("proj");
    bench.git(&dir, "worktree add -q wt");
    let (repositories, _) = find_repositories(&dir, 100);
    let found = find_surface(&dir, &repositories, &[]);
    assert_eq!(
        paths(&found, Protection::ReadOnly),
        [".git/config", ".git/hooks"]
    );
    write(dir.join(".git/worktrees/wt/commondir"), "../../../evil\n");
    write(dir.join("wt/.git"), "gitdir: ../evil\n");
    let told = find_replaced(&dir, &found);
    assert_eq!(
        told,
        [".git/worktrees/wt/commondir", "wt/.git"].map(PathBuf::from)
    );
}

#[test]
fn a_planted_git_file_opens_nothing() {
    let bench = GitBench::new();
    let victim = bench.repository("victim");
    bench.git(&victim, "worktree add -q ../theirs");
    let dir = bench.at.join("proj");
    let forged = bench.at.join("forged/worktrees/x");
    fs::create_dir(&dir).unwrap();
    write(
        forged.join("gitdir"),
        dir.join(".git").as_os_str().as_bytes(),
    );
    write(
        forged.join("commondir"),
        victim.join(".git").as_os_str().as_bytes(),
    );
    symlink(&victim, bench.at.join("link")).unwrap();
    let theirs = victim.join(".git/worktrees/theirs");
    for target in [
        theirs.to_str().unwrap(),
        "../victim/.git/worktrees/theirs",
        "../victim/.git",
        "../theirs/../victim/.git/worktrees/theirs/",
        "../link/.git/worktrees/theirs",
        forged.to_str().unwrap(),
        "..",
        "/",
        "/etc",
        "../../../../../../../../../../etc",
    ] {
        write(dir.join(".git"), format!("gitdir: {target}\n"));
        let found = find_surface(&dir, &[], &[]);
        assert_eq!(paths(&found, Protection::Outside), [""; 0], "{target}");
        assert_eq!(paths(&found, Protection::ReadOnly), [".git"], "{target}");
        assert!(found.not_followed.is_some(), "{target}");
    }
    let none = |text: &[u8]| {
        write(dir.join(".git"), text);
        assert_eq!(
            paths(&find_surface(&dir, &[], &[]), Protection::Outside),
            [""; 0]
        );
    };
    none(b"");
    none(b"gitdir:");
    none(b"gitdir: .");
    none(b"gitdir: a\0b");
    none(b"gitdir: \xff\xfe/\x80\n");
    none(&vec![b'/'; 1 << 20]);
}

#[test]
fn a_back_link_counts_only_for_a_git_directory_without_links() {
    let bench = GitBench::new();
    let dir = bench.at.join("proj");
    let common = bench.at.join("common");
    let admin = common.join("worktrees/x");
    write(
        admin.join("gitdir"),
        dir.join(".git").as_os_str().as_bytes(),
    );
    write(admin.join("commondir"), "../..\n");
    write(dir.join(".git"), format!("gitdir: {}\n", admin.display()));
    let accepted = || !paths(&find_surface(&dir, &[], &[]), Protection::Outside).is_empty();
    assert!(!accepted(), "no HEAD, objects and refs");
    for name in ["objects/x", "refs/x", "HEAD"] {
        write(common.join(name), "");
    }
    assert!(accepted());
    fs::rename(&common, bench.at.join("moved")).unwrap();
    symlink("moved", &common).unwrap();
    assert!(!accepted(), "reached by a link");

    // The same from below a repository: nobody gets the directory above.
    fs::remove_file(&common).unwrap();
    fs::rename(bench.at.join("moved"), &common).unwrap();
    let below = common.join("below");
    write(
        admin.join("gitdir"),
        below.join(".git").as_os_str().as_bytes(),
    );
    write(below.join(".git"), format!("gitdir: {}\n", admin.display()));
    assert_eq!(
        paths(&find_surface(&below, &[], &[]), Protection::Outside),
        [""; 0]
    );
}

#[test]
fn only_the_sandbox_itself_is_followed_outside() {
    let bench = GitBench::new();
    let main = bench.repository("main");
    let dir = bench.repository("proj");
    bench.git(&main, "worktree add -q ../proj/inner");
    let found = find_surface(&dir, &["inner".into()], &[]);
    assert_eq!(paths(&found, Protection::Outside), [""; 0]);
    assert!(watches(&found, "inner/.git"));
}

#[test]
fn the_search_for_repositories_has_an_end() {
    let bench = GitBench::new();
    let dir = bench.at.join("proj");
    write(dir.join("a/b/c/.git/HEAD"), "");
    write(dir.join("worktree/.git"), "gitdir: x");
    for name in ["mirror/HEAD", "mirror/objects/x", "mirror/refs/x"] {
        write(dir.join(name), "");
    }
    symlink(&bench.at, dir.join("loop")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"\xff");
    write(dir.join(odd).join(".git"), "");
    let all = ["a/b/c", "mirror", "worktree"].map(PathBuf::from);
    let all: Vec<PathBuf> = all.into_iter().chain([odd.into()]).collect();
    assert_eq!(find_repositories(&dir, 100), (all, true));
    let shallow = ["mirror", "worktree"].map(PathBuf::from);
    let shallow: Vec<PathBuf> = shallow.into_iter().chain([odd.into()]).collect();
    assert_eq!(find_repositories(&dir, 5), (shallow, false));
    assert_eq!(
        find_repositories(&dir.join("missing"), 5),
        (Vec::new(), false)
    );
}

#[test]
fn git_works_below_the_mounts_and_its_hooks_stay() {
    let bench = GitBench::new();
    let main = bench.repository("main");
    bench.git(&main, "branch -q there");
    bench.git(&main, "worktree add -q ../linked");
    let script = r#"
        echo 1 > a; git add a; git commit -qm a
        name=$(basename $PWD); git switch -q -c $name-work; echo 2 > a; git commit -qam b
        git rebase -q there; echo 3 > a; git stash -q; git stash pop -q; git checkout -q a
        git branch gone; git branch -q -d gone 2>/dev/null
        git worktree add -q wt; git worktree remove wt
        git tag $name-tag; git gc -q; git fsck
        common=$(git rev-parse --path-format=absolute --git-common-dir)
        if echo x > $common/hooks/pre-commit; then exit 11; fi
        if git config core.hooksPath .; then exit 12; fi
        if mv $common/hooks $common/h; then exit 13; fi
        if rm -f $common/config; then exit 14; fi
        if mv .git g; then exit 15; fi
    "#;
    for dir in [&main, &bench.at.join("linked")] {
        let found = find_surface(dir, &[], &[]);
        let Some(done) = bench.contained(dir, &found, script) else {
            return;
        };
        assert!(done.status.success(), "{}: {done:?}", dir.display());
        assert_eq!(find_replaced(dir, &found), Vec::<PathBuf>::new());
    }
}

#[test]
#[ignore = "a measurement: run with --release --nocapture"]
fn how_long_it_takes() {
    let bench = GitBench::new();
    let dir = bench.repository("proj");
    write(dir.join(".vscode/tasks.json"), "");
    write(dir.join(".github/workflows/ci.yml"), "");
    bench.git(&bench.repository("main"), "worktree add -q ../linked");
    for dir in [dir, bench.at.join("linked")] {
        let found = find_surface(&dir, &[], &[]);
        let before = best(|| drop(std::hint::black_box(find_surface(&dir, &[], &[]))));
        let after = best(|| drop(std::hint::black_box(find_replaced(&dir, &found))));
        println!("{}: surface {before:?}, appeared {after:?}", dir.display());
    }
}

/// The best of many rounds: the machine may be busy with other things.
fn best(work: impl Fn()) -> std::time::Duration {
    let round = |_| {
        let start = std::time::Instant::now();
        (0..100).for_each(|_| work());
        start.elapsed() / 100
    };
    (0..200).map(round).min().unwrap()
}

#[test]
fn what_is_protected_where_commands_write_directly_is_asked_about_on_copies() {
    use weighlock_policy::{Change, ChangeKind, Preset, Rules, Settings, judge_changes};
    let rules = Rules::base(&[Preset::Bash], &Settings::default());
    let is_asked = |path: String| {
        let change = Change::new(path, ChangeKind::Modified);
        !judge_changes(&rules, &[change], true).reasons.is_empty()
    };
    for (name, _) in PROTECTED_NAMES {
        let either = is_asked((*name).to_owned()) || is_asked(format!("{name}/x"));
        assert!(either, "{name}");
    }
}
