//! What is on record can be copied while everything goes on, and put back
//! whole or not at all.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::caller::{Caller, add};
use crate::support::{Done, Home, eventually, is_alive, not_as_this_user, skip};

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
        rewrite(path, "\"path\":\"runs", "\"path\":\"../../runs");
        relist(dir, &[]);
    };
    let output_size = |dir: &Path, size: u64| {
        let text = fs::read_to_string(dir.join("files.jsonl")).unwrap();
        let line = text.lines().find(|line| line.contains(".out\""));
        let mut thing: Value = serde_json::from_str(line.unwrap()).unwrap();
        thing["bytes"] = json!(size);
        let text = text.replacen(line.unwrap(), &thing.to_string(), 1);
        fs::write(dir.join("files.jsonl"), text).unwrap();
        relist(dir, &[]);
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
            "is not a backup",
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
        (
            "settings",
            Box::new(|dir| fs::write(dir.join("settings/config.toml"), "x").unwrap()),
            "settings/config.toml was changed",
        ),
        (
            "a file more",
            Box::new(|dir| fs::write(dir.join("files/runs/more"), "x").unwrap()),
            "files/runs/more was added",
        ),
        (
            "settings more",
            Box::new(|dir| fs::write(dir.join("settings/rules.toml"), "x").unwrap()),
            "settings/rules.toml was added",
        ),
        (
            "a journal for SQLite",
            Box::new(|dir| fs::write(dir.join("weighlock.db-journal"), "x").unwrap()),
            "weighlock.db-journal was added",
        ),
        (
            "a pipe",
            Box::new(|dir| in_place_of(&output(dir), mkfifo)),
            ".out is no file",
        ),
        (
            "a link without an end",
            Box::new(|dir| in_place_of(&output(dir), |at| symlink("/dev/zero", at).unwrap())),
            ".out is no file",
        ),
        (
            "a pipe for a manifest",
            Box::new(|dir| in_place_of(&dir.join("manifest.json"), mkfifo)),
            "manifest.json is no file",
        ),
        (
            "a file without an end",
            Box::new(|dir| {
                let file = fs::File::options().write(true).open(output(dir)).unwrap();
                file.set_len(1 << 40).unwrap();
            }),
            ".out was changed",
        ),
        (
            "a size that is none",
            Box::new(|dir| output_size(dir, u64::MAX)),
            "was changed",
        ),
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

fn in_place_of(path: &Path, put: impl Fn(&Path)) {
    fs::remove_file(path).unwrap();
    put(path);
}

fn mkfifo(at: &Path) {
    let made = std::process::Command::new("mkfifo").arg(at).status();
    assert!(made.unwrap().success());
}

/// Adds to the list of a backup, and makes the manifest agree with it.
fn relist(dir: &Path, more: &[Value]) {
    let (list, manifest) = (dir.join("files.jsonl"), dir.join("manifest.json"));
    let mut text = fs::read_to_string(&list).unwrap();
    for thing in more {
        text.push_str(&format!("{thing}\n"));
    }
    fs::write(&list, text).unwrap();
    let mut told: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    for thing in more.iter().filter(|thing| thing["kind"] == "file") {
        for (name, by) in [("files", 1), ("bytes", thing["bytes"].as_u64().unwrap())] {
            told[name] = json!(told[name].as_u64().unwrap() + by);
        }
    }
    let size = fs::metadata(&list).unwrap().len();
    told["list"] = json!({ "bytes": size, "sha256": sha256(&list) });
    fs::write(&manifest, told.to_string()).unwrap();
}

/// One line of a list.
fn listed(path: &str, mode: u32, what: Value) -> Value {
    let mut thing = json!({ "path": path, "mode": mode, "uid": 0, "gid": 0, "mtime": [0, 0] });
    let all = thing.as_object_mut().unwrap();
    all.extend(what.as_object().unwrap().clone());
    thing
}

#[test]
fn a_crafted_list_puts_nothing_outside_and_lends_no_rights() {
    let kept = Kept::new();
    let outside = kept.home.dir().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o700)).unwrap();
    let hex: String = { outside.to_str().unwrap().bytes() }
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let link = |path: &str| listed(path, 0o777, json!({ "kind": "link", "target": hex }));
    let file = |path: &str| {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let what = json!({ "kind": "file", "bytes": 0, "sha256": empty });
        listed(path, 0o4755, what)
    };
    let dir = |path: &str| listed(path, 0o777, json!({ "kind": "dir" }));
    for (things, why) in [
        (
            vec![link("tasks/l"), file("tasks/l/owned")],
            "belongs to no backup",
        ),
        (vec![dir("tasks/l"), file("tasks/l")], "twice"),
        // Output would be written where it points.
        (vec![link("runs/20774")], "belongs to no backup"),
        // What it says would be brought to an end at the next start.
        (
            vec![dir("undo/r_x"), file("undo/r_x/journal")],
            "belongs to no backup",
        ),
        (
            vec![dir("tasks/l"), dir("tasks//l")],
            "belongs to no backup",
        ),
    ] {
        let from = kept.copy("crafted");
        fs::create_dir_all(from.join("files/tasks/l")).unwrap();
        fs::write(from.join("files/tasks/l/owned"), "").unwrap();
        relist(&from, &things);
        let path = from.to_str().unwrap();
        for args in [&["backup", "verify", path][..], &["restore", path]] {
            let done = kept.home.call(args);
            assert_eq!(done.code, Some(1), "{things:?}: {done:?}");
            assert!(done.err.contains(why), "{things:?}: {done:?}");
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{things:?}");
        let mode = fs::metadata(&outside).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o700, "{things:?}");
        fs::remove_dir_all(from).unwrap();
    }
    // What is at its place has its mode, but for what lends rights.
    let from = kept.copy("crafted");
    fs::write(from.join("files/tasks/tool"), "").unwrap();
    relist(&from, &[file("tasks/tool")]);
    let done = kept.restore(&from);
    assert_eq!(done.code, Some(0), "{done:?}");
    let mode = fs::metadata(kept.home.state().join("tasks/tool"))
        .unwrap()
        .mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[test]
