//! Real repositories, with settings of all kinds.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use weighlock_policy::{Place, Reader, understand};

use super::*;

/// A directory with a shell to set it up.
struct Project(tempfile::TempDir);

impl Project {
    fn new(setup: &str) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        project.sh(setup);
        project
    }

    fn root(&self) -> std::path::PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn sh(&self, script: &str) {
        let done = Command::new("/bin/sh")
            .args(["-ec", script])
            .current_dir(self.root())
            .env("HOME", self.root())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(done.status.success(), "{script}: {done:?}");
    }

    fn view(&self) -> View {
        View {
            root: self.root(),
            ..View::default()
        }
    }

    fn why(&self, command: &str) -> Option<String> {
        why(command, &self.root(), &self.view())
    }

    fn check(&self, command: &str, expected: Option<&str>) {
        let why = self.why(command);
        match expected {
            None => assert_eq!(why, None, "{command}"),
            Some(part) => {
                let text = why.unwrap_or_else(|| panic!("{command} is harmless"));
                assert!(text.contains(part), "{command}: {text}");
            }
        }
    }
}

/// Returns why a command cannot be judged.
fn why(command: &str, cwd: &Path, view: &View) -> Option<String> {
    let place = Place {
        root: view.root.to_str().unwrap().into(),
        cwd: cwd.to_str().unwrap().into(),
        home: "/home/nobody".into(),
    };
    let mut facts = understand(command, Reader::Either, &[], &place);
    assert!(
        facts.parts.iter().any(|part| !part.obeys.is_empty()),
        "{command}"
    );
    look(&mut facts, view);
    facts.parts.into_iter().find_map(|part| part.unknown)
}

const REPOSITORY: &str = "
    git init -q -b main . && git config user.email a@example.com && git config user.name a
    git remote add origin https://example.com/x.git && mkdir sub && echo 1 >f && git add f
    git commit -qm 1 && git branch -q other && echo 2 >f";

#[test]
fn an_ordinary_clone_is_harmless() {
    let project = Project::new(REPOSITORY);
    project.sh("git init -q --bare bare.git && git clone -q . clone && git worktree add -q tree");
    project.sh("cd clone && git config core.hooksPath .husky && git config alias.st status");
    project.sh("cd clone && git config core.sshCommand 'ssh -i key' && git gc -q");
    for command in [
        "git status",
        "git diff",
        "git log -p",
        "git -C clone log -p",
        "cd clone && git blame f",
        "cd sub && git diff",
        "git -C bare.git log",
        "git -C tree status",
        "git --version",
    ] {
        project.check(command, None);
    }
}

#[test]
fn what_a_setting_names_is_not_run_unasked() {
    for (key, value) in [
        ("diff.external", "./evil"),
        ("diff.x.textconv", "./evil"),
        ("diff.x.command", "./evil"),
        ("filter.x.clean", "./evil"),
        ("filter.x.process", "./evil"),
        ("merge.x.driver", "./evil"),
        ("core.fsmonitor", "./evil"),
        ("core.pager", "./evil"),
        ("pager.diff", "./evil"),
        ("gpg.program", "./evil"),
        ("gpg.ssh.program", "./evil"),
        ("log.showSignature", "true"),
        ("format.pretty", "%G?"),
        ("pretty.x", "%G?"),
        ("tar.x.command", "./evil"),
        ("trailer.x.command", "./evil"),
        ("trailer.x.cmd", "./evil"),
        ("man.x.cmd", "./evil"),
        ("browser.x.cmd", "./evil"),
        ("web.browser", "x"),
        ("include.path", "../evil"),
        ("includeIf.gitdir:/.path", "../evil"),
        ("interactive.diffFilter", "./evil"),
        ("remote.origin.uploadpack", "./evil"),
        ("core.worktree", "/tmp"),
        ("diff.submodule", "diff"),
        ("status.submoduleSummary", "true"),
        ("core.gitProxy", "./evil"),
        ("core.alternateRefsCommand", "./evil"),
        ("delta.pager", "./evil"),
        ("something.new", "x"),
    ] {
        let project = Project::new(REPOSITORY);
        project.sh(&format!("git config '{key}' '{value}'"));
        for command in [
            "git diff",
            "git -C sub log -p",
            "git hash-object f",
            "git help log",
        ] {
            // As git writes it in the file.
            let shown = key.to_ascii_lowercase();
            let why = project
                .why(command)
                .unwrap_or_default()
                .to_ascii_lowercase();
            assert!(why.contains(&shown), "{command} with {key}: {why}");
        }
    }
}

