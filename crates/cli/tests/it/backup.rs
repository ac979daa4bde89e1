//! What is on record can be copied while everything goes on, and put back
//! whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::caller::{Caller, add};
use crate::support::{Done, Home, eventually, is_alive, skip};

/// A server's record with some output, and a backup of it.
struct Kept {
    home: Home,
    said: String,
    backup: PathBuf,
}

impl Kept {
    fn new() -> Self {
        let home = Home::new();
        let server = home.serve(&[]);
        let (_, run) = home.ask("seq 1 5000", Value::Null);
        let said = run["command_id"].as_str().unwrap().to_owned();
        let backup = home.dir().join("backup");
        made(&home, &backup);
        assert_eq!(server.terminate(), Some(0));
        fs::rename(home.state(), home.dir().join("lost")).unwrap();
        Self { home, said, backup }
    }

    /// A copy of the backup, to be changed.
    fn copy(&self, name: &str) -> PathBuf {
        let to = self.home.dir().join(name);
        let done = std::process::Command::new("cp")
            .arg("-a")
            .args([&self.backup, &to])
            .status();
        assert!(done.unwrap().success());
        to
    }

    fn restore(&self, from: &Path) -> Done {
        self.home.call(&["restore", from.to_str().unwrap()])
    }
}

#[track_caller]
fn made(home: &Home, to: &Path) -> Value {
    let done = home.call(&["backup", "--json", to.to_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    serde_json::from_str(&done.out).unwrap()
}

fn sha256(path: &Path) -> String {
    let digest = Sha256::digest(fs::read(path).unwrap());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![];
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(files(&entry.path())),
            false => all.push(entry.path()),
        }
    }
    all.sort();
    all
}

/// What there is in the state directory beside the lock.
fn there(home: &Home) -> Vec<String> {
    let names = fs::read_dir(home.state()).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name != "lock").collect()
}