fn a_backup_is_of_the_server_that_runs_and_starts_none() {
    let home = Home::new();
    let done = home.call(&["backup", home.dir().join("b").to_str().unwrap()]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("no server runs for"), "{done:?}");
    assert!(
        done.err.contains("hint: say which one is meant"),
        "{done:?}"
    );
    assert!(!home.dir().join("b").exists());
    assert!(
        !home.state().join("weighlock.db").exists(),
        "none was started"
    );
    // As the unit runs it: elsewhere, and on a socket of its own.
    let (state, socket) = (home.dir().join("unit"), home.dir().join("unit.sock"));
    let (state, socket) = (state.to_str().unwrap(), socket.to_str().unwrap());
    let mut server = home
        .weighlock(&[
            "--state-dir",
            state,
            "--socket",
            socket,
            "serve",
            "--listen",
            "off",
        ])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let named = ["--socket", socket];
    eventually("it serves", || {
        home.call(&[&named[..], &["run", "--", "echo", "unit"]].concat())
            .code
            == Some(0)
    });
    assert_eq!(home.call(&["backup"]).code, Some(1), "not of that one");
    let to = home.dir().join("b");
    let done = home.call(&[&named[..], &["backup", to.to_str().unwrap()]].concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(
        home.call(&["--state-dir", state, "serve", "--stop"]).code,
        Some(0)
    );
    server.wait().unwrap();
    let copy = Connection::open(to.join("weighlock.db")).unwrap();
    let runs = "SELECT count(*) FROM terminal_commands WHERE command LIKE 'echo%unit%'";
    let runs: i64 = copy.query_row(runs, [], |row| row.get(0)).unwrap();
    assert_eq!(runs, 1);
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

#[track_caller]
fn refused_at(home: &Home, place: &Path, why: &str) {
    let (status, told) = home.api("POST", "/backups", &json!({ "directory": place }));
    if status == 201 {
        // Some places are the machine's.
        fs::remove_dir_all(place).unwrap();
    }
    assert_eq!(
        (status, &told["code"]),
        (400, &json!("bad_backup_place")),
        "{}: {told}",
        place.display()
    );
    let detail = told["detail"].as_str().unwrap();
    assert!(detail.contains(why), "{}: {detail}", place.display());
}

#[test]
fn no_backup_is_made_where_any_walls_let_commands_look() {
    let mut home = Home::new();
    let made = |name: &str| {
        let dir = home.dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        dir
    };
    let (tool, linked) = (made("tool/bin"), made("linked"));
    let (shown, at_home) = (made("shown"), made("home/mine"));
    symlink(&linked, home.dir().join("home/.nvm")).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    home.set("PATH", format!("{}:{path}", tool.display()));
    let settings = format!(
        "[environment]\nlogin_path = false\n[sandbox.default]\nread = [\"{}\"]\n\
         write = [\"~/mine\"]\n",
        shown.display()
    );
    let _server = home.serve_with(&settings);
    for dir in [
        Path::new("/usr"),
        Path::new("/opt"),
        Path::new("/etc"),
        &tool,
        &linked,
        &shown,
        &at_home,
        &home.base(),
    ] {
        if dir.is_dir() {
            refused_at(
                &home,
                &dir.join("weighlock-test-backup"),
                "where commands can look",
            );
        }
    }
    made_beside(&home);
}

#[track_caller]
fn made_beside(home: &Home) {
    made(home, &home.dir().join("beside"));
}

#[test]
fn nothing_of_the_state_directory_is_taken_for_a_backup() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let state = home.state().canonicalize().unwrap();
    fs::create_dir_all(state.join("backups/deeper")).unwrap();
    for name in [
        "restored",
        "restoring",
        "tasks/x",
        "undo/x",
        "runs/x",
        "x",
        "backups",
        "backups/deeper/x",
    ] {
        refused_at(&home, &state.join(name), "");
    }
    let parent = state.parent().unwrap();
    refused_at(&home, parent, "");
    made(&home, &state.join("backups/monday"));
    made_beside(&home);
}

#[test]
fn nobody_else_reads_a_backup_as_it_is_made() {
    let home = Home::new();
    let server = home.serve(&[]);
    home.ask("seq 1 5000", Value::Null);
    // Somebody was there before, and let everybody in.
    let open = home.dir().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
    let trap = open.join(".b.partial");
    fs::create_dir(&trap).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o777)).unwrap();
    made(&home, &open.join("b"));
    assert_eq!(fs::read_dir(&trap).unwrap().count(), 0);
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&open.join("b")), 0o700);
    let mut all = 0;
    for file in files(&open.join("b")) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        all += 1;
    }
    assert!(all > 5, "{all}");
    // Where everybody may rename, another directory could be put in its place.
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    refused_at(&home, &open.join("c"), "that other users can change");
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(&open, Some(1234), None).unwrap();
        refused_at(&home, &open.join("c"), "that other users can change");
    } else {
        not_as_this_user("only root can give the directory another owner");
    }
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_mount_as_target_is_refused_before_anything_is_copied() {
    let home = Home::new();
    let disk = home.dir().join("disk");
    fs::create_dir(&disk).unwrap();
    let setup = format!("mount -t tmpfs disk {}", disk.display());
    let _server = match home.try_serve_after(&setup) {
        Ok(server) => server,
        Err(done) if done.err.contains("Operation not permitted") => {
            skip("no mounts of its own");
            return;
        }
        Err(done) => panic!("{done:?}"),
    };
    refused_at(&home, &disk, "where a file system is mounted");
    made_beside(&home);
    let (status, told) = home.api("POST", "/backups", &json!({ "directory": disk.join("b") }));
    assert_eq!(status, 201, "{told}");
}

