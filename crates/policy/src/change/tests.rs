use super::*;
use crate::{Layer, Preset, Settings};
use ChangeKind::{Created, Deleted, Link, Mode, Modified, Renamed, Times};
use std::sync::Arc;

#[track_caller]
fn check(preset: Preset, path: &str, kind: ChangeKind, expected: &str) {
    let rules = Rules::base(&[preset], &Settings::default());
    let change = Change::new(path.to_owned(), kind);
    let ChangesJudgement { verdict, reasons } = judge_changes(&rules, &[change], false);
    let said = match reasons.first() {
        Some(reason) => format!("{verdict:?} {}", reason.rule).to_lowercase(),
        None => format!("{verdict:?}").to_lowercase(),
    };
    assert_eq!(said, expected, "{path}");
}

#[test]
fn strict_asks_for_everything_but_build_output() {
    check(Preset::Strict, "src/main.rs", Modified, "ask default");
    check(Preset::Strict, "notes.txt", Created, "ask default");
    check(Preset::Strict, "target/debug/app", Created, "auto");
    check(Preset::Strict, "crates/a/target/x", Deleted, "auto");
    check(Preset::Strict, "node_modules/a/index.js", Modified, "auto");
    check(Preset::Strict, "a/__pycache__/b.pyc", Created, "auto");
}

#[test]
fn build_output_is_not_what_version_control_keeps() {
    for path in [
        ".git/target/x",
        ".git/refs/heads/target/x",
        "sub/.git/node_modules/x",
        ".git/objects/x.o",
        ".GIT/target/x",
        ".git/.cache/x",
        ".hg/store/x.pyc",
        ".jj/target/x",
        "~/project/.git/target/x",
    ] {
        check(Preset::Strict, path, Created, "ask default");
    }
    for path in ["target/p/.git/index", "~/.cargo/git/checkouts/p/.git/HEAD"] {
        check(Preset::Strict, path, Modified, "auto");
    }
    // What a preset says about `.git` itself holds there.
    check(Preset::Guarded, ".git/target/x", Created, "auto");
    check(Preset::Guarded, ".git/refs/heads/target/x", Deleted, "auto");
    check(Preset::Guarded, ".git/target/x", Deleted, "ask default");
}

#[test]
fn what_tools_load_by_themselves_is_asked_about() {
    for path in [
        "rust-toolchain",
        "sub/rust-toolchain.toml",
        "tools/bazel",
        ".bazelrc",
        "user.bazelrc",
        ".jvmopts",
        ".sbtopts",
        "bunfig.toml",
        ".rvmrc",
        "shell.nix",
        "flake.nix",
        ".mvn/wrapper/maven-wrapper.properties",
        ".mvn/jvm.config",
        ".yarnrc.yml",
        ".yarn/sdks/typescript/bin/tsc",
        ".hg/hgrc",
        ".npmrc",
        "pnpm-workspace.yaml",
        "gradle/wrapper/gradle-wrapper.jar",
        "global.json",
        ".helix/languages.toml",
        "rust-analyzer.toml",
        ".bsp/sbt.json",
        "ansible.cfg",
        "~/.gradle/init.d/x.gradle",
        "~/.kube/config",
    ] {
        check(Preset::Guarded, path, Modified, "ask runs-by-itself");
    }
    for path in [".Renviron", ".RData", ".octaverc", ".perldb", ".iex.exs"] {
        check(Preset::Guarded, path, Created, "ask startup-files");
    }
    for path in [
        "default.nix",
        "flake.lock",
        ".node-version",
        ".nvmrc",
        "tools/bazel.md",
        "package.json",
        "Cargo.toml",
        "build.gradle",
        "conftest.py",
        "src/toolchain/rust-toolchain.rs",
    ] {
        check(Preset::Guarded, path, Modified, "auto");
    }
}