#[test]
fn settings_are_found_wherever_git_takes_them_from() {
    let bad = "config diff.x.textconv ./evil";
    for (setup, command) in [
        (
            format!("git {bad}"),
            "git worktree add -q ../x 2>&1; cd sub && git diff",
        ),
        (
            format!("git worktree add -q tree && git {bad}"),
            "git -C tree diff",
        ),
        (
            "git worktree add -q tree && git config extensions.worktreeConfig true \
             && git -C tree config --worktree diff.x.textconv ./evil"
                .into(),
            "cd tree && git diff",
        ),
        (
            format!("git init -q --bare sub/b && git -C sub/b {bad}"),
            "cd sub/b && git log",
        ),
        (
            format!("git init -q sub && git -C sub {bad}"),
            "git -C sub diff",
        ),
        // A bare repository that has its objects in another one.
        (
            format!("git init -q real && git -C real {bad} && mv real/.git o && rmdir real")
                + " && cp o/HEAD sub && echo ../o >sub/commondir",
            "git -C sub log -p",
        ),
        // A repository inside of another, which its index lists.
        (
            format!(
                "git init -q sub && cd sub && echo 1 >g && git add g && git -c user.name=a \
                 -c user.email=a commit -qm 1 && cd .. && git add sub 2>&1 && git -C sub {bad}"
            ),
            "git status",
        ),
        // A submodule, with its directory in the other's.
        (
            format!(
                "git clone -q . /tmp/sub.$$ && git -c protocol.file.allow=always submodule add -q \
                 /tmp/sub.$$ mod && rm -rf /tmp/sub.$$ && git -C mod {bad}"
            ),
            "git status",
        ),
        ("git update-index --split-index".into(), "git status"),
        (
            "mkdir -p .git/hooks && echo x >.git/hooks/post-index-change".into(),
            "git status",
        ),
        ("mv .git real && ln -s real .git".into(), "git status"),
        (
            "mv .git/config c && ln -s ../c .git/config".into(),
            "git status",
        ),
        (
            format!("git init -q deep && git -C deep {bad} && ln -s deep link"),
            "cd link && git status",
        ),
        ("mkdir shut && chmod 0 shut".into(), "cd shut; git status"),
        (String::new(), "cd missing; git status"),
        (String::new(), "cd /tmp && git status"),
    ] {
        let project = Project::new(REPOSITORY);
        project.sh(&setup);
        assert!(project.why(command).is_some(), "{setup}: {command}");
        project.sh("chmod -R u+rwx .");
    }
}

#[test]
fn an_alias_counts_where_it_would_be_used() {
    let project = Project::new(REPOSITORY);
    project.sh("git config alias.lfs '!./evil' && git config alias.status '!./evil'");
    project.check("git log", None);
    project.check("git lfs ls-files", Some("alias.lfs"));
}

#[test]
fn a_partial_clone_fetches_with_what_its_settings_name() {
    let project = Project::new(REPOSITORY);
    project.sh("git config remote.origin.promisor true");
    project.check("git log -p", None);
    project.sh("git config core.sshCommand ./evil");
    project.check("git log -p", Some("core.sshcommand"));
    // Each in a file of its own.
    let project = Project::new(REPOSITORY);
    project.sh("git config core.sshCommand ./evil && git config extensions.worktreeConfig true");
    project.check("git log -p", None);
    project.sh("git config --worktree remote.origin.promisor true");
    project.check("git log -p", Some("core.sshcommand"));
}

