//! What others run outside the walls cannot be changed inside, or is told.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Home, eventually, skip};

/// Files that programs of the person run, or obey.
const RUN_BY_OTHERS: &[&str] = &[
    ".git/hooks/pre-commit",
    ".git/config",
    ".envrc",
    ".vscode/tasks.json",
    ".agents/terminal.json",
    ".github/workflows/ci.yml",
    "vendor/sub/.git/hooks/pre-commit",
    "vendor/sub/.git/config",
];

/// Ways to change a file, or what its name means.
const WAYS: &[&str] = &[
    "echo evil > $f",
    "echo evil >> $f",
    "echo evil > e; cp e $f",
    "echo evil > e; cp --remove-destination e $f",
    "echo evil > e; mv -f e $f",
    "echo evil > e; ln -f e $f",
    "echo evil > e; ln -sfn $PWD/e $f",
    "rm -f $f; echo evil > $f",
    "truncate -s 0 $f",
    "sed -i s/./evil/ $f",
    "chmod 777 $f",
    "touch -d 2001-01-01 $f",
    "ln $f alias; echo evil >> alias",
    "mv $f away; echo evil > $f",
    "mv $d gone; mkdir -p $d; echo evil > $f",
    "rm -rf $d; mkdir -p $d; echo evil > $f",
    "mkdir -p evil; echo evil > evil/$b; mv $d gone; ln -s $PWD/evil $d",
    "mv $t gone; mkdir -p $d; echo evil > $f",
    "cp -a $t copy; mv $t gone; mv copy $t; echo evil > $f",
    "mkdir -p x; mv $t x/; cp -a x/$t $t; echo evil > $f",
    "python3 -c 'import os,sys; os.rename(sys.argv[1], \"away\")' $t; mkdir -p $d; echo evil > $f",
];