#[test]
fn a_backup_is_put_back_with_output_people_and_a_whole_audit() {
    let home = Home::new();
    let server = home.serve(&[]);
    let (_, run) = home.ask("seq 1 5000; echo bad >&2", Value::Null);
    let id = run["command_id"].as_str().unwrap();
    let output = home.output(id);
    let token = add(&home, "coder", "agent", Value::Null);
    let to = home.dir().join("backup");
    let view = made(&home, &to);
    assert_eq!(view["sha256"], sha256(&to.join("manifest.json")));
    let verified = home.call(&["backup", "verify", to.to_str().unwrap()]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let (_, log) = home.api("GET", "/audit?kind=backup.made", &Value::Null);
    assert_eq!(
        log["entries"][0]["detail"]["sha256"], view["sha256"],
        "{log}"
    );
    // The secret of a token is in no file of it.
    for file in files(&to) {
        let bytes = fs::read(&file).unwrap();
        let found = bytes
            .windows(token.len())
            .any(|part| part == token.as_bytes());
        assert!(!found, "{}", file.display());
    }
    assert_eq!(server.terminate(), Some(0));

    let refused = home.call(&["restore", to.to_str().unwrap()]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("is not empty"), "{refused:?}");
    assert!(refused.err.contains("hint: stop the server"), "{refused:?}");
    fs::rename(home.state(), home.dir().join("lost")).unwrap();
    let hash = view["sha256"].as_str().unwrap();
    let done = home.call(&["restore", to.to_str().unwrap(), "--sha256", hash]);
    assert_eq!(done.code, Some(0), "{done:?}");
    home.assert_audit_verifies();
    let _server = home.serve(&[]);
    assert_eq!(home.output(id), output);
    assert_eq!(home.get(id)["state"], "succeeded");
    let coder = Caller::owner(&home).bearing(&token);
    assert_eq!(coder.get("/me").expect(200)["principal_id"], "coder");
    let (_, log) = home.api("GET", "/audit?kind=store.restored", &Value::Null);
    assert_eq!(
        log["entries"][0]["detail"]["backup"]["sha256"], hash,
        "{log}"
    );
    home.assert_audit_verifies();
}

#[test]
fn what_was_unfinished_is_settled_and_the_original_goes_on() {
    let home = Home::new();
    let _server = home.serve_with("preset = \"approval\"\n");
    let asked = home.wish("touch asked", json!({ "wait_ms": 0 }));
    let (_, waiting) = home.api("POST", "/commands", &asked);
    assert_eq!(waiting["state"], "waiting", "{waiting}");
    let running = home.start(
        "echo begun; until [ -e go ]; do sleep 0.02; done; echo over",
        json!({ "description": "wait" }),
    );
    let (_, run) = home.api("GET", "/approvals", &Value::Null);
    for approval in run["approvals"].as_array().unwrap() {
        if approval["command"].as_str().unwrap().contains("begun") {
            let id = approval["approval_id"].as_str().unwrap();
            let yes = json!({ "kind": "approve_once",
                              "fingerprint": approval["fingerprint"] });
            let (status, told) = home.api("POST", &format!("/approvals/{id}/decision"), &yes);
            assert_eq!(status, 200, "{told}");
        }
    }
    eventually("it runs", || home.get(&running)["state"] == "running");
    eventually("it prints", || !home.output(&running).is_empty());
    let to = home.dir().join("backup");
    made(&home, &to);

    // A drill beside the original: whose run neither dies nor runs again.
    let drill = home.dir().join("drill");
    let in_drill = |args: &[&str]| {
        let args = [&["--state-dir", drill.to_str().unwrap()], args].concat();
        home.call(&args)
    };
    let done = in_drill(&["restore", to.to_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.out.contains("1 × run that was under way is lost"),
        "{done:?}"
    );
    assert!(
        done.out.contains("1 × run that waited is withdrawn"),
        "{done:?}"
    );
    let keeper = home.keeper(&running);
    for (id, state) in [
        (running.as_str(), "lost"),
        (waiting["command_id"].as_str().unwrap(), "withdrawn"),
    ] {
        let shown = in_drill(&["show", id, "--json"]);
        let run: Value = serde_json::from_str(&shown.out).unwrap_or_else(|_| panic!("{shown:?}"));
        assert_eq!(run["state"], state, "{run}");
        assert_eq!(run["reason"]["code"], "restored", "{run}");
    }
    let said = in_drill(&["output", &running]);
    assert!(said.out.contains("begun"), "{said:?}");
    assert_eq!(in_drill(&["audit", "verify"]).code, Some(0));
    assert_eq!(in_drill(&["serve", "--stop"]).code, Some(0));
    assert!(is_alive(keeper), "the original's run goes on");
    fs::write(home.base().join("go"), "").unwrap();
    assert_eq!(home.ended(&running)["stdout"], "begun\nover\n");
    assert!(!home.base().join("asked").exists());
}

#[test]
fn a_backup_that_was_changed_is_refused_and_said_to_be() {
    let kept = Kept::new();
    let output = |dir: &Path| {
        let all = files(&dir.join("files/runs"));
        let mut all = all
            .into_iter()
            .filter(|file| file.extension().is_some_and(|end| end == "out"));
        all.next().expect("output")
    };
    let rewrite = |path: PathBuf, old: &str, new: &str| {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(old), "{text}");
        fs::write(path, text.replacen(old, new, 1)).unwrap();
    };
    // Whoever changes the database with all hashes is given away by the chain.
    let forge = |dir: &Path| {
        let database = Connection::open(dir.join("weighlock.db")).unwrap();
        let changed = database.execute(
            "UPDATE audit SET body = replace(body, 'seq 1 5000', 'seq 1 5001')",
            [],
        );
        assert!(changed.unwrap() > 0);
        drop(database);
        let path = dir.join("manifest.json");
        let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let size = fs::metadata(dir.join("weighlock.db")).unwrap().len();
        manifest["database"] =
            json!({ "bytes": size, "sha256": sha256(&dir.join("weighlock.db")) });
        fs::write(&path, manifest.to_string()).unwrap();
    };
    // And a list that leads elsewhere is not followed.
    let lead = |dir: &Path| {
        let path = dir.join("files.jsonl");
        rewrite(path.clone(), "\"path\":\"runs", "\"path\":\"../../runs");
        let manifest_path = dir.join("manifest.json");
        let mut manifest: Value =
            serde_json::from_slice(&fs::read(&manifest_path).unwrap()).unwrap();
        let size = fs::metadata(&path).unwrap().len();
        manifest["list"] = json!({ "bytes": size, "sha256": sha256(&path) });
        fs::write(&manifest_path, manifest.to_string()).unwrap();
    };
    type Change<'a> = (&'a str, Box<dyn Fn(&Path) + 'a>, &'a str);
    let changes: Vec<Change<'_>> = vec![
        (
            "a byte of output",
            Box::new(|dir| fs::write(output(dir), "x").unwrap()),
            ".out was changed",
        ),
        (
            "no output",
            Box::new(|dir| fs::remove_file(output(dir)).unwrap()),
            ".out is missing",
        ),
        (
            "database",
            Box::new(|dir| fs::write(dir.join("weighlock.db"), "x").unwrap()),
            "weighlock.db was changed",
        ),
        (
            "head",
            Box::new(|dir| fs::remove_file(dir.join("audit.head")).unwrap()),
            "audit.head is missing",
        ),
        (
            "manifest",
            Box::new(|dir| fs::write(dir.join("manifest.json"), "{").unwrap()),
            "manifest.json",
        ),
        (
            "no manifest",
            Box::new(|dir| fs::remove_file(dir.join("manifest.json")).unwrap()),
            "is no backup",
        ),
        (
            "list",
            Box::new(|dir| rewrite(dir.join("files.jsonl"), "\"mode\":", "\"mode\": ")),
            "files.jsonl was changed",
        ),
        (
            "format",
            Box::new(|dir| rewrite(dir.join("manifest.json"), "\"format\": 1", "\"format\": 2")),
            "newer version",
        ),
        ("forged", Box::new(forge), "audit entry"),
        ("elsewhere", Box::new(lead), "belongs to no backup"),
    ];
    for (name, change, what) in changes {
        let dir = kept.copy("changed");
        change(&dir);
        let path = dir.to_str().unwrap();
        for args in [&["backup", "verify", path][..], &["restore", path]] {
            let done = kept.home.call(args);
            assert_eq!(done.code, Some(1), "{name}: {done:?}");
            assert!(done.err.contains(what), "{name}: {done:?}");
            assert!(done.err.contains("hint: "), "{name}: {done:?}");
        }
        assert_eq!(there(&kept.home), Vec::<String>::new(), "{name}");
        fs::remove_dir_all(dir).unwrap();
    }
    let other = "0".repeat(64);
    let done = kept
        .home
        .call(&["restore", kept.backup.to_str().unwrap(), "--sha256", &other]);
    assert!(
        done.code == Some(1) && done.err.contains("its hash is"),
        "{done:?}"
    );
    assert_eq!(kept.restore(&kept.backup).code, Some(0));
}

