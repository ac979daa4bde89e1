//! Git, alone and with several working trees.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{check, check_fails, desk};
use crate::support::{Home, have};

#[test]
fn a_repository_is_worked_in_as_usual() {
    let home = desk();
    if !have(&["git"]) {
        return;
    }
    check(
        &home,
        &[
            (
                "git init -q && echo a > a && git add a && git commit -qm one && git log --format=%an:%s",
                "Ana:one",
            ),
            (
                "echo b >> a && git commit -qam two && git commit -q --amend -m second && git log -1 --format=%s",
                "second",
            ),
            (
                "git switch -qc topic && echo c > c && git add c && git commit -qm three && git switch -q main && echo d > d && git add d && git commit -qm four",
                "",
            ),
            (
                "git rebase -q main topic && git log --format=%s",
                "three\nfour\nsecond\none",
            ),
            (
                "echo z >> a && git stash -q && git stash pop -q && git status --porcelain && git restore a",
                "M a",
            ),
            (
                "git switch -q main && git merge -q --no-ff -m merged topic && git branch -q --list | wc -l",
                "2",
            ),
            (
                "git tag light && git tag -a heavy -m heavy && git tag",
                "heavy\nlight",
            ),
            (
                "git gc -q && git fsck > /dev/null 2>&1 && git log --oneline | wc -l",
                "5",
            ),
            (
                "git worktree add -q tree -b leaf && cd tree && echo l > l && git add l && git commit -qm leaf && cd .. && git worktree remove tree && git log -1 --format=%s leaf",
                "leaf",
            ),
            (
                "git clone -q . copy && cd copy && git commit -q --allow-empty -m copied && git push -q origin HEAD:refs/heads/pushed && git fetch -q && git -C .. log -1 --format=%s pushed && rm -rf ../copy",
                "copied",
            ),
            (
                "git cherry-pick leaf > /dev/null && git revert --no-edit HEAD > /dev/null && git reset -q --hard HEAD~2 && git clean -fdq && git status --porcelain",
                "",
            ),
            (
                "git config --global alias.last 'log -1 --format=%s' && git last && git config user.name",
                "merged\nAna",
            ),
            ("git config --global alias.last", "log -1 --format=%s"),
        ],
    );
    let settings = fs::read_to_string(home.around().join("home/.gitconfig")).unwrap();
    assert!(!settings.contains("last"), "{settings}");
    assert_eq!(outside(&home, &home.base(), "status --porcelain"), "");
    assert_eq!(outside(&home, &home.base(), "log -1 --format=%s"), "merged");
}

#[test]
fn settings_that_need_the_persons_keys_are_no_hindrance() {
    let home = desk();
    if !have(&["git"]) {
        return;
    }
    let settings = "[user]\nname = Ana\nemail = a@x\nsigningKey = 123\n[commit]\ngpgSign = true\n\
                    [tag]\ngpgSign = true\n[core]\nexcludesFile = ~/.gitignore_global\n\
                    pager = less\neditor = vi\n[commit]\ntemplate = ~/.gitmessage\n";
    home.put("home/.gitconfig", settings);
    home.put("home/.gitignore_global", "*.swp\n");
    home.put("home/.config/git/ignore", "*.not-read\n");
    check(
        &home,
        &[
            (
                "git init -q && touch a a.swp && git add -A && git commit -qm one",
                "",
            ),
            (
                "git ls-files && git tag -a v -m v && git log --format=%an:%s",
                "a\nAna:one",
            ),
        ],
    );
}

#[test]
fn what_wants_an_editor_fails_and_changes_nothing() {
    let home = desk();
    if !have(&["git"]) {
        return;
    }
    let begin = "git init -q && for i in 1 2 3; do echo $i > f; git add f; git commit -qm $i; done";
    check(&home, &[(begin, ""), ("echo new > f && git add f", "")]);
    check_fails(
        &home,
        &[("git commit", "editor"), ("git commit --amend", "editor")],
    );
    check(
        &home,
        &[("git log --format=%s && git commit -qm 4", "3\n2\n1")],
    );
    check_fails(&home, &[("git rebase -i HEAD~2", "editor")]);
    check(
        &home,
        &[(
            "git status --porcelain=v2 --branch | grep head; git log --format=%s; ls .git | grep -c rebase || true",
            "# branch.head main\n4\n3\n2\n1\n0",
        )],
    );
}