fn git(dir: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .args([
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@x",
            "-c",
            "safe.directory=*",
        ])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// A repository with one in it, and everything that others run.
fn project(base: &Path) {
    let nested = base.join("vendor/sub");
    fs::create_dir_all(&nested).unwrap();
    for dir in [base, &nested] {
        git(dir, &["init", "-q"]);
        fs::create_dir_all(dir.join(".git/hooks")).unwrap();
        fs::write(dir.join(".git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();
    }
    for file in RUN_BY_OTHERS {
        let file = base.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        if !file.exists() {
            fs::write(file, "{ \"commandBlacklist\": [\"sudo \"] }\n").unwrap();
        }
    }
    fs::write(base.join("README"), "hello\n").unwrap();
    git(
        base,
        &["add", "README", ".envrc", ".vscode", ".github", ".agents"],
    );
    git(base, &["commit", "-qm", "first"]);
}

/// Everything there is, and what it is.
fn tree(dir: &Path) -> BTreeMap<String, (u32, String)> {
    let mut found = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(at) = todo.pop() {
        for entry in fs::read_dir(at).unwrap().flatten() {
            let meta = entry.metadata().unwrap();
            let what = if meta.is_file() {
                fs::read_to_string(entry.path()).unwrap_or_default()
            } else {
                String::new()
            };
            if meta.is_dir() {
                todo.push(entry.path());
            }
            let name = entry
                .path()
                .strip_prefix(dir)
                .unwrap()
                .display()
                .to_string();
            found.insert(name, (meta.mode(), what));
        }
    }
    found
}

/// Says whether a warning names a path or something above it.
fn is_told(run: &Value, path: &str) -> bool {
    let warnings = run["warnings"].as_array().unwrap();
    let told = |part: &Path| {
        let part = part.to_str().unwrap();
        !part.is_empty()
            && warnings
                .iter()
                .any(|text| text.as_str().unwrap().contains(part))
    };
    Path::new(path).ancestors().any(told)
}

#[test]
fn what_others_run_is_not_changed_or_it_is_told() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let model = tempfile::tempdir().unwrap();
    project(model.path());
    let mut kept = 0;
    for file in RUN_BY_OTHERS {
        // All at once first: what is as it was afterwards withstood each.
        let all: Vec<String> = WAYS.iter().map(|way| format!("({way})")).collect();
        if attack(&home, model.path(), file, &all.join("; ")) {
            kept += 1;
            continue;
        }
        for way in WAYS {
            attack(&home, model.path(), file, way);
        }
    }
    assert!(kept > RUN_BY_OTHERS.len() / 2, "{kept}");
}

/// Tries to change a file, and returns whether it stayed what it was. If it
/// did not, that must be told.
fn attack(home: &Home, model: &Path, file: &str, way: &str) -> bool {
    let base = home.base();
    let copied = Command::new("sh")
        .args(["-c", "rm -rf ./* ./.[a-z]*; cp -a \"$0\"/. ."])
        .arg(model)
        .current_dir(&base)
        .status();
    assert!(copied.unwrap().success());
    let before = fs::read_to_string(base.join(file)).unwrap();
    let mode = fs::metadata(base.join(file)).unwrap().mode();
    let names =
        format!("f={file}; d=$(dirname $f); b=$(basename $f); t=${{f%%/*}}; [ $d != . ] || d=$f");
    let (_, run) = home.ask(&format!("{names}; {way}; true"), json!({}));
    assert_eq!(run["state"], "succeeded", "{file}: {way}: {run}");
    let now = fs::symlink_metadata(base.join(file));
    let gone = now.is_err();
    let same = now
        .is_ok_and(|now| now.is_file() && now.mode() == mode && now.mtime() > 1_000_000_000)
        && fs::read_to_string(base.join(file)).is_ok_and(|now| now == before);
    assert!(same || gone || is_told(&run, file), "{file}: {way}: {run}");
    same
}

#[test]
fn nothing_is_left_behind_and_git_finds_nothing_changed() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let base = home.base();
    project(&base);
    let status = git(&base, &["status", "--porcelain"]);
    let before = tree(&base);
    let id = home.start("touch /tmp/x; sleep 1.5", json!({}));
    eventually("it runs", || !home.processes().is_empty());
    assert_eq!(tree(&base), before, "while it runs");
    home.ended(&id);
    assert_eq!(tree(&base), before, "after it ran");
    // An empty directory, too: no mount points for what is not there.
    let empty = base.join("empty");
    fs::create_dir(&empty).unwrap();
    let id = home.start("sleep 1", json!({ "cwd": empty }));
    eventually("it runs", || !home.processes().is_empty());
    assert_eq!(tree(&empty).len(), 0);
    home.ended(&id);
    fs::remove_dir(&empty).unwrap();
    let (_, run) = home.ask(
        "git status --porcelain; mv .git x; rm -rf .git/hooks .git/config .envrc .vscode .github .agents; \
         for i in .git/hooks/pre-commit .git/config; do echo evil > $i; done; git log --oneline | wc -l",
        json!({}),
    );
    let said = run["stdout"].as_str().unwrap();
    assert!(said.ends_with("1\n"), "git works inside: {run}");
    git(&base, &["checkout", "-q", "--", "."]);
    assert_eq!(git(&base, &["status", "--porcelain"]), status);
    assert!(
        !fs::read_to_string(base.join(".git/config"))
            .unwrap()
            .contains("evil")
    );
}

#[test]
fn git_works_inside() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let base = home.base();
    project(&base);
    fs::set_permissions(
        base.join(".git/hooks/pre-commit"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let (_, run) = home.ask(
        "git config --get remote.x.url; echo more > new && git add new && \
         git -c user.name=a -c user.email=a@a commit -qm second && git checkout -q -b other && \
         git log --oneline | wc -l",
        json!({}),
    );
    assert_eq!(run["stdout"], "2\n", "{run}");
    assert_eq!(git(&base, &["log", "--oneline"]).lines().count(), 2);
}

#[test]
fn what_others_would_run_is_told_when_it_is_new() {
    let home = Home::new();
    let _server = home.serve(&[]);
    for (make, path) in [
        (
            "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
            ".git",
        ),
        ("git init -q; echo evil > .git/hooks/pre-commit", ".git"),
        ("mkdir x; git init -q x; mv x/.git .git", ".git"),
        ("echo gitdir: /x > .git", ".git"),
        ("ln -s x .git", ".git"),
        ("git init -q --bare .", "HEAD"),
        ("echo evil > .envrc", ".envrc"),
        ("ln -s /tmp/x .envrc", ".envrc"),
        (
            "mkdir .vscode; echo evil > .vscode/tasks.json",
            ".vscode/tasks.json",
        ),
        (
            "mkdir x; echo evil > x/tasks.json; mv x .vscode",
            ".vscode/tasks.json",
        ),
        (
            "mkdir -p .github/workflows; echo evil > .github/workflows/x.yml",
            ".github/workflows",
        ),
        (
            "mkdir .claude; echo evil > .claude/settings.json",
            ".claude",
        ),
        ("echo evil > .bashrc", ".bashrc"),
        ("(sleep 0.05; echo evil > .envrc) & sleep 0.1", ".envrc"),
    ] {
        let (_, run) = home.ask(make, json!({}));
        assert!(is_told(&run, path), "{make}: {run}");
        for entry in fs::read_dir(home.base()).unwrap().flatten() {
            let path = entry.path();
            if fs::remove_file(&path).is_err() {
                fs::remove_dir_all(path).unwrap();
            }
        }
    }
}

#[test]
fn a_new_repository_further_down_is_told_and_protected_from_then_on() {
    let home = Home::new();
    let _server = home.serve(&[]);
    home.ask("true", json!({}));
    let make = "mkdir -p lib/a; git init -q lib/a; echo evil > lib/a/.git/hooks/post-checkout";
    home.ask(make, json!({}));
    eventually("it is told", || {
        is_told(&home.ask("true", json!({})).1, "lib/a")
    });
    let (_, run) = home.ask("echo evil > lib/a/.git/hooks/post-commit", json!({}));
    assert_eq!(run["state"], "failed", "{run}");
}

#[test]
fn a_forged_pointer_opens_nobodys_repository() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let other = tempfile::tempdir().unwrap();
    let victim = other.path().canonicalize().unwrap();
    git(&victim, &["init", "-q"]);
    fs::create_dir_all(victim.join(".git/worktrees/w")).unwrap();
    fs::write(victim.join(".git/description"), "secret").unwrap();
    let (victim, base) = (victim.display(), home.base());
    for forge in [
        format!("echo gitdir: {victim}/.git > .git"),
        format!("echo gitdir: {victim}/.git/worktrees/w > .git"),
        format!("ln -s {victim}/.git .git"),
        format!(
            "mkdir -p f/worktrees/w; echo $PWD/.git > f/worktrees/w/gitdir; \
             echo {victim}/.git > f/worktrees/w/commondir; echo gitdir: $PWD/f/worktrees/w > .git"
        ),
        format!(
            "mkdir -p $HOME/f/worktrees/w; echo $PWD/.git > $HOME/f/worktrees/w/gitdir; \
             echo {victim}/.git > $HOME/f/worktrees/w/commondir; \
             echo gitdir: $HOME/f/worktrees/w > .git"
        ),
    ] {
        home.ask(&forge, json!({}));
        let reach = format!("cat {victim}/.git/description; echo x > {victim}/.git/hooks/x");
        let (_, run) = home.ask(&reach, json!({}));
        assert_eq!(run["stdout"], "", "{forge}: {run}");
        assert!(!other.path().join(".git/hooks/x").exists(), "{forge}");
        fs::remove_file(base.join(".git")).unwrap();
    }
}

/// A list that forbids nothing.
const NOTHING: &str = r#"{\"commandBlacklist\":[\"nothing-at-all\"]}"#;

fn is_blocked(home: &Home) -> bool {
    let (_, run) = home.ask("sudo ls", json!({}));
    run["state"] == "blocked"
}

#[test]
fn a_blacklist_made_inside_does_not_count() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let make = format!("mkdir -p .agents; echo \"{NOTHING}\" > .agents/terminal.json");
    let elsewhere = format!("mkdir -p mine; echo \"{NOTHING}\" > mine/terminal.json");
    for make in [
        make.clone(),
        format!("{elsewhere}; mv mine .agents"),
        format!("{elsewhere}; ln -s mine .agents"),
        format!("mkdir .agents; {elsewhere}; ln -s ../mine/terminal.json .agents"),
        format!("({make}; rm -rf x) & wait"),
    ] {
        assert!(is_blocked(&home), "to begin with");
        home.ask(&make, json!({}));
        assert!(is_blocked(&home), "{make}");
        let _ = fs::remove_file(home.base().join(".agents"));
        let _ = fs::remove_dir_all(home.base().join(".agents"));
        let _ = fs::remove_dir_all(home.base().join("mine"));
    }
    // The directory was there before.
    fs::create_dir(home.base().join(".agents")).unwrap();
    home.ask(&make, json!({}));
    assert!(is_blocked(&home));
}

