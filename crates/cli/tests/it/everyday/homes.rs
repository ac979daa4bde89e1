//! What is seen of a person's home directory, and what becomes of it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{SYSTEM, check, desk};
use crate::support::Home;

/// Where people have programs, each with a `bin` or the like on PATH.
const TOOLS: &[&str] = &[
    "home/.nvm/versions/node/v20.1.0/bin",
    "home/.pyenv/shims",
    "home/.asdf/shims",
    "home/.cargo/bin",
    "home/.local/bin",
    "home/bin",
    "home/scripts",
    "home/.deno/bin",
    "home/go/bin",
    "elsewhere/tools/bin",
];

/// What lies beside them and is nobody's business.
const SECRETS: &[&str] = &[
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".netrc",
    ".bash_history",
    ".config/gh/hosts.yml",
    ".git-credentials",
    ".docker/config.json",
    ".cargo/credentials.toml",
    ".npmrc",
    ".gnupg/key",
    ".kube/config",
    ".config/gcloud/credentials.db",
    ".local/share/keyrings/login.keyring",
    ".mozilla/cookies",
    "other-project/.env",
    "notes.txt",
];

#[test]
fn programs_in_a_home_are_found_and_its_secrets_are_not() {
    let mut home = desk();
    let mut path = String::new();
    for (number, dir) in TOOLS.iter().enumerate() {
        home.put_program(
            &format!("{dir}/tool{number}"),
            "#!/bin/sh\necho \"runs $0\"\n",
        );
        path += &format!("{}:", home.around().join(dir).display());
    }
    home.set("PATH", path + SYSTEM);
    for secret in SECRETS {
        home.put(&format!("home/{secret}"), "s3cr3t\n");
    }
    let before = everything(&home.around().join("home"));
    for (number, dir) in TOOLS.iter().enumerate() {
        let tool = home.around().join(dir).join(format!("tool{number}"));
        let said = format!("runs {}", tool.display());
        check(&home, &[(&format!("tool{number}"), &said)]);
        let shut = format!("echo x 2> /dev/null > {} || echo shut", tool.display());
        check(&home, &[(&shut, "shut")]);
    }
    let all = SECRETS.join(" ");
    let look = format!("for f in {all}; do cat ~/$f; done 2> /dev/null; echo looked");
    check(
        &home,
        &[
            (&look, "looked"),
            (
                "grep -rs s3cr3t ~ /tmp /run /dev/shm /proc/*/environ; echo looked",
                "looked",
            ),
            (
                "for f in .bashrc .ssh/config new; do mkdir -p ~/.ssh; echo x > ~/$f; done; cat ~/new",
                "x",
            ),
        ],
    );
    assert_eq!(everything(&home.around().join("home")), before);
}

#[test]
fn the_private_home_is_kept_and_each_sandbox_has_its_own() {
    let home = desk();
    let here = home.around();
    for name in ["one", "two"] {
        fs::create_dir(here.join(name)).unwrap();
    }
    let (one, two) = (here.join("one"), here.join("two"));
    let settings =
        format!("[sandbox.one]\ndirectory = {one:?}\n[sandbox.two]\ndirectory = {two:?}\n");
    let server = home.serve_with(&settings);
    let before = everything(&here.join("home"));
    let run = |sandbox: &str, command: &str| {
        let done = home.run(&["-q", "--sandbox", sandbox], command);
        (done.out, done.code)
    };
    assert_eq!(
        run(
            "one",
            "mkdir -p ~/.cache/x; echo 1 > ~/.cache/x/y; echo t > /tmp/t"
        )
        .1,
        Some(0)
    );
    assert_eq!(
        run("one", "cat ~/.cache/x/y; ls -A /tmp | grep -cx t"),
        ("1\n0\n".into(), Some(1))
    );
    assert_eq!(run("two", "ls -A ~/.cache").0, "");
    server.kill();
    let _server = home.serve_with(&settings);
    assert_eq!(run("one", "cat ~/.cache/x/y").0, "1\n");
    assert_eq!(everything(&here.join("home")), before);
}

#[test]
fn in_the_home_directory_itself_there_is_nothing() {
    let home = desk();
    let own = home.around().join("home");
    home.put("home/secret", "s3cr3t");
    home.put("home/shop/src/x", "x");
    home.put("home/plain/y", "y");
    fs::create_dir(own.join("shop/.git")).unwrap();
    let run = |dir: &Path, command: &str| {
        let done = home
            .weighlock(&["run", "-q", "--", command])
            .current_dir(dir)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(done.stdout), text(done.stderr))
    };
    let (out, err) = run(&own, "pwd; ls; touch made");
    assert_eq!(out, format!("{}\n", own.display()));
    assert!(
        err.contains("warning") && err.contains("not shown"),
        "{err}"
    );
    // The repository, and else the directory.
    let (out, err) = run(
        &own.join("shop/src"),
        "pwd; ls; touch ../made; cat ~/secret ~/plain/y",
    );
    assert_eq!(out, format!("{}\nx\n", own.join("shop/src").display()));
    assert!(!err.contains("warning"), "{err}");
    let (out, _) = run(
        &own.join("plain"),
        "ls; touch made; cat ~/shop/src/x ../secret",
    );
    assert_eq!(out, "y\n");
    assert!(!own.join("made").exists());
    assert!(own.join("shop/made").exists() && own.join("plain/made").exists());
}

/// All that is below a directory, as `find` would tell it.
fn everything(dir: &Path) -> Vec<(PathBuf, u32, u64, i64, i64)> {
    let mut found = vec![];
    let mut left = vec![dir.to_owned()];
    while let Some(path) = left.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        found.push((
            path,
            meta.mode(),
            meta.size(),
            meta.mtime(),
            meta.mtime_nsec(),
        ));
    }
    found.sort();
    found
}

#[test]
fn nothing_is_left_in_a_project() {
    let home = desk();
    home.put("base/file", "x");
    let names = |home: &Home| -> Vec<PathBuf> {
        let all = everything(&home.base()).into_iter();
        all.map(|(path, ..)| path).collect()
    };
    let before = names(&home);
    check(&home, &[("ls -A", "file"), ("cat file", "x")]);
    // Also while one runs.
    let id = home.start("sleep 5", serde_json::json!({}));
    assert_eq!(names(&home), before);
    home.call(&["stop", &id]);
    assert_eq!(names(&home), before);
}

/// What a command writes beside its project would be in the private home: it
/// is refused, or said.
#[test]
fn nothing_is_left_beside_the_project_unseen() {
    let home = desk();
    home.put("home/work/shop/file", "");
    let project = home.around().join("home/work/shop");
    let project = project.to_str().unwrap();
    let _server = home.serve(&["--base", project]);
    let (_, run) = home.ask("touch ../x", serde_json::json!({ "cwd": project }));
    assert_eq!(run["state"], "failed", "{run}");
    assert!(run["stderr"].to_string().contains("Read-only"), "{run}");
    let write = serde_json::json!({ "cwd": project });
    let (_, run) = home.ask("touch ~/result ~/.cache-file file", write);
    assert_eq!(run["state"], "succeeded", "{run}");
    let said = run["warnings"].to_string();
    assert!(
        said.contains("~/result") && !said.contains(".cache"),
        "{run}"
    );
    assert!(!home.around().join("home/result").exists());
}