#[test]
fn guarded_applies_creations_and_edits() {
    check(Preset::Guarded, "src/main.rs", Modified, "auto");
    check(Preset::Guarded, "src/new.rs", Created, "auto");
    check(Preset::Guarded, "src/main.rs", Deleted, "ask default");
    check(Preset::Guarded, "src/main.rs", Renamed, "ask default");
    check(Preset::Guarded, "run.sh", Mode, "ask default");
    check(Preset::Guarded, "run.sh", Link, "ask default");
    check(Preset::Guarded, "src/main.rs", Times, "auto");
    check(Preset::Guarded, ".git/config", Times, "auto");
    check(Preset::Guarded, "~/.cache/pip/x", Created, "auto");
    check(Preset::Guarded, "/srv/other/x", Created, "ask outside");
}

#[test]
fn what_makes_git_run_something_is_asked_about_however_it_is_written() {
    for path in [
        ".git/commondir",
        "sub/.git/worktrees/a/gitdir",
        ".GIT/hooks/pre-commit",
        ".pnpmfile.cjs",
    ] {
        check(Preset::Guarded, path, Created, "ask runs-by-itself");
    }
    check(Preset::Guarded, "bare/HEAD", Created, "ask repository");
    check(
        Preset::Strict,
        "target/bare/HEAD",
        Created,
        "ask repository",
    );
    check(Preset::Guarded, ".git/HEAD", Modified, "auto");
    check(
        Preset::Guarded,
        "sub/.git/refs/remotes/o/HEAD",
        Created,
        "auto",
    );
}

#[test]
fn what_has_other_names_never_changes_unasked() {
    let rules = Rules::base(&[Preset::Strict], &Settings::default());
    let change = Change {
        shared: true,
        ..Change::new("target/x", Modified)
    };
    for allowed in [false, true] {
        let judged = judge_changes(&rules, std::slice::from_ref(&change), allowed);
        assert_eq!(judged.verdict, Verdict::Ask);
        assert_eq!(judged.reasons[0].rule, "other-names");
    }
}

#[test]
fn what_is_emptied_counts_as_deleted() {
    let rules = Rules::base(&[Preset::Guarded], &Settings::default());
    let emptied = |count| -> Vec<Change> {
        let each = (0..count).map(|n| Change {
            emptied: true,
            ..Change::new(format!("f{n}"), Modified)
        });
        each.collect()
    };
    let judge = |count| judge_changes(&rules, &emptied(count), true).verdict;
    assert_eq!((judge(100), judge(101)), (Verdict::Auto, Verdict::Ask));
}

#[test]
fn guarded_lets_git_put_away_what_it_is_done_with() {
    check(Preset::Guarded, ".git/refs/heads/topic", Deleted, "auto");
    check(Preset::Guarded, ".git/logs/refs/stash", Deleted, "auto");
    check(Preset::Guarded, "sub/.git/MERGE_HEAD", Deleted, "auto");
    check(
        Preset::Guarded,
        ".git/objects/ab/cd",
        Deleted,
        "ask default",
    );
    check(Preset::Guarded, ".git/HEAD", Deleted, "ask default");
    check(
        Preset::Guarded,
        ".git/hooks/x",
        Deleted,
        "ask runs-by-itself",
    );
    check(
        Preset::Strict,
        ".git/refs/heads/topic",
        Deleted,
        "ask default",
    );
}

#[test]
fn what_a_person_allowed_beforehand_changes_what_it_likes_but_for_floors() {
    let rules = Rules::base(&[Preset::Strict], &Settings::default());
    for (path, expected) in [
        ("src/main.rs", Verdict::Auto),
        (".git/hooks/pre-commit", Verdict::Ask),
        ("/srv/other/x", Verdict::Ask),
    ] {
        let change = Change::new(path, Modified);
        let judged = judge_changes(&rules, &[change], true);
        assert_eq!(judged.verdict, expected, "{path}");
    }
}