#[test]
fn a_blacklist_made_inside_does_not_count_while_its_run_goes_on() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let make = format!("mkdir .agents; echo \"{NOTHING}\" > .agents/terminal.json; sleep 20");
    let id = home.start(&make, json!({}));
    eventually("it is made", || {
        home.base().join(".agents/terminal.json").exists()
    });
    assert!(is_blocked(&home), "while it runs");
    home.api("POST", &format!("/commands/{id}/stop"), &json!({}));
    home.closed(&id);
    assert!(is_blocked(&home), "after it was stopped");
}

#[test]
fn a_blacklist_that_a_person_saves_meanwhile_counts() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let id = home.start(
        "while ! test -e go; do sleep 0.01; done; rm -rf .agents",
        json!({}),
    );
    assert_eq!(home.call(&["blacklist", "remove", "sudo "]).code, Some(0));
    assert!(!is_blocked(&home), "while it runs");
    fs::write(home.base().join("go"), "").unwrap();
    home.closed(&id);
    assert!(
        is_blocked(&home),
        "a list that is gone means the built-in one"
    );
    // And by hand, once nothing runs.
    fs::create_dir_all(home.base().join(".agents")).unwrap();
    let text = NOTHING.replace('\\', "");
    fs::write(home.base().join(".agents/terminal.json"), text).unwrap();
    assert!(!is_blocked(&home), "by hand");
}