#[test]
fn a_restore_that_is_killed_has_put_back_all_or_nothing() {
    let kept = Kept::new();
    let mut killed = 0;
    for delay in 0..40 {
        let mut child = kept
            .home
            .weighlock(&["restore", kept.backup.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(2 * delay));
        child.kill().unwrap();
        let done = child.wait().unwrap();
        let decided = there(&kept.home).iter().any(|name| name != "restoring");
        if decided {
            let _server = kept.home.serve(&[]);
            assert_eq!(kept.home.get(&kept.said)["state"], "succeeded");
            assert_eq!(kept.home.output(&kept.said).len(), 23_893);
            kept.home.assert_audit_verifies();
        } else {
            assert!(!done.success());
            killed += 1;
        }
        let _ = fs::remove_dir_all(kept.home.state());
        if done.success() {
            break;
        }
    }
    assert!(killed > 0, "none was killed in time");
    // One that was killed while it put things in their place.
    assert_eq!(kept.restore(&kept.backup).code, Some(0));
    let there = kept.home.state().join("restored");
    fs::create_dir(&there).unwrap();
    for name in ["weighlock.db", "audit.head"] {
        fs::rename(kept.home.state().join(name), there.join(name)).unwrap();
    }
    let _server = kept.home.serve(&[]);
    assert_eq!(kept.home.output(&kept.said).len(), 23_893);
    assert!(!there.exists());
    kept.home.assert_audit_verifies();
}

#[test]
fn what_was_applied_can_be_undone_from_a_backup() {
    let home = Home::untouched();
    let server = home.serve_with("[effects]\nreview = \"none\"\n");
    fs::write(home.base().join("file"), "before\n").unwrap();
    let (_, run) = home.ask("echo after > file", Value::Null);
    if run["changes"]["state"] != "applied" {
        skip("this machine shows no copies");
        return;
    }
    let to = home.dir().join("backup");
    made(&home, &to);
    assert_eq!(server.terminate(), Some(0));
    fs::rename(home.state(), home.dir().join("lost")).unwrap();
    let done = home.call(&["restore", to.to_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let _server = home.serve_with("[effects]\nreview = \"none\"\n");
    let id = run["command_id"].as_str().unwrap();
    let done = home.call(&["undo", id]);
    assert_eq!(home.lines("file"), ["before"], "{done:?}");
}

#[test]
fn a_full_disk_leaves_no_backup_and_costs_nothing() {
    let home = Home::new();
    let small = home.dir().join("small");
    fs::create_dir(&small).unwrap();
    let setup = format!("mount -t tmpfs -o size=1m small {}", small.display());
    let server = match home.try_serve_after(&setup) {
        Ok(server) => server,
        Err(done) if done.err.contains("Operation not permitted") => {
            skip("no mounts of its own");
            return;
        }
        Err(done) => panic!("{done:?}"),
    };
    home.ask("seq 1 500000", Value::Null);
    let (status, problem) = home.api("POST", "/backups", &json!({ "directory": small.join("b") }));
    assert_eq!(
        (status, &problem["code"]),
        (507, &json!("storage_full")),
        "{problem}"
    );
    let seen = PathBuf::from(format!(
        "/proc/{}/root{}",
        server.child.id(),
        small.display()
    ));
    assert_eq!(fs::read_dir(seen).unwrap().count(), 0);
    let (_, log) = home.api("GET", "/audit?kind=backup.made", &Value::Null);
    assert_eq!(log["entries"], json!([]));
    let (status, _) = home.api("POST", "/backups", &Value::Null);
    assert_eq!(status, 201, "the next one is made");
}

#[test]
fn only_who_may_chooses_where_and_never_where_commands_look() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let person = |name: &str, role: &str| add(&home, name, role, Value::Null);
    let (olga, boss) = (person("olga", "operator"), person("boss", "administrator"));
    let told = Caller::owner(&home)
        .bearing(&olga)
        .post("/backups", &json!({}));
    assert_eq!(told.expect(403)["code"], "not_allowed");
    let boss = Caller::owner(&home).bearing(&boss);
    let there = json!({ "directory": home.dir().join("b") });
    assert_eq!(
        boss.post("/backups", &there).expect(400)["code"],
        "bad_backup_place"
    );
    let own = boss.post("/backups", &json!({})).expect(201);
    let own = own["directory"].as_str().unwrap();
    assert!(
        Path::new(own).starts_with(home.state().canonicalize().unwrap()),
        "{own}"
    );
    for place in [
        home.base().join("b"),
        home.dir().join("no/such"),
        home.base(),
        PathBuf::from("b"),
    ] {
        let (status, told) = home.api("POST", "/backups", &json!({ "directory": place }));
        assert_eq!(
            (status, &told["code"]),
            (400, &json!("bad_backup_place")),
            "{told}"
        );
    }
    assert_eq!(home.call(&["backup"]).code, Some(0));
}