#[test]
fn a_linked_tree_is_committed_in_and_its_hooks_are_safe() {
    let home = desk();
    if !have(&["git"]) {
        return;
    }
    let main = home.around().join("main");
    fs::create_dir(&main).unwrap();
    outside(&home, &main, "init -q");
    outside(&home, &main, "commit -q --allow-empty -m one");
    outside(&home, &main, "worktree add -q ../base -b leaf");
    home.put("main/secret.txt", "s3cr3t");
    let before = fs::read(main.join(".git/config")).unwrap();
    check(
        &home,
        &[
            (
                "echo x > x && git add x && git commit -qm two && git log --format=%s",
                "two\none",
            ),
            (
                "git switch -qc other && echo y >> x && git stash -q && git stash pop -q && git commit -qam three && git rebase -q leaf && git tag t && git gc -q && git status --porcelain",
                "",
            ),
            (
                "cat ../main/secret.txt 2> /dev/null || echo hidden",
                "hidden",
            ),
        ],
    );
    check_fails(
        &home,
        &[
            ("git config core.hooksPath .", "config"),
            (
                "echo x > $(git rev-parse --git-common-dir)/hooks/pre-commit",
                "ead-only",
            ),
            (
                "cd $(git rev-parse --git-common-dir) && mv hooks away",
                "busy",
            ),
            (
                "cd $(git rev-parse --git-common-dir) && rm -r hooks",
                "ead-only",
            ),
        ],
    );
    assert_eq!(
        outside(&home, &main, "log --format=%s t"),
        "three\ntwo\none"
    );
    assert_eq!(fs::read(main.join(".git/config")).unwrap(), before);
    assert!(!main.join(".git/hooks/pre-commit").exists());
}

#[test]
fn a_submodule_is_committed_in() {
    let home = desk();
    if !have(&["git"]) {
        return;
    }
    // Git remembers a new one in its settings, which are not a command's.
    for dir in ["lib", "base"] {
        fs::create_dir_all(home.around().join(dir)).unwrap();
        outside(&home, &home.around().join(dir), "init -q");
        outside(
            &home,
            &home.around().join(dir),
            "commit -q --allow-empty -m one",
        );
    }
    outside(
        &home,
        &home.base(),
        "-c protocol.file.allow=always submodule add -q ../lib lib",
    );
    check(
        &home,
        &[
            (
                "git commit -qm lib && git status --porcelain && git submodule status | wc -l",
                "1",
            ),
            (
                "cd lib && echo x > x && git add x && git commit -qm two && cd .. && git commit -qam bumped && git status --porcelain && git -C lib log --format=%s",
                "two\none",
            ),
        ],
    );
    check_fails(
        &home,
        &[("echo x > .git/modules/lib/hooks/post-checkout", "ead-only")],
    );
    assert_eq!(outside(&home, &home.base(), "status --porcelain"), "");
}

#[test]
#[ignore = "git writes to its configuration for this, which is read-only: it says so, goes on, and \
            the submodule is not registered"]
fn a_submodule_is_added() {
    let home = desk();
    check(
        &home,
        &[
            (
                "git init -q && git init -q lib && git -C lib commit -q --allow-empty -m one",
                "",
            ),
            (
                "git -c protocol.file.allow=always submodule add -q ./lib mod 2>&1",
                "",
            ),
            ("git submodule update --init 2>&1", ""),
        ],
    );
}

#[test]
#[ignore = "git writes to its configuration for this, which is read-only: the branch is gone, and \
            an error is shown"]
fn a_branch_is_removed_quietly() {
    let home = desk();
    let begin = "git init -q && git commit -q --allow-empty -m one && git branch x";
    check(&home, &[(begin, ""), ("git branch -qd x 2>&1", "")]);
}

/// Git as the person would use it, without walls.
fn outside(home: &Home, dir: &Path, args: &str) -> String {
    let done = Command::new("git")
        .args(args.split(' '))
        .current_dir(dir)
        .env("HOME", home.around().join("home"))
        .output()
        .unwrap();
    assert!(done.status.success(), "git {args}: {done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}