#[test]
fn a_blacklist_cannot_be_changed_from_a_wider_sandbox() {
    let home = Home::new();
    let outer = home.base().join("outer");
    let base = outer.join("a/b");
    fs::create_dir_all(base.join(".agents")).unwrap();
    let rules = base.join(".agents/terminal.json");
    fs::write(&rules, r#"{"commandBlacklist":["sudo "]}"#).unwrap();
    let config = home.config(&format!(
        "base = \"{}\"\n[sandbox.wide]\ndirectory = \"{}\"\n",
        base.display(),
        outer.display()
    ));
    let _server = home.serve(&["--config", &config]);
    for attack in [
        format!("echo \"{NOTHING}\" > a/b/.agents/terminal.json"),
        format!("mv a c; mkdir -p a/b/.agents; echo \"{NOTHING}\" > a/b/.agents/terminal.json"),
        format!("mv a/b c; mkdir -p a/b/.agents; echo \"{NOTHING}\" > a/b/.agents/terminal.json"),
        format!(
            "mv a/b/.agents c; mkdir -p a/b/.agents; echo \"{NOTHING}\" > a/b/.agents/terminal.json"
        ),
    ] {
        let body = json!({ "command": attack, "cwd": outer, "sandbox_id": "wide" });
        let (status, run) = home.api("POST", "/commands", &body);
        assert_eq!(status, 200, "{run}");
        let (_, run) = home.api("POST", "/commands", &json!({ "command": "sudo ls" }));
        assert_eq!(run["state"], "blocked", "{attack}: {run}");
    }
}

#[test]
fn a_blacklist_made_after_another_was_set_aside_does_not_count() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let file = home.base().join(".agents/terminal.json");
    let make = format!("mkdir .agents; echo \"{NOTHING}\" > .agents/terminal.json");
    let first = home.start(
        &format!("{make}; while ! test -e one; do sleep 0.01; done"),
        json!({}),
    );
    eventually("it is made", || file.exists());
    // It finds the first one's list there, which does not stay.
    let second = home.start(
        &format!("while ! test -e two; do sleep 0.01; done; {make}; sleep 1"),
        json!({}),
    );
    fs::write(home.base().join("one"), "").unwrap();
    home.closed(&first);
    assert!(is_blocked(&home), "after the first");
    fs::write(home.base().join("two"), "").unwrap();
    eventually("it is made again", || {
        file.exists() || home.get(&second)["open"] == false
    });
    assert!(is_blocked(&home), "while the second runs");
    home.closed(&second);
    assert!(is_blocked(&home), "after the second");
}