#[test]
fn what_variables_override_counts_where_they_are_taken_away() {
    let project = Project::new(REPOSITORY);
    project.check("env -i PATH=/bin git status", None);
    project.sh("git config core.hooksPath ./evil");
    project.check("git status", None);
    project.check("env -u LANG git status", None);
    for command in [
        "env -i PATH=/bin git status",
        "env -u GIT_CONFIG_COUNT git status",
        "env -u \"$x\" git status",
        "exec -c git status",
        "nice env - git status",
    ] {
        project.check(command, Some("core.hookspath"));
    }
    project.check("env -i ls; git status", None);
}

#[test]
fn changes_that_are_held_back_are_looked_at_too() {
    let project = Project::new(REPOSITORY);
    let layer = Project::new("mkdir -p sub/.git");
    let view = View {
        layers: vec![(project.root(), layer.root())],
        ..project.view()
    };
    let diff = |dir: &str| why(&format!("git -C {dir} diff"), &project.root(), &view);
    assert_eq!(diff("sub"), None);
    fs::write(
        layer.root().join("sub/.git/config"),
        "[diff \"x\"] textconv = ./evil",
    )
    .unwrap();
    assert!(diff("sub").is_some());
    assert_eq!(diff("."), None);
    symlink("sub", layer.root().join("new")).unwrap();
    assert!(diff("new").is_some());
}

#[test]
fn the_private_home_is_looked_at() {
    let project = Project::new(REPOSITORY);
    let home = Project::new("printf '[user]\\nname = a\\n' >.gitconfig");
    let view = View {
        homes: vec![home.root()],
        ..project.view()
    };
    let diff = || why("git diff", &project.root(), &view);
    assert_eq!(diff(), None);
    home.sh("printf '[diff]\\nexternal = ./evil\\n' >>.gitconfig");
    assert!(diff().is_some());
}

#[test]
fn mercurial_obeys_addresses_and_names_only() {
    for (hgrc, harmless) in [
        (
            "[paths]\ndefault = https://example.com/x\n\n[ui]\nusername = A <a@example.com>\n",
            true,
        ),
        ("# nothing\n", true),
        ("[extensions]\nx = ./evil.py\n", false),
        ("[hooks]\npost-status = ./evil\n", false),
        ("[alias]\nstatus = !./evil\n", false),
        ("[ui]\nusername = a\npager = ./evil\n", false),
        ("%include ../evil\n", false),
        ("[paths]\n%include ../evil\n", false),
        ("[paths]\na = b\r[extensions]\rx = ./evil.py\n", false),
        ("[paths]\r\na = b\r\n", true),
        ("x = 1\n", false),
    ] {
        let project = Project::new("mkdir -p .hg sub");
        fs::write(project.root().join(".hg/hgrc"), hgrc).unwrap();
        for command in ["hg status", "cd sub && hg log", "hg --cwd sub diff"] {
            assert_eq!(
                project.why(command).is_none(),
                harmless,
                "{hgrc}: {command}"
            );
        }
    }
}

#[test]
fn a_compiler_of_the_project_is_not_run_unasked() {
    for (name, text, harmless) in [
        (
            "rust-toolchain.toml",
            "[toolchain]\nchannel = \"1.80\"\n",
            true,
        ),
        (
            "rust-toolchain.toml",
            "# a path\n[toolchain]\nchannel = \"nightly\"",
            true,
        ),
        ("rust-toolchain", "stable\n", true),
        ("rust-toolchain.toml", "[toolchain]\npath = \"tc\"\n", false),
        (
            "rust-toolchain.toml",
            "toolchain = { \"p\\u0061th\" = 'tc' }",
            false,
        ),
        ("rust-toolchain", "[toolchain]\npath = \"tc\"\n", false),
        ("rust-toolchain", "/w/tc\n", false),
    ] {
        let project = Project::new("mkdir sub");
        fs::write(project.root().join(name), text).unwrap();
        for command in [
            "cargo --version",
            "cd sub && rustc -vV",
            "cargo metadata --no-deps",
        ] {
            assert_eq!(
                project.why(command).is_none(),
                harmless,
                "{text}: {command}"
            );
        }
    }
}