#[test]
fn a_server_that_is_killed_leaves_no_half_backup_and_the_next_is_made() {
    let home = Home::new();
    let to = home.dir().join("backup");
    let mut killed = 0;
    for delay in 0..30 {
        let server = home.serve(&[]);
        if delay == 0 {
            home.ask("seq 1 3000000", Value::Null);
        }
        let mut asked = home
            .weighlock(&["backup", to.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(10 * delay));
        server.kill();
        asked.wait().unwrap();
        if to.exists() {
            let done = home.call(&["backup", "verify", to.to_str().unwrap()]);
            assert_eq!(done.code, Some(0), "{done:?}");
            fs::remove_dir_all(&to).unwrap();
            if killed > 0 {
                break;
            }
        } else if partials(&home.dir()) > 0 {
            killed += 1;
        }
    }
    assert!(killed > 0, "none was killed in time");
    let _server = home.serve(&[]);
    made(&home, &to);
    assert_eq!(partials(&home.dir()), 0, "what was left is gone");
}

/// What there is of backups that are not whole.
fn partials(dir: &Path) -> usize {
    let names = fs::read_dir(dir).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".partial")).count()
}

#[test]
fn a_server_that_is_told_to_end_leaves_nothing_half_made() {
    let home = Home::new();
    let to = home.dir().join("backup");
    let server = home.serve(&[]);
    home.ask("seq 1 3000000", Value::Null);
    let mut asked = home
        .weighlock(&["backup", to.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("it is begun", || partials(&home.dir()) > 0 || to.exists());
    assert_eq!(server.terminate(), Some(0));
    asked.wait().unwrap();
    assert_eq!(partials(&home.dir()), 0);
    if to.exists() {
        let done = home.call(&["backup", "verify", to.to_str().unwrap()]);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
}

#[test]
fn a_full_disk_leaves_no_half_of_a_restore() {
    let kept = Kept::new();
    let small = kept.home.dir().join("small");
    fs::create_dir(&small).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=300k small {0} && \"$@\"; code=$?; ls -A {0}/state; exit $code",
        small.display()
    );
    let flags = match rustix::process::geteuid().is_root() {
        true => "-m",
        false => "-rm",
    };
    let through = ["unshare", flags, "sh", "-c", &script, "sh"];
    let state = small.join("state");
    let args = [
        "--state-dir",
        state.to_str().unwrap(),
        "restore",
        kept.backup.to_str().unwrap(),
    ];
    let done = kept
        .home
        .weighlock_through(&through, &args)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    if said.contains("Operation not permitted") || said.contains("permission denied") {
        skip("no mounts of its own");
        return;
    }
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(
        said.contains("No space left") || said.contains("full"),
        "{said}"
    );
    assert!(said.contains("hint: "), "{said}");
    let left = String::from_utf8_lossy(&done.stdout);
    assert_eq!(left.trim(), "lock", "{said}");
}

#[test]
fn runs_that_change_files_do_not_wait_for_a_backup() {
    let home = Home::untouched();
    let _server = home.serve_with("[effects]\nreview = \"none\"\n");
    let (_, first) = home.ask("echo one > file", Value::Null);
    if first["changes"]["state"] != "applied" {
        skip("this machine shows no copies");
        return;
    }
    // Large, so that copying it takes longer than a run.
    let large = fs::File::create(home.state().join("tasks/large")).unwrap();
    large.set_len(512 << 20).unwrap();
    let to = home.dir().join("backup");
    let mut asked = home
        .weighlock(&["backup", to.to_str().unwrap()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("it is copied", || {
        let partial = fs::read_dir(home.dir()).unwrap().flatten();
        let mut copied = partial.map(|entry| entry.path().join("files/tasks/large"));
        copied.any(|copied| copied.exists())
    });
    let (_, run) = home.ask("echo two > file", Value::Null);
    assert_eq!(run["changes"]["state"], "applied", "{run}");
    assert_eq!(home.lines("file"), ["two"]);
    assert!(asked.try_wait().unwrap().is_none(), "it goes on");
    assert!(asked.wait().unwrap().success());
    let done = home.call(&["backup", "verify", to.to_str().unwrap()]);
    assert_eq!(done.code, Some(0), "{done:?}");
}