#[test]
fn a_blacklist_made_inside_does_not_count_after_a_crash() {
    let home = Home::new();
    let server = home.serve(&[]);
    let make = format!(
        "while ! test -e go; do sleep 0.01; done; mkdir .agents; \
         echo \"{NOTHING}\" > .agents/terminal.json"
    );
    let id = home.start(&make, json!({}));
    server.kill();
    fs::write(home.base().join("go"), "").unwrap();
    eventually("it is made", || {
        home.base().join(".agents/terminal.json").exists()
    });
    let _server = home.serve(&[]);
    home.closed(&id);
    assert!(is_blocked(&home));
}

#[test]
fn a_blacklist_made_inside_does_not_count_when_the_state_is_on_another_disk() {
    let Ok(disk) = tempfile::Builder::new().prefix("wl").tempdir_in("/dev/shm") else {
        return skip("no other file system to write to");
    };
    let home = Home::new();
    let state = home.state();
    fs::create_dir(disk.path().join("state")).unwrap();
    fs::set_permissions(disk.path().join("state"), fs::Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::symlink(disk.path().join("state"), &state).unwrap();
    let _server = home.serve(&[]);
    home.ask(
        &format!("mkdir .agents; echo \"{NOTHING}\" > .agents/terminal.json"),
        json!({}),
    );
    assert!(is_blocked(&home));
}

#[test]
fn a_blacklist_is_saved_nowhere_else() {
    let home = Home::new();
    let server = home.serve(&[]);
    let other = tempfile::tempdir().unwrap();
    let victim = other.path().canonicalize().unwrap().join("victim");
    fs::write(&victim, "precious").unwrap();
    let (pid, target) = (server.child.id(), victim.display());
    // As a file to be written, as the list itself, and as its directory.
    for plant in [
        format!(
            "mkdir .agents; ln -s {target} .agents/.terminal.json.{pid}; ln -s {target} .agents/terminal.json"
        ),
        format!("ln -s {} .agents", other.path().display()),
    ] {
        let id = home.start(&format!("{plant}; echo planted; sleep 60"), json!({}));
        eventually("it is planted", || home.output(&id).ends_with(b"planted\n"));
        let list = json!({ "commandBlacklist": ["$(touch pwned)"] });
        let (status, answer) = home.api("PUT", "/blacklist", &list);
        assert_eq!(status, 200, "{answer}");
        assert_eq!(home.call(&["blacklist", "reset"]).code, Some(0));
        assert_eq!(home.call(&["stop", &id]).code, Some(0));
        let left: Vec<_> = fs::read_dir(other.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{plant}");
        let _ = fs::remove_dir_all(home.base().join(".agents"));
        let _ = fs::remove_file(home.base().join(".agents"));
    }
}

#[test]
fn a_repository_whose_name_is_not_text_harms_nobody() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let make = "d=$(printf 'r\\377'); mkdir -p \"$d/.git/hooks\" \"$d/.git/objects\" \"$d/.git/refs\"; \
                echo 'ref: refs/heads/x' > \"$d/.git/HEAD\"; touch \"$d/.git/config\"";
    assert_eq!(home.ask(make, json!({})).0, 200);
    eventually("it is told", || {
        is_told(&home.ask("true", json!({})).1, "not text")
    });
}