#[test]
fn what_other_programs_run_is_always_asked() {
    for preset in [
        Preset::Strict,
        Preset::Guarded,
        Preset::Bash,
        Preset::Approval,
    ] {
        for path in [
            ".git/hooks/pre-commit",
            ".git/config",
            "sub/.git/config",
            ".git/modules/x/hooks/post-checkout",
            ".gitmodules",
            ".envrc",
            ".vscode/tasks.json",
            ".idea/runConfigurations/x.xml",
            ".claude/settings.json",
            ".mcp.json",
            "~/.bashrc",
            "/home/ana/.zshrc",
            "~/.profile",
            ".github/workflows/ci.yml",
            ".gitlab-ci.yml",
            "node_modules/.git/hooks/x",
        ] {
            let expected =
                match path.contains("rc") && !path.contains("envrc") || path.contains(".profile") {
                    true => "ask startup-files",
                    false => "ask runs-by-itself",
                };
            check(preset, path, Modified, expected);
        }
    }
}

#[test]
fn roots_and_many_files_are_never_deleted_unasked() {
    for preset in [Preset::Guarded, Preset::Bash, Preset::Blacklist] {
        for path in [".", "", "~", "/", "./"] {
            check(preset, path, Deleted, "ask root");
        }
        let rules = Rules::base(&[preset], &Settings::default());
        let deleted = |count| {
            let changes: Vec<Change> = (0..count)
                .map(|n| Change::new(format!("target/{n}"), Deleted))
                .collect();
            judge_changes(&rules, &changes, true)
        };
        assert_eq!(deleted(100).verdict, Verdict::Auto);
        let ChangesJudgement { verdict, reasons } = deleted(101);
        assert_eq!(verdict, Verdict::Ask);
        assert_eq!(
            reasons[0].text,
            "101 files would be deleted; more than 100 are never deleted unasked"
        );
    }
}

#[test]
fn the_other_presets_apply_the_rest() {
    check(Preset::Bash, "src/main.rs", Deleted, "auto");
    check(Preset::MultiUser, "src/main.rs", Modified, "auto");
    check(Preset::Approval, "src/main.rs", Modified, "ask default");
}

#[test]
fn lower_layers_only_tighten() {
    let mut rules = Rules::base(&[Preset::Guarded], &Settings::default());
    let load = |kind, text: &str| {
        let layer = Layer::load(kind, "t.toml", text, &|_| crate::Facts::default());
        Arc::new(layer.expect("valid"))
    };
    rules.add(load(
        LayerKind::Sandbox,
        "max_deletions = 1\n[[change]]\nreject = 'secrets/**'\nbecause = 'is not yours'",
    ));
    rules.add(load(
        LayerKind::Server,
        "max_deletions = 5000\n[[change]]\nauto = 'docs/**'",
    ));
    let one = |path: &str, kind| judge_changes(&rules, &[Change::new(path, kind)], false);
    assert_eq!(one("docs/a.md", Deleted).verdict, Verdict::Auto);
    let ChangesJudgement { verdict, reasons } = one("secrets/a", Created);
    assert_eq!(verdict, Verdict::Reject);
    assert_eq!(reasons[0].text, "`secrets/a` is not yours");
    let two = ["docs/a", "docs/b"].map(|path| Change::new(path, Deleted));
    assert_eq!(judge_changes(&rules, &two, false).verdict, Verdict::Ask);
}

#[test]
fn without_a_preset_everything_is_asked() {
    let change = Change::new("a", Created);
    assert_eq!(
        judge_changes(&Rules::default(), &[change], false).verdict,
        Verdict::Ask
    );
}

#[test]
fn reasons_are_told_once_for_each_rule() {
    let rules = Rules::base(&[Preset::Strict], &Settings::default());
    let changes = ["a", "b", ".envrc", "c"].map(|path| Change::new(path, Modified));
    let reasons = judge_changes(&rules, &changes, false).reasons;
    let texts: Vec<&str> = reasons.iter().map(|reason| reason.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "`a` changes (and 2 more)",
            "`.envrc` is run by other programs, outside the walls"
        ]
    );
}

/// The first example of [`CommitPermit`], where the field is visible: it fails
/// there because the field is private, and for no other reason.
#[test]
fn the_forged_commit_permit_of_the_example_names_a_real_field() {
    let mut permit = CommitPermit {
        hash: String::new(),
        person: None,
    };
    permit.hash = "abc".into();
    assert_eq!(permit.hash, "abc");
}
